//! What is listed is so, and the checks of that can fail.

use xtask::promises::{
    labels, promise_ids, promise_problems, promises_listed, steps_amiss, tests_amiss, tests_named,
};
use xtask::tidy::root;

#[test]
fn z1_every_labelled_step_is_listed_and_passed_somewhere() {
    let amiss = steps_amiss(&root()).unwrap();
    assert!(amiss.is_empty(), "\n{}", amiss.join("\n"));
}

#[test]
fn labels_are_found_wherever_the_line_breaks() {
    let source = "step(\"a.one\"); self.step(running); step_of(\n    \"a.two\",\n    1,\n);";
    let found: Vec<_> = labels(source).into_iter().collect();
    assert_eq!(found, ["a.one", "a.two"]);
}

#[test]
fn every_test_that_the_table_of_faults_names_is_there() {
    let text = std::fs::read_to_string(root().join("docs/faults.md")).unwrap();
    assert!(tests_named(&text).len() > 40, "they are not found");
    let amiss = tests_amiss(&root(), &text).unwrap();
    assert!(amiss.is_empty(), "\n{}", amiss.join("\n"));
}

#[test]
fn a_named_test_that_is_nowhere_is_found() {
    let text = "As `no_such_test_anywhere` shows; `weald doctor` and `one_word` are none.";
    assert_eq!(tests_named(text), ["no_such_test_anywhere"]);
    assert_eq!(tests_amiss(&root(), text).unwrap().len(), 1);
}

#[test]
fn every_promise_has_a_test_and_every_id_of_a_test_is_promised() {
    let text = std::fs::read_to_string(root().join("docs/promises.md")).unwrap();
    assert!(promises_listed(&text).len() > 200, "they are not found");
    let problems = promise_problems(&root(), &text).unwrap();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_promise_without_a_test_and_an_id_without_a_row_are_found() {
    let text = std::fs::read_to_string(root().join("docs/promises.md")).unwrap();
    let row = text
        .lines()
        .find(|line| line.starts_with("| k4 |"))
        .unwrap();
    let without = text.replace(row, "");
    let problems = promise_problems(&root(), &without).unwrap();
    assert_eq!(problems, ["tests carry the id k4, but it has no row"]);
    let unkept = text.replace(row, &format!("{row}\n{row}\n| q99 | Never built. |"));
    let problems = promise_problems(&root(), &unkept).unwrap();
    assert_eq!(
        problems,
        ["q99 has a row, but no test carries it", "k4 has two rows"]
    );
}

#[test]
fn ids_are_read_from_the_beginning_of_a_name() {
    assert_eq!(promise_ids("l9_l10_only_closed_tasks"), ["l9", "l10"]);
    assert_eq!(promise_ids("os28_a_script"), ["os28"]);
    for name in [
        "a_name_with_k4_in_it",
        "sha256_is_read",
        "k_4",
        "x100_of_them",
    ] {
        assert!(promise_ids(name).is_empty(), "{name}");
    }
}
