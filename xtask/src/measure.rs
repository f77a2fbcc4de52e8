//! What the sources consist of: lines, comments that say little, the types with the most methods, and modules that
//! need each other in a circle.
//!
//! It reads text, not syntax: sources are formatted by rustfmt, so an `impl` begins and ends in the first column.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use crate::bench::say;
use crate::tidy::sources;

/// Crates whose lines do not reach a user.
const FOR_DEVELOPERS: [&str; 2] = ["xtask", "weald-testkit"];

/// A line of documentation with at most this many words says little.
const FEW_WORDS: usize = 3;

/// What one crate consists of.
#[derive(Debug, Default)]
pub struct Measured {
    /// Lines that are neither empty nor comments, without tests.
    pub lines: usize,
    pub documentation: usize,
    /// How many of those have at most three words.
    pub short: usize,
    /// How many methods each type has.
    pub methods: BTreeMap<String, usize>,
    /// Which top-level module names which.
    pub uses: BTreeMap<String, BTreeSet<String>>,
}

pub fn report() -> io::Result<()> {
    let crates = measure(&crate::tidy::root())?;
    let (mut lines, mut documentation, mut short) = (0, 0, 0);
    say(
        "crate                   lines  largest type (methods)            largest circle of modules",
    );
    for (name, measured) in &crates {
        let largest = measured.methods.iter().max_by_key(|(_, methods)| **methods);
        let largest = largest.map_or(String::new(), |(of, count)| format!("{of} ({count})"));
        let circle = circles(&measured.uses).into_iter().next();
        let circle = circle.map_or_else(String::new, |circle| {
            let names: Vec<_> = circle.into_iter().collect();
            format!("{}: {}", names.len(), names.join(" "))
        });
        say(&format!(
            "{name:<20} {:>8}  {largest:<33} {circle}",
            measured.lines
        ));
        if !FOR_DEVELOPERS.contains(&name.as_str()) {
            lines += measured.lines;
        }
        documentation += measured.documentation;
        short += measured.short;
    }
    say(&format!(
        "production: {lines} lines; lines of documentation: {documentation}, {short} of them with at most {FEW_WORDS} words"
    ));
    Ok(())
}

/// A file of a crate.
pub struct Source {
    /// The module directly below the crate's root that it belongs to.
    pub module: String,
    /// Whether it is that module, and not one inside.
    pub is_top: bool,
    pub text: String,
}

/// Measures every crate below a root.
pub fn measure(root: &Path) -> io::Result<BTreeMap<String, Measured>> {
    let mut crates: BTreeMap<String, Measured> = BTreeMap::new();
    let mut sources_of: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for file in sources(root)? {
        let inside = file.strip_prefix(root).unwrap_or(&file);
        let parts: Vec<_> = inside
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        let (name, rest) = match parts[0].as_str() {
            "crates" => (parts[1].clone(), &parts[2..]),
            _ => (parts[0].clone(), &parts[1..]),
        };
        // Tests in folders and files of their own; `src/tests` exists for unit tests of many files.
        if rest[0] != "src"
            || rest
                .iter()
                .any(|part| part == "tests" || part == "tests.rs")
        {
            continue;
        }
        let text = without_tests(&fs::read_to_string(&file)?);
        count(&text, crates.entry(name.clone()).or_default());
        sources_of.entry(name).or_default().push(Source {
            module: rest[1].trim_end_matches(".rs").to_owned(),
            is_top: rest.len() == 2,
            text,
        });
    }
    for (name, sources) in sources_of {
        crates.entry(name).or_default().uses = uses(&sources);
    }
    Ok(crates)
}

/// A source without its unit tests: up to a test module with a body, and without the line of one that has its own file.
pub fn without_tests(text: &str) -> String {
    let (mut rest, mut kept) = (text, String::new());
    while let Some((before, module)) = rest.split_once("#[cfg(test)]\nmod ") {
        kept.push_str(before);
        let (head, after) = module.split_once('\n').unwrap_or((module, ""));
        rest = if head.ends_with(';') { after } else { "" };
    }
    kept + rest
}

