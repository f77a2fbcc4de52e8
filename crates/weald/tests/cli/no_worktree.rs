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

/// Whoever goes on goes on in main: there is no tree that holds what was begun.
#[test]
fn p5_resume_and_restart_go_on_in_the_main_checkout() {
    let env = repository();
    let failing = work(&env, "echo x >> here; test -e good");
    assert_eq!(failing.json()["task"]["status"], "failed", "{failing:#?}");
    let resumed = env.weald_alone(&["resume", "1", "--json"]);
    assert_eq!(resumed.code, 1, "{resumed:#?}");
    let restarted = env.weald_alone(&["agent", "restart", "1", "--json"]);
    assert_eq!(restarted.code, 0, "{restarted:#?}");
    env.ok(&["agent", "wait", "1"]);
    fs::write(env.repo().join("good"), "").unwrap();
    let resumed = env.weald_alone(&["resume", "1", "--json"]);
    assert_eq!(resumed.code, 0, "{resumed:#?}");
    assert!(
        resumed.stderr.contains("works in"),
        "it warns: {resumed:#?}"
    );
    let here = fs::read_to_string(env.repo().join("here")).unwrap();
    assert_eq!(here, "x\n".repeat(4));
    let modes = ended(&env)
        .iter()
        .map(|agent| agent["in_main"].clone())
        .collect::<Vec<_>>();
    assert_eq!(modes, vec![json!(true); 4]);
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["status"],
        "completed"
    );
    assert!(listed(&env).is_empty());
}

#[test]
fn p5_one_agent_at_a_time_has_the_main_checkout() {
    let env = repository();
    for subject in ["First", "Second"] {
        env.ok(&["task", "add", subject]);
    }
    let script = "until test -e go; do sleep 0.02; done";
    let in_main = |task: &str, script: &str| {
        let args = [
            "work",
            task,
            "--no-worktree",
            "--detach",
            "--json",
            "--",
            "sh",
            "-c",
            script,
        ];
        env.weald_alone(&args)
    };
    assert_eq!(in_main("1", script).code, 0);
    let second = in_main("2", "true");
    assert_eq!(
        (second.code, second.error_code().as_str()),
        (5, "main_busy")
    );
    assert!(
        second.stdout.contains("agent a1 is working in"),
        "{second:#?}"
    );
    assert_eq!(env.ok(&["task", "show", "2"])["task"]["status"], "pending");
    fs::write(env.repo().join("go"), "").unwrap();
    env.ok(&["agent", "wait", "1"]);
    assert_eq!(in_main("2", "true").code, 0);
    env.ok(&["agent", "wait", "2"]);
}
