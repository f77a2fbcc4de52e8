//! What is listed is so, and the checks of that can fail.

use xtask::promises::{labels, steps_amiss, tests_amiss, tests_named};
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
