//! Taking back what weald did last: what comes back, what refuses, and that it happens once.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, events, git_in, grow, repository};
use crate::trees_trash::manifest;

/// The places of the events about a tree of this kind.
fn places(env: &TestEnv, tree: &str, kind: &str) -> Vec<u64> {
    let found = events(env, tree).into_iter();
    let found = found.filter(|(known, _)| known == kind);
    found
        .map(|(_, event)| event["sequence"].as_u64().unwrap())
        .collect()
}

fn status(env: &TestEnv, name: &str) -> Value {
    env.ok(&["show", name])["tree"]["status"].clone()
}

#[test]
fn undo_brings_removals_back_one_after_the_other() {
    for kind in KINDS {
        let env = repository();
        let first = grow(&env, "first", kind);
        commit(&env, &first, "new.txt", "work\n");
        fs::write(first.join("draft"), "mine").unwrap();
        env.ok(&["keep", "first"]);
        env.ok(&["task", "add", "something"]);
        env.ok(&["task", "bind", "1", "first"]);
        let second = grow(&env, "second", kind);
        let before = (manifest(&first), manifest(&second));
        env.ok(&["rm", "first", "--discard", "--force"]);
        env.ok(&["rm", "second"]);
        let would = env.ok(&["undo", "--dry-run"]);
        assert_eq!(would["would_undo"]["type"], "tree.trashed", "{would}");
        assert!(!second.exists());
        let listed = env.ok(&["undo", "--list"]);
        assert_eq!(listed["operations"].as_array().unwrap().len(), 2);
        let undone = env.ok(&["undo"]);
        assert_eq!(undone["undone"], "tree.trashed", "{undone}");
        assert_eq!(undone["trees"][0]["name"], "second");
        let place = places(&env, "second", "tree.trashed")[0];
        assert_eq!(undone["event"], place);
        let undone = env.ok(&["undo"]);
        assert_eq!(undone["trees"][0]["name"], "first");
        assert_eq!(status(&env, "first"), "kept", "as it was");
        assert_eq!(env.ok(&["show", "first"])["tree"]["task"], 1);
        // The first restore of the first tree ended the removal; what is in it never changed.
        let without_index = |mut found: std::collections::BTreeMap<_, _>| {
            found.retain(|path: &std::path::PathBuf, _| !path.ends_with(".git/index"));
            found
        };
        let after = (manifest(&first), manifest(&second));
        assert_eq!(without_index(after.0), without_index(before.0), "{kind}");
        assert_eq!(without_index(after.1), without_index(before.1), "{kind}");
        env.refused(&["undo"], 1, "nothing_to_undo");
        let place = place.to_string();
        env.refused(&["undo", &place], 1, "undone_already");
        let restored = places(&env, "second", "tree.restored")[0].to_string();
        env.refused(&["undo", &restored], 1, "not_undoable");
        env.refused(&["undo", "9999"], 4, "event_not_found");
    }
}

#[test]
fn undo_takes_a_landing_back_with_its_tree_and_task() {
    let env = repository();
    env.ok(&["task", "add", "something"]);
    let path = grow(&env, "a", "sealed");
    env.ok(&["task", "bind", "1", "a"]);
    let tip = commit(&env, &path, "new.txt", "work\n");
    env.ok(&["land", "a"]);
    assert!(!path.exists() && env.repo().join("new.txt").exists());
    let landed = env.git(&["rev-parse", "main"]);
    let undone = env.ok(&["undo"]);
    assert_eq!(undone["undone"], "landing.landed", "{undone}");
    assert_eq!(undone["landing"], 1);
    assert_eq!(undone["trees"][0]["name"], "a");
    assert!(!env.repo().join("new.txt").exists());
    assert_eq!(env.git(&["rev-parse", "main~1"]), landed);
    assert_eq!(env.git(&["rev-parse", "wt/a"]).trim(), tip);
    assert_eq!(status(&env, "a"), "active");
    let task = &env.ok(&["task", "show", "1"])["task"];
    assert_eq!(task["worktree"], "a", "{task}");
    assert_ne!(task["status"], "completed", "{task}");
    // The revert is not undone again.
    env.refused(&["undo"], 1, "nothing_to_undo");
    assert_eq!(env.git(&["rev-parse", "main~1"]), landed);
}

