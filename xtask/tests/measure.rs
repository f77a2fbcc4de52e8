//! What is counted in sources is what stands there.

use std::collections::{BTreeMap, BTreeSet};

use xtask::measure::{Source, circles, measure, methods, uses, without_tests};
use xtask::tidy::root;

#[test]
fn methods_are_counted_by_type_and_not_in_traits() {
    let source = "impl Tree<'_> {\n    pub fn a(&self) {\n        fn inner() {}\n    }\n\n    pub(crate) const fn b() {}\n}\n\
                  impl<'a> Tree<'a> {\n    async fn c() {}\n}\nimpl Drop for Tree<'_> {\n    fn drop(&mut self) {}\n}\n";
    assert_eq!(methods(source), BTreeMap::from([("Tree".to_owned(), 3)]));
}

#[test]
fn unit_tests_do_not_count() {
    for (text, counted) in [
        ("fn a() {}\n", "fn a() {}\n"),
        (
            "fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n",
            "fn a() {}\n\n",
        ),
        (
            "mod b;\n#[cfg(test)]\nmod tests;\n\nfn a() {}\n",
            "mod b;\n\nfn a() {}\n",
        ),
        (
            "#[cfg(test)]\nmod one;\nfn a() {}\n#[cfg(test)]\nmod two {\n}\n",
            "fn a() {}\n",
        ),
        ("fn a() {}\n#[cfg(test)]\nmod tests;", "fn a() {}\n"),
    ] {
        assert_eq!(without_tests(text), counted, "{text}");
    }
}

#[test]
fn a_circle_of_modules_is_found_and_a_chain_is_none() {
    let to = |names: &[&str]| {
        names
            .iter()
            .map(ToString::to_string)
            .collect::<BTreeSet<_>>()
    };
    let uses = BTreeMap::from([
        ("a".to_owned(), to(&["b"])),
        ("b".to_owned(), to(&["c"])),
        ("c".to_owned(), to(&["b", "d"])),
    ]);
    assert_eq!(circles(&uses), [to(&["b", "c"])]);
}

#[test]
fn modules_that_a_source_names_are_found_however_it_writes_them() {
    let source = |module: &str, is_top: bool, text: &str| Source {
        module: module.to_owned(),
        is_top,
        text: text.to_owned(),
    };
    let sources = [
        source("lib", true, "mod a;\npub use c::Thing;\n"),
        source(
            "a",
            true,
            "use crate::{b::{one, Two}, Thing};\nuse super::d;\n",
        ),
        source(
            "b",
            false,
            "// crate::a\nuse super::a;\nlet x = crate::c::y();\n",
        ),
        source("c", true, ""),
        source("d", true, ""),
    ];
    let to = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let expected = BTreeMap::from([
        ("a".to_owned(), to(&["b", "c", "d"])),
        ("b".to_owned(), to(&["c"])),
    ]);
    assert_eq!(uses(&sources), expected);
}

#[test]
fn every_crate_of_the_workspace_is_measured() {
    let crates = measure(&root()).unwrap();
    let core = &crates["weald-core"];
    assert!(core.lines > 1000 && core.documentation > 100, "{core:?}");
    assert!(crates["weald-trees"].methods["Trees"] > 10);
    assert!(crates.contains_key("xtask"));
}
