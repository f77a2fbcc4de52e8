//! What strangers start from is whole: fuzz targets, dependencies, workflows, the changelog.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use xtask::tidy::{root, sources};

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn table(path: &str) -> toml::Table {
    text(path).parse().unwrap()
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .collect()
}

#[test]
fn u19_every_fuzz_target_is_built_listed_seeded_and_replayed() {
    let manifest = table("fuzz/Cargo.toml");
    let built: BTreeSet<String> = manifest["bin"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(built.len() >= 11, "{built:?}");
    assert_eq!(names("fuzz/fuzz_targets"), built);
    assert_eq!(names("fuzz/corpus"), built);
    #[expect(clippy::disallowed_methods, reason = "the script says what it runs")]
    let listed = Command::new(root().join("scripts/fuzz"))
        .arg("--list")
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let listed: BTreeSet<String> = listed
        .lines()
        .map(|line| line.split_once(' ').unwrap().0.to_owned())
        .collect();
    assert_eq!(listed, built, "scripts/fuzz runs what fuzz/README.md lists");
    assert!(text("scripts/test").contains("./scripts/fuzz 60\n"));

    // Where what was found is tried again by plain tests.
    let mut replays = String::new();
    for file in sources(&root()).unwrap() {
        let path = file.to_string_lossy().into_owned();
        if path.contains("/src/") && (path.contains("fuzzing") || path.ends_with("/job.rs")) {
            replays.push_str(&fs::read_to_string(file).unwrap());
        }
    }
    for target in &built {
        let seeds = names(&format!("fuzz/corpus/{target}"));
        assert!(seeds.len() >= 5, "{target} has {} seeds", seeds.len());
        let is_replayed = [format!("\"{target}\""), format!("corpus/{target}\"")]
            .iter()
            .any(|named| replays.contains(named));
        assert!(is_replayed, "no test replays the corpus of {target}");
    }
}

#[test]
fn u19_dependencies_are_checked_for_advisories() {
    let deny = table("deny.toml");
    assert_eq!(deny["advisories"]["yanked"].as_str(), Some("deny"));
    assert!(
        !deny["advisories"]
            .as_table()
            .unwrap()
            .contains_key("ignore")
    );
    let script = text("scripts/test");
    for check in ["check licenses sources bans\n", "check advisories\n"] {
        assert!(script.contains(check), "{check}");
    }
}

#[test]
fn u19_the_toolchain_is_the_one_that_the_manifest_promises() {
    let pinned = table("rust-toolchain.toml");
    let channel = pinned["toolchain"]["channel"].as_str().unwrap();
    let manifest = table("Cargo.toml");
    let oldest = manifest["workspace"]["package"]["rust-version"]
        .as_str()
        .unwrap();
    assert!(
        channel.starts_with(&format!("{oldest}.")),
        "{channel}, {oldest}"
    );
}

#[test]
fn u19_workflows_and_guides_name_scripts_that_are_there() {
    let mut found = 0;
    for page in [
        ".github/workflows/ci.yml",
        ".github/workflows/release.yml",
        ".github/pull_request_template.md",
        ".ci/run",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "fuzz/README.md",
    ] {
        let text = text(page);
        for (place, _) in text.match_indices("./scripts/") {
            let name = text[place + 2..].split(|c: char| !(c.is_ascii_alphanumeric() || c == '/'));
            let name = name.into_iter().next().unwrap();
            assert!(root().join(name).is_file(), "{page} names {name}");
            found += 1;
        }
        for link in text.split("](").skip(1) {
            let to = link.split([')', '#']).next().unwrap();
            let folder = root().join(page).parent().unwrap().to_owned();
            let is_there = to.is_empty() || to.contains("://") || folder.join(to).exists();
            assert!(is_there, "{page} links to {to}");
        }
    }
    assert!(found >= 6, "they are not found");
}

#[test]
fn u19_the_changelog_sorts_changes_by_their_kind() {
    let kinds = [
        "Security",
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
    ];
    let text = text("CHANGELOG.md");
    let sections = text.split("\n## ").skip(1);
    for section in sections {
        let headings = section.lines().filter_map(|line| line.strip_prefix("### "));
        let headings: Vec<&str> = headings.collect();
        let known: BTreeSet<&str> = headings.iter().copied().collect();
        assert_eq!(
            known.len(),
            headings.len(),
            "a kind has two sections: {headings:?}"
        );
        assert!(
            known.iter().all(|kind| kinds.contains(kind)),
            "{headings:?}"
        );
    }
}

#[test]
fn u17_both_commands_stand_on_the_readmes_first_screen() {
    let readme = text("README.md");
    let screen: Vec<&str> = readme.lines().take(24).collect();
    for command in ["cargo run --release -p weald -- demo", "./scripts/test"] {
        let is_there = screen.contains(&format!("    {command}").as_str());
        assert!(is_there, "{command} is not among:\n{}", screen.join("\n"));
    }
    // What they start is there: the package, its command, and a script that can be run.
    assert!(root().join("crates/weald/src/commands/demo.rs").is_file());
    let mode = fs::metadata(root().join("scripts/test"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o111, 0o111);
}