#[test]
fn undo_of_a_landing_that_others_built_upon_is_a_conflict_and_changes_nothing() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "config.py", "landed\n");
    env.ok(&["land", "a"]);
    fs::write(env.repo().join("config.py"), "more\n").unwrap();
    env.git(&["commit", "-qam", "more"]);
    let before = env.git(&["rev-parse", "main"]);
    let answer = env.weald(&["--json", "undo"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert_eq!(env.git(&["rev-parse", "main"]), before);
    assert!(!path.exists());
    let listed = env.ok(&["undo", "--list"]);
    assert_eq!(listed["operations"][0]["type"], "landing.landed");
}

#[test]
fn undo_binds_and_locks_again() {
    let env = repository();
    grow(&env, "a", "sealed");
    env.ok(&["task", "add", "something"]);
    env.ok(&["task", "bind", "1", "a"]);
    env.ok(&["task", "unbind", "1"]);
    env.ok(&["lock", "a", "--reason", "mine"]);
    env.ok(&["unlock", "a"]);
    let locked = |env: &TestEnv| env.ok(&["show", "a"])["tree"]["locked"]["reason"].clone();
    assert_eq!(env.ok(&["undo"])["undone"], "tree.unlocked");
    assert_eq!(locked(&env), "mine");
    let shown = env.git(&["worktree", "list", "--porcelain"]);
    assert!(shown.contains("mine"), "git shows it, too: {shown}");
    assert_eq!(env.ok(&["undo"])["undone"], "tree.locked");
    assert_eq!(locked(&env), Value::Null);
    let undone = env.ok(&["undo"]);
    assert_eq!(undone["undone"], "task.unbound");
    assert_eq!(undone["task"]["worktree"], "a");
    assert_eq!(env.ok(&["show", "a"])["tree"]["task"], 1);
    env.refused(&["undo"], 1, "nothing_to_undo");
}

#[test]
fn undo_refuses_what_would_not_come_back_as_it_was() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "new.txt", "work\n");
    env.ok(&["rm", "a", "--discard"]);
    // The branch holds what the target lacks, so it stayed; somebody goes on with it.
    let elsewhere = env.root().join("elsewhere");
    let args = ["worktree", "add", "-q", elsewhere.to_str().unwrap(), "wt/a"];
    env.git(&args);
    commit(&env, &elsewhere, "more.txt", "more\n");
    let refused = env.refused(&["undo"], 1, "undo_inexact");
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("weald restore"), "{hint}");
    git_in(&env, &elsewhere, &["reset", "-q", "--hard", "HEAD~1"]);
    env.git(&["worktree", "remove", "--force", elsewhere.to_str().unwrap()]);
    // A tree of the same name.
    env.git(&["branch", "-m", "wt/a", "aside"]);
    grow(&env, "a", "sealed");
    env.refused(&["undo"], 1, "undo_inexact");
    env.ok(&["rm", "a"]);
    env.ok(&["undo"]);
    env.ok(&["rm", "a"]);
    // Deleted for good.
    env.ok(&["trash", "purge", "--older-than", "1ms", "--apply"]);
    env.refused(&["undo"], 1, "undo_gone");
}

#[test]
fn undo_is_for_persons() {
    let env = repository();
    grow(&env, "a", "sealed");
    env.ok(&["rm", "a"]);
    let mut asked = env.weald_command(&["--json", "undo"]);
    let output = asked.env("CLAUDECODE", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("agent_session"), "{text}");
    assert!(!env.root().join("app.weald/a").exists());
}

#[test]
fn of_many_undos_at_once_one_does_it() {
    let env = repository();
    grow(&env, "a", "sealed");
    env.ok(&["rm", "a"]);
    let place = places(&env, "a", "tree.trashed")[0].to_string();
    let started: Vec<_> = (0..4)
        .map(|_| {
            let mut command = env.weald_command(&["--json", "undo", &place]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let ended = started
        .into_iter()
        .map(|one| one.wait_with_output().unwrap());
    let codes: Vec<_> = ended.map(|output| output.status.code().unwrap()).collect();
    let done = codes.iter().filter(|code| **code == 0).count();
    assert_eq!(done, 1, "{codes:?}");
    assert_eq!(places(&env, "a", "tree.restored").len(), 1);
    assert_eq!(status(&env, "a"), "active");
}

#[test]
fn z1_undo_killed_at_any_step_is_finished_by_the_next() {
    for step in ["undo.restored", "undo.done"] {
        let env = repository();
        let path = grow(&env, "a", "sealed");
        fs::write(path.join("draft"), "mine").unwrap();
        env.ok(&["keep", "a"]);
        env.ok(&["rm", "a", "--discard"]);
        let mut killed = env.weald_command(&["undo"]);
        let killed = killed.env("WEALD_STEP", format!("kill:{step}"));
        assert!(
            killed
                .stdout(Stdio::null())
                .status()
                .unwrap()
                .code()
                .is_none()
        );
        let next = env.weald(&["--json", "undo"]);
        assert_eq!(next.error_code(), "nothing_to_undo", "{step}: {next:?}");
        assert_eq!(fs::read_to_string(path.join("draft")).unwrap(), "mine");
        assert_eq!(status(&env, "a"), json!("kept"), "{step}");
        assert_eq!(env.weald(&["doctor"]).code, 0);
    }
}

#[test]
fn undo_takes_a_clean_up_back_as_one_also_after_a_kill() {
    let env = repository();
    let first = crate::clean::abandoned(&env, "first", "sealed");
    let second = crate::clean::abandoned(&env, "second", "linked");
    env.ok(&["clean", "--apply", "--min-age", "0"]);
    assert!(!first.exists() && !second.exists());
    let mut killed = env.weald_command(&["undo"]);
    let killed = killed.env("WEALD_STEP", "kill:undo.restored");
    assert!(
        killed
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .code()
            .is_none()
    );
    assert_ne!(first.exists(), second.exists(), "one is back");
    let undone = env.ok(&["undo"]);
    assert_eq!(undone["undone"], "clean.begun", "{undone}");
    assert!(first.exists() && second.exists());
    env.refused(&["undo"], 1, "nothing_to_undo");
}
