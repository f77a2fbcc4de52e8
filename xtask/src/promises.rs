//! Lists that must say what the sources say: the labelled steps, the tests that docs/faults.md names, and the promises
//! of docs/promises.md.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::tidy::sources;

/// What the list of labelled steps has too much or too little of, one line each.
pub fn steps_amiss(root: &Path) -> io::Result<Vec<String>> {
    let mut passed = BTreeSet::new();
    for file in sources(root)? {
        if is_product(root, &file) {
            passed.extend(labels(&fs::read_to_string(&file)?));
        }
    }
    let listed: BTreeSet<_> = weald_testkit::STEPS
        .iter()
        .map(ToString::to_string)
        .collect();
    let unlisted = passed.difference(&listed);
    let unlisted = unlisted.map(|label| format!("step {label} is not in the list of steps"));
    let unknown = listed.difference(&passed);
    let unknown = unknown.map(|label| format!("step {label} is listed, but nobody passes it"));
    Ok(unlisted.chain(unknown).collect())
}

fn is_product(root: &Path, file: &Path) -> bool {
    let inside = file.strip_prefix(root.join("crates")).ok();
    inside.is_some_and(|inside| inside.iter().nth(1).is_some_and(|part| part == "src"))
}

/// The labels of the steps that a source passes.
pub fn labels(source: &str) -> BTreeSet<String> {
    let calls = ["step(", "step_of("]
        .into_iter()
        .flat_map(|call| source.split(call).skip(1));
    let text = |rest: &str| {
        let label = rest.trim_start().strip_prefix('"')?.split('"').next()?;
        Some(label.to_owned())
    };
    calls.filter_map(text).collect()
}

/// Tests that a document names and that are nowhere, one line each.
pub fn tests_amiss(root: &Path, document: &str) -> io::Result<Vec<String>> {
    let mut known = BTreeSet::new();
    for file in sources(root)? {
        known.extend(functions(&fs::read_to_string(&file)?));
    }
    let named = tests_named(document);
    let missing = named.into_iter().filter(|name| !known.contains(name));
    Ok(missing
        .map(|name| format!("{name} is named, but there is no such test"))
        .collect())
}

/// What stands in backticks and looks like the name of a test: lower case, with more than one underscore.
pub fn tests_named(document: &str) -> Vec<String> {
    let quoted = document.split('`').skip(1).step_by(2);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    quoted
        .filter(|text| text.chars().all(is_plain) && text.matches('_').count() > 1)
        .map(str::to_owned)
        .collect()
}

/// Promises of the list that no test carries, and ids of tests that are not in it, one line each.
pub fn promise_problems(root: &Path, document: &str) -> io::Result<Vec<String>> {
    let mut carried = BTreeSet::new();
    for file in sources(root)? {
        let names = functions(&fs::read_to_string(&file)?);
        carried.extend(names.iter().flat_map(|name| promise_ids(name)));
    }
    let rows = promises_listed(document);
    let listed: BTreeSet<_> = rows.iter().cloned().collect();
    let unlisted = carried.difference(&listed);
    let unlisted = unlisted.map(|id| format!("tests carry the id {id}, but it has no row"));
    let untested = listed.difference(&carried);
    let untested = untested.map(|id| format!("{id} has a row, but no test carries it"));
    let twice = rows
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| format!("{} has two rows", pair[0]));
    Ok(unlisted.chain(untested).chain(twice).collect())
}

/// The ids in the first column of the tables, sorted, repeated ones included.
pub fn promises_listed(document: &str) -> Vec<String> {
    let first = |line: &str| Some(line.strip_prefix("| ")?.split(" | ").next()?.to_owned());
    let mut ids: Vec<_> = document
        .lines()
        .filter_map(first)
        .filter(|id| is_promise_id(id))
        .collect();
    ids.sort();
    ids
}

/// The ids that the name of a test begins with: `l9` and `l10` of `l9_l10_only_closed_tasks`.
pub fn promise_ids(name: &str) -> Vec<String> {
    let words = name.split('_').take_while(|word| is_promise_id(word));
    words.map(str::to_owned).collect()
}

/// One or two small letters and one or two digits.
fn is_promise_id(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = word.len() - digits.len();
    (1..=2).contains(&letters)
        && (1..=2).contains(&digits.len())
        && digits.chars().all(|c| c.is_ascii_digit())
}

fn functions(source: &str) -> BTreeSet<String> {
    let named = source.split("fn ").skip(1);
    let name = |rest: &str| rest.split(['(', '<']).next().map(str::to_owned);
    named.filter_map(name).collect()
}
