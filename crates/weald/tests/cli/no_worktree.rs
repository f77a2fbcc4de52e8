//! `weald work --no-worktree`: the main checkout is the one directory that the agent writes.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::phases::ended;
use crate::trees_create::listed;
use crate::trees_remove::repository;

fn work(env: &TestEnv, script: &str) -> Answer {
    env.weald_alone(&[
        "work",
        "In main",
        "--no-worktree",
        "--json",
        "--",
        "sh",
        "-c",
        script,
    ])
}

#[test]
fn p5_an_agent_without_a_tree_works_in_the_main_checkout_and_nowhere_else() {
    let env = repository();
    let other = env.root().join("other");
    fs::write(&other, "kept\n").unwrap();
    let script = format!(
        "pwd > where; echo x > committed; git add committed; git commit -q -m 'by the agent'; \
         echo bad > {other} || true; ls -A .git/weald > seen; echo x > .git/weald/mine || true; test -z \"$WEALD_TREE\"",
        other = other.display()
    );
    let answer = work(&env, &script);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(answer.stderr.contains("works in"), "it warns: {answer:#?}");
    let where_it_was = fs::read_to_string(env.repo().join("where")).unwrap();
    assert_eq!(where_it_was.trim(), env.repo().display().to_string());
    assert_eq!(
        env.git(&["log", "-1", "--format=%s"]).trim(),
        "by the agent"
    );
    assert_eq!(fs::read_to_string(&other).unwrap(), "kept\n");
    assert!(!env.repo().join(".git/weald/mine").exists());
    let seen = fs::read_to_string(env.repo().join("seen")).unwrap();
    assert!(
        !seen.contains("private") && !seen.contains("vault"),
        "{seen}"
    );
    let agent = &ended(&env)[0];
    assert_eq!(
        (&agent["in_main"], &agent["tree"]),
        (&json!(true), &Value::Null)
    );
    let task = &env.ok(&["task", "show", "1"])["task"];
    assert_eq!(task["status"], "completed");
    assert!(listed(&env).is_empty());
}

#[test]
fn p5_trees_inside_the_checkout_are_not_reached() {
    let env = repository();
    env.ok(&["config", "set", "tree.path", "{repo}/.worktrees/{name}"]);
    env.ok(&["new", "a"]);
    let answer = work(
        &env,
        "echo bad > .worktrees/a/config.py; ls -A .worktrees/a > seen; true",
    );
    assert_eq!(answer.code, 0, "{answer:#?}");
    let kept = fs::read_to_string(env.repo().join(".worktrees/a/config.py")).unwrap();
    assert_eq!(kept, "base\n");
    assert_eq!(fs::read_to_string(env.repo().join("seen")).unwrap(), "");
}

#[test]
fn p5_an_agent_s_session_does_not_get_the_main_checkout() {
    let env = repository();
    env.ok(&["task", "add", "In main"]);
    let mut command = env.weald_command(&["work", "1", "--no-worktree", "--json", "--", "true"]);
    let answer = Answer::of(command.env("CLAUDECODE", "1").output().unwrap());
    assert_eq!(
        (answer.code, answer.error_code().as_str()),
        (1, "agent_session")
    );
    assert_eq!(env.ok(&["task", "show", "1"])["task"]["status"], "pending");
    let failing = work(&env, "exit 9");
    assert_eq!(failing.code, 1, "{failing:#?}");
    assert_eq!(failing.json()["task"]["status"], "failed");
}