fn count(text: &str, measured: &mut Measured) {
    for line in text.lines().map(str::trim) {
        let documentation = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        match documentation {
            Some(said) => {
                measured.documentation += 1;
                measured.short += usize::from(says_little(said));
            }
            None if line.is_empty() || line.starts_with("//") => {}
            None => measured.lines += 1,
        }
    }
    for (of, methods) in methods(text) {
        *measured.methods.entry(of).or_default() += methods;
    }
}

/// An empty line between paragraphs says nothing, and is meant to.
fn says_little(said: &str) -> bool {
    let words = said.split_whitespace().count();
    words > 0 && words <= FEW_WORDS
}

/// How many methods each type gets in a source, outside of traits.
pub fn methods(text: &str) -> BTreeMap<String, usize> {
    let (mut found, mut of) = (BTreeMap::new(), None);
    for line in text.lines() {
        if line.starts_with('}') {
            of = None;
        } else if let Some(head) = line.strip_prefix("impl") {
            of = (!head.contains(" for ")).then(|| type_of(head));
        } else if let (Some(of), true) = (&of, is_method(line)) {
            *found.entry(of.clone()).or_default() += 1;
        }
    }
    found
}

/// The type of `impl<'a> Type<'a> {`.
fn type_of(head: &str) -> String {
    let head = match head.strip_prefix('<') {
        Some(generic) => generic.split_once("> ").map_or("", |(_, rest)| rest),
        None => head,
    };
    name_at(head)
}

fn is_method(line: &str) -> bool {
    let Some(line) = line
        .strip_prefix("    ")
        .filter(|line| !line.starts_with(' '))
    else {
        return false;
    };
    let before = line.split("fn ").next().unwrap_or_default();
    line.contains("fn ")
        && before.split_whitespace().all(|word| {
            word.starts_with("pub") || matches!(word, "const" | "async" | "unsafe" | "in")
        })
}

/// Which module names which others of its crate: by its path, or by a name that the crate's root re-exports.
pub fn uses(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let is_root = |source: &&Source| source.module == "lib" || source.module == "main";
    let modules = sources.iter().filter(|source| !is_root(source));
    let modules: BTreeSet<&str> = modules.map(|source| source.module.as_str()).collect();
    let roots = sources.iter().filter(is_root);
    let exported: BTreeMap<String, String> =
        roots.flat_map(|source| exports(&source.text)).collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !is_root(source)) {
        for named in named_by(source) {
            let other = exported.get(&named).unwrap_or(&named);
            if *other != source.module && modules.contains(other.as_str()) {
                let used = uses.entry(source.module.clone()).or_default();
                used.insert(other.clone());
            }
        }
    }
    uses
}

/// `pub use module::{Name, Other};` of a crate's root, by name.
fn exports(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in text.split("use ").skip(1) {
        let Some((path, _)) = part.split_once(';') else {
            continue;
        };
        let path = path
            .trim_start_matches("self::")
            .trim_start_matches("crate::");
        let Some((module, names)) = path.split_once("::") else {
            continue;
        };
        for name in names.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            if !name.is_empty() {
                found.push((name.to_owned(), module.to_owned()));
            }
        }
    }
    found
}

/// The first names after `crate::`; in a file directly below the crate's root `super::` leads there, too.
fn named_by(source: &Source) -> BTreeSet<String> {
    let lines = source.text.lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let roots: &[&str] = match source.is_top {
        true => &["crate::", "super::"],
        false => &["crate::"],
    };
    let paths = roots.iter().flat_map(|root| code.split(root).skip(1));
    paths.flat_map(first_names).collect()
}

/// The first name of a path, or of each path in braces.
fn first_names(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![name_at(path)];
    };
    let (mut names, mut depth) = (vec![name_at(group)], 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name_at(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

fn name_at(text: &str) -> String {
    let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
    text.trim_start().chars().take_while(is_name).collect()
}

/// Modules that need each other, the largest circle first; single modules are no circle.
pub fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<String>> = uses
        .keys()
        .map(|from| (from, reached(uses, from)))
        .collect();
    let mut found: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (from, to) in &reached {
        let back = |other: &&String| reached.get(other).is_some_and(|to| to.contains(*from));
        let circle: BTreeSet<_> = to.iter().filter(back).cloned().collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

fn reached(uses: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(module) = open.pop() {
        for next in uses.get(&module).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}
