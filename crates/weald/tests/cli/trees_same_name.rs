//! Tasks of the same subject: each has a tree of its own, whoever makes it.

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::trees_create::listed;
use crate::trees_remove::repository;

/// A repository with so many tasks that are called the same.
fn tasks(count: usize) -> TestEnv {
    let env = repository();
    for _ in 0..count {
        env.ok(&["task", "add", "Same name"]);
    }
    env
}

fn tree_of(env: &TestEnv, task: &str) -> Value {
    env.ok(&["task", "show", task])["task"]["worktree"].clone()
}

#[test]
fn n1_a_derived_name_that_another_task_has_gets_a_number() {
    let env = tasks(5);
    env.ok(&["ensure", "--task", "1"]);
    assert_eq!(
        env.ok(&["new", "--task", "2"])["tree"]["name"],
        "same-name-2"
    );
    assert_eq!(
        env.ok(&["ensure", "--task", "3"])["tree"]["name"],
        "same-name-3"
    );
    // The second time it is the same one; a name that was given is not changed.
    assert_eq!(
        env.ok(&["ensure", "--task", "2"])["tree"]["name"],
        "same-name-2"
    );
    env.refused(&["ensure", "same-name", "--task", "4"], 1, "tree_bound");
    env.refused(&["new", "same-name", "--task", "4"], 1, "tree_exists");
    let work = ["--no-land", "--", "sh", "-c", "echo x > f"];
    let worked = env.ok(&[&["work", "4"][..], &work].concat());
    assert_eq!(worked["agent"]["tree"], "same-name-4", "{worked}");
    env.ok(&[&["agent", "spawn", "5", "--force"][..], &work].concat());
    env.ok(&["agent", "wait", "5"]);
    assert_eq!(tree_of(&env, "5"), "same-name-5");
    assert_eq!(tree_of(&env, "1"), "same-name");
}

#[test]
fn n1_tasks_of_one_name_that_begin_at_once_get_a_tree_each() {
    let env = tasks(6);
    let make = |task: &str| {
        let args = ["--json", "ensure", "--task", task];
        let mut command = env.weald_command(&args);
        command.stdout(std::process::Stdio::piped());
        command
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let all = ["1", "2", "3", "4", "5", "6"].map(make);
    for child in all {
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!(answer.code, 0, "{answer:#?}");
    }
    let mut names = listed(&env);
    names.sort();
    let expected = (1..=6).map(|number| match number {
        1 => "same-name".to_owned(),
        number => format!("same-name-{number}"),
    });
    assert_eq!(json!(names), json!(expected.collect::<Vec<_>>()));
}

#[test]
fn n1_a_branch_that_another_task_left_is_not_in_the_way() {
    let env = tasks(2);
    let failed = env.weald(&[
        "work",
        "1",
        "--",
        "sh",
        "-c",
        "echo x > f; git add f; git commit -qm f; exit 3",
    ]);
    assert_eq!(failed.code, 1, "{failed:#?}");
    env.ok(&["rm", "same-name", "--discard"]);
    let worked = env.weald(&["work", "2", "--", "sh", "-c", "echo x > g"]);
    assert_eq!(worked.code, 0, "{worked:#?}");
}
