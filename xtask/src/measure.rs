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

/// Measures every crate below a root.
pub fn measure(root: &Path) -> io::Result<BTreeMap<String, Measured>> {
    let mut crates: BTreeMap<String, Measured> = BTreeMap::new();
    let mut texts: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
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
        let module = rest[1].trim_end_matches(".rs").to_owned();
        texts.entry(name).or_default().push((module, text));
    }
    for (name, files) in texts {
        crates.entry(name).or_default().uses = uses(&files);
    }
    Ok(crates)
}

/// A source up to its unit tests.
pub fn without_tests(text: &str) -> String {
    let end = text
        .find("\n#[cfg(test)]\nmod ")
        .map_or(text.len(), |end| end + 1);
    text[..end].to_owned()
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
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    head.trim_start()
        .chars()
        .take_while(|c| is_name(*c))
        .collect()
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

/// Which module names which others of its crate: by `crate::module`, or by a name that the crate's root re-exports.
fn uses(files: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeSet<&str> = files.iter().map(|(module, _)| module.as_str()).collect();
    let roots = files
        .iter()
        .filter(|(module, _)| module == "lib" || module == "main");
    let exported: BTreeMap<String, String> = roots.flat_map(|(_, text)| exports(text)).collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in files {
        if module == "lib" || module == "main" {
            continue;
        }
        for named in named_by(text) {
            let other = exported.get(&named).unwrap_or(&named);
            if other != module && modules.contains(other.as_str()) {
                uses.entry(module.clone())
                    .or_default()
                    .insert(other.clone());
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

/// The first names after `crate::`, also in braces.
fn named_by(text: &str) -> BTreeSet<String> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let inner = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or_default(),
            None => rest,
        };
        let first = |part: &str| -> String {
            let part = part.trim_start();
            part.chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        };
        match rest.starts_with('{') {
            true => found.extend(inner.split(',').map(first)),
            false => {
                found.insert(first(inner));
            }
        }
    }
    found
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
