//! The table of docs/operations.md: who can set which field of which operation.
//!
//! When this fails, a request has a new field, or a face does an operation or sets a field that it did not before. Decide
//! whether its callers may: a field for a person at a terminal alone is constant in the literals of the other faces.
//! Then write the table again: `cargo run -p xtask -- faces > docs/operations.md`, and read what changed in it.

use std::collections::BTreeSet;

use xtask::faces::{operations, page};
use xtask::tidy::root;

#[test]
fn every_field_that_a_face_sets_is_in_the_table_of_operations() {
    let committed = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let found = page(&root()).unwrap();
    let rows = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (before, now) = (rows(&committed), rows(&found));
    let gone: Vec<_> = before.difference(&now).collect();
    let new: Vec<_> = now.difference(&before).collect();
    assert!(
        committed == found,
        "docs/operations.md says {gone:#?}\nthe sources say {new:#?}"
    );
}

#[test]
fn the_table_has_every_operation_that_is_registered() {
    let found = operations(&root()).unwrap();
    let listed: BTreeSet<_> = found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(listed, weald_app::operations::names().collect());
    // Literals are found by the name of their type.
    let requests: BTreeSet<_> = found.iter().map(|one| &one.request).collect();
    assert_eq!(requests.len(), found.len());
}
