//! House rules that a reader of the sources can check: arrows between crates, circles of modules, names, module heads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::measure::{circles, measure};

/// Which crates a crate may depend on. The test kit may be used by tests of any.
const ARROWS: &[(&str, &[&str])] = &[
    ("weald-core", &[]),
    ("weald-git", &[]),
    ("weald-sandbox", &[]),
    ("weald-escape", &["weald-sandbox"]),
    ("weald-store", &["weald-core"]),
    (
        "weald-control",
        &["weald-core", "weald-git", "weald-sandbox"],
    ),
    (
        "weald-integrations",
        &["weald-control", "weald-core", "weald-git", "weald-sandbox"],
    ),
    (
        "weald-trees",
        &["weald-control", "weald-core", "weald-git", "weald-sandbox"],
    ),
    (
        "weald-landing",
        &[
            "weald-control",
            "weald-core",
            "weald-git",
            "weald-sandbox",
            "weald-trees",
        ],
    ),
    (
        "weald-agents",
        &[
            "weald-control",
            "weald-core",
            "weald-git",
            "weald-landing",
            "weald-sandbox",
            "weald-terminal",
            "weald-trees",
        ],
    ),
    (
        "weald-upkeep",
        &[
            "weald-agents",
            "weald-control",
            "weald-core",
            "weald-git",
            "weald-landing",
            "weald-sandbox",
            "weald-trees",
        ],
    ),
    (
        "weald-app",
        &[
            "weald-agents",
            "weald-control",
            "weald-core",
            "weald-escape",
            "weald-git",
            "weald-integrations",
            "weald-landing",
            "weald-sandbox",
            "weald-store",
            "weald-terminal",
            "weald-trees",
            "weald-upkeep",
        ],
    ),
    (
        "weald-server",
        &["weald-app", "weald-core", "weald-sandbox"],
    ),
    (
        "weald",
        &[
            "weald-app",
            "weald-core",
            "weald-escape",
            "weald-git",
            "weald-sandbox",
            "weald-server",
            "weald-store",
            "weald-terminal",
        ],
    ),
    ("weald-terminal", &[]),
    ("weald-testkit", &["weald-core", "weald-terminal"]),
    (
        "xtask",
        &[
            "weald-app",
            "weald-core",
            "weald-git",
            "weald-sandbox",
            "weald-store",
            "weald-terminal",
            "weald-testkit",
        ],
    ),
];

/// What may appear in tests of a crate besides its own arrows.
const TEST_ONLY: [&str; 3] = ["weald-testkit", "weald-store", "weald-terminal"];

/// What the core must not depend on: anything that reaches outside.
const IMPURE: [&str; 8] = [
    "rusqlite", "rustix", "tokio", "tempfile", "libc", "uuid", "rand", "tracing",
];

/// How many modules of a crate may need each other: a type and what its methods work with.
const PAIR: usize = 2;

/// The larger circles of modules that are left, by crate. They only shrink: what leaves one leaves this list.
const CIRCLES: &[(&str, &[&str])] = &[];

/// Words that say nothing about what a thing is.
const EMPTY_NAMES: [&str; 7] = [
    "util", "utils", "common", "helper", "helpers", "manager", "service",
];

const HEAD_LIMIT: usize = 15;

pub fn report() -> io::Result<()> {
    let findings = findings(&root())?;
    for finding in &findings {
        crate::bench::say(finding);
    }
    match findings.is_empty() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} findings", findings.len()))),
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}

/// Everything that breaks a rule, one line each.
pub fn findings(root: &Path) -> io::Result<Vec<String>> {
    let mut findings = Vec::new();
    for manifest in manifests(root)? {
        check_manifest(&fs::read_to_string(&manifest)?, &mut findings);
    }
    for (name, measured) in measure(root)? {
        let known = CIRCLES.iter().filter(|(of, _)| *of == name);
        let known: BTreeSet<&str> = known.flat_map(|(_, modules)| *modules).copied().collect();
        check_circles(&name, &measured.uses, &known, &mut findings);
    }
    for file in sources(root)? {
        let shown = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .display()
            .to_string();
        check_source(&shown, &fs::read_to_string(&file)?, &mut findings);
    }
    Ok(findings)
}

fn manifests(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![root.join("xtask/Cargo.toml")];
    for entry in fs::read_dir(root.join("crates"))? {
        found.push(entry?.path().join("Cargo.toml"));
    }
    found.sort();
    Ok(found)
}

/// Checks one manifest's text.
pub fn check_manifest(text: &str, findings: &mut Vec<String>) {
    let manifest: toml::Table = text.parse().expect("cargo reads it, too");
    let name = manifest["package"]["name"]
        .as_str()
        .expect("a name")
        .to_owned();
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        findings.push(format!("{name}: not in the table of arrows"));
        return;
    };
    for (section, extra) in [
        ("dependencies", &[][..]),
        ("dev-dependencies", &TEST_ONLY),
        ("build-dependencies", &[]),
    ] {
        let Some(table) = manifest.get(section).and_then(toml::Value::as_table) else {
            continue;
        };
        for dependency in table.keys() {
            let ours = dependency.starts_with("weald");
            if ours
                && !allowed.contains(&dependency.as_str())
                && !extra.contains(&dependency.as_str())
            {
                findings.push(format!("{name}: may not depend on {dependency}"));
            }
            if name == "weald-core" && IMPURE.contains(&dependency.as_str()) {
                findings.push(format!("{name}: {dependency} reaches outside"));
            }
        }
    }
}

/// Checks which modules of a crate use which; `known` are those that may still be in a circle.
pub fn check_circles(
    name: &str,
    uses: &BTreeMap<String, BTreeSet<String>>,
    known: &BTreeSet<&str>,
    findings: &mut Vec<String>,
) {
    let found = circles(uses);
    let found: Vec<_> = found.iter().filter(|it| it.len() > PAIR).collect();
    for circle in &found {
        if !circle.iter().all(|module| known.contains(module.as_str())) {
            let modules: Vec<_> = circle.iter().map(String::as_str).collect();
            findings.push(format!(
                "{name}: modules need each other in a circle: {}",
                modules.join(", ")
            ));
        }
    }
    for module in known {
        if !found.iter().any(|circle| circle.contains(*module)) {
            findings.push(format!(
                "{name}: {module} is in no circle any more, take it off the list"
            ));
        }
    }
}

/// Every Rust source of the workspace.
pub fn sources(root: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![root.join("crates"), root.join("xtask")]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Checks one source's text.
pub fn check_source(file: &str, text: &str, findings: &mut Vec<String>) {
    let stem = Path::new(file)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    if stem.split('_').any(|word| EMPTY_NAMES.contains(&word)) {
        findings.push(format!("{file}: the name says nothing"));
    }
    let head = text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .count();
    if head == 0 || head > HEAD_LIMIT {
        findings.push(format!(
            "{file}: opens with {head} lines of `//!`, 1 to {HEAD_LIMIT} are wanted"
        ));
    }
}
