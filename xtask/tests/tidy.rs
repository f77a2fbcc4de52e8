//! The house rules hold, and the check of them can fail.

use std::collections::{BTreeMap, BTreeSet};

use xtask::tidy::{check_circles, check_manifest, check_source, findings, root};

#[test]
fn the_sources_are_tidy() {
    let found = findings(&root()).unwrap();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_wrong_arrow_is_found() {
    let mut found = Vec::new();
    check_manifest(
        "[package]\nname = 'weald-core'\n[dependencies]\nweald-git = '1'\nrusqlite = '1'\n",
        &mut found,
    );
    check_manifest(
        "[package]\nname = 'weald-git'\n[dev-dependencies]\nweald-app = '1'\n",
        &mut found,
    );
    check_manifest("[package]\nname = 'weald-new'\n", &mut found);
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn a_circle_of_three_modules_is_found_unless_it_is_known() {
    let uses = |pairs: &[(&str, &str)]| -> BTreeMap<String, BTreeSet<String>> {
        let to = |to: &str| BTreeSet::from([to.to_owned()]);
        let pairs = pairs.iter();
        pairs
            .map(|(from, other)| ((*from).to_owned(), to(other)))
            .collect()
    };
    let pair = uses(&[("a", "b"), ("b", "a")]);
    let circle = uses(&[("a", "b"), ("b", "c"), ("c", "a")]);
    for (uses, known, count) in [
        (&pair, &[][..], 0),
        (&circle, &[], 1),
        (&circle, &["a", "b", "c"], 0),
        (&circle, &["a", "b"], 1),
        // The list is longer than it has to be.
        (&circle, &["a", "b", "c", "d"], 1),
        (&pair, &["a", "b"], 2),
    ] {
        let mut found = Vec::new();
        check_circles("crate", uses, &known.iter().copied().collect(), &mut found);
        assert_eq!(found.len(), count, "{known:?}: {found:?}");
    }
}

#[test]
fn empty_names_and_missing_heads_are_found() {
    let mut found = Vec::new();
    check_source("crates/a/src/utils.rs", "//! Head.\n", &mut found);
    check_source("crates/a/src/good.rs", "fn small() {\n}\n", &mut found);
    assert_eq!(found.len(), 2, "{found:?}");
}
