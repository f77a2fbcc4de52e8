//! Work that is not on an agent's branch: with nothing to land its task waits, and the answer says what is where.

use serde_json::json;

use crate::trees_create::listed;
use crate::trees_remove::repository;
use crate::work::{status, work};

#[test]
fn p1_work_on_another_branch_is_told_and_its_task_waits() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let script = "own=$(git branch --show-current); echo x >> f; git checkout -q -B side; git add f; \
                  git commit -qm f; git checkout -q $own";
    let answer = work(&env, "1", script);
    assert_eq!(answer.code, 1, "{answer:#?}");
    let told = answer.json();
    assert_eq!(told["agent"]["end"]["outcome"], "not_landed", "{told:#}");
    assert_eq!(status(&env, "1"), json!("in_progress"));
    let parked = told["task"]["parked"].as_str().unwrap();
    assert!(
        parked.contains("1 commit that main does not have"),
        "{parked}"
    );
    assert_eq!(listed(&env), ["fix-it"]);
    // The agent has to mend it, so it runs again; a merge is what was missing.
    let script = "git merge -q side";
    let answer = env.weald(&["resume", "1", "--json", "--", "sh", "-c", script]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(env.git(&["show", "main:f"]), "x\n");
    assert!(listed(&env).is_empty());
}

#[test]
fn p1_a_stash_is_told_and_its_task_waits() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let answer = work(&env, "1", "echo x >> config.py; git stash -q");
    assert_eq!(answer.code, 1, "{answer:#?}");
    let parked = answer.json()["task"]["parked"].clone();
    let parked = parked.as_str().unwrap();
    assert!(parked.contains("that main does not have"), "{parked}");
    assert_eq!(status(&env, "1"), json!("in_progress"));
    assert_eq!(listed(&env), ["fix-it"]);
}

/// A lock says nothing about work.
#[test]
fn p1_a_locked_tree_with_nothing_in_it_stays_and_its_lock_says_nothing_about_work() {
    let env = repository();
    env.ok(&["task", "add", "Look at it"]);
    env.ok(&["ensure", "--task", "1"]);
    env.ok(&["lock", "look-at-it"]);
    let answer = work(&env, "1", "true");
    assert_eq!(
        (answer.code, status(&env, "1")),
        (1, json!("in_progress")),
        "{answer:#?}"
    );
    let parked = answer.json()["task"]["parked"].to_string();
    assert!(parked.contains("changed nothing"), "{parked}");
    assert_eq!(listed(&env), ["look-at-it"]);
    env.ok(&["config", "set", "work.on_empty", "complete"]);
    let answer = env.weald(&["resume", "1", "--json", "--", "true"]);
    assert_eq!(
        (answer.code, status(&env, "1")),
        (0, json!("completed")),
        "{answer:#?}"
    );
    assert_eq!(listed(&env), ["look-at-it"]);
}
