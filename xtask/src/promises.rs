//! Lists that must say what the sources say: the labelled steps, and the tests that docs/faults.md names.

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
    let listed: BTreeSet<_> = weald_engine::STEPS
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

fn functions(source: &str) -> BTreeSet<String> {
    let named = source.split("fn ").skip(1);
    let name = |rest: &str| rest.split(['(', '<']).next().map(str::to_owned);
    named.filter_map(name).collect()
}
