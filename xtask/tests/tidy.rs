//! The house rules hold, and the check of them can fail.

use xtask::tidy::{check_manifest, check_source, findings, root};

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
fn empty_names_and_missing_heads_are_found() {
    let mut found = Vec::new();
    check_source("crates/a/src/utils.rs", "//! Head.\n", &mut found);
    check_source("crates/a/src/good.rs", "fn small() {\n}\n", &mut found);
    assert_eq!(found.len(), 2, "{found:?}");
}
