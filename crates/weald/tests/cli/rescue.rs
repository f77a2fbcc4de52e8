//! Rescue: what an agent left is shown and saved before anything else.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::show;
use crate::landing_gate::wait_until;
use crate::phases::{begin, events};
use crate::trees_create::listed;
use crate::trees_remove::{git_in, repository, try_git};

/// A task whose agent committed one file, changed another, added a third, and died.
fn wrecked() -> TestEnv {
    let env = repository();
    let script = "echo committed > one; git add one; git commit -q -m one; echo changed > config.py; \
        printf 'a\\0b' > new; echo staged > staged; git add staged; echo the last words; kill -9 $$";
    let answer = env.weald(&["work", "Fix it", "--new", "--", "sh", "-c", script]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    env
}

fn files(env: &TestEnv) -> [String; 4] {
    let tree = env.root().join("app.weald/fix-it");
    ["one", "config.py", "new", "staged"]
        .map(|name| fs::read_to_string(tree.join(name)).unwrap_or_default())
}

const LEFT: [&str; 4] = ["committed\n", "changed\n", "a\0b", "staged\n"];

#[test]
fn s18_the_evidence_is_shown_and_saved_and_nothing_else_changes() {
    let env = wrecked();
    let told = env.ok(&["rescue", "1"]);
    let rescue = &told["rescue"];
    assert_eq!(rescue["diagnosis"], "crash");
    assert_eq!(rescue["last_output"], json!(["the last words"]));
    let names = rescue["uncommitted"].as_array().unwrap().iter();
    let mut names: Vec<_> = names.map(|file| file["path"].as_str().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["config.py", "new", "staged"]);
    assert_eq!(rescue["tree"]["ahead"], 1);
    assert_eq!(files(&env), LEFT);
    let status = env.ok(&["task", "show", "1"])["task"]["status"].clone();
    assert_eq!(status, "pending");
    let said = env.weald(&["rescue", "1"]).stdout;
    for part in [
        "the last words",
        "config.py",
        "--continue",
        "--restart",
        "--patch FILE",
        "--trash",
        "snapshot",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The snapshot brings it back.
    let tree = env.root().join("app.weald/fix-it");
    git_in(&env, &tree, &["reset", "-q", "--hard"]);
    fs::remove_file(tree.join("new")).unwrap();
    let id = rescue["snapshot"]["id"].to_string();
    env.ok(&["snapshot", "restore", "fix-it", &id]);
    assert_eq!(files(&env), LEFT);
}

#[test]
fn s18_a_patch_holds_everything_since_the_base() {
    let env = wrecked();
    let patch = env.root().join("rescued.patch");
    env.ok(&["rescue", "1", "--patch", patch.to_str().unwrap()]);
    assert_eq!(files(&env), LEFT);
    let (done, said) = try_git(&env, &env.repo(), &["apply", patch.to_str().unwrap()]);
    assert!(done, "{said}");
    let read = |name: &str| fs::read_to_string(env.repo().join(name)).unwrap();
    assert_eq!(["one", "config.py", "new", "staged"].map(read), LEFT);
}

#[test]
fn s18_uncommitted_work_can_be_committed_and_gone_on_with() {
    let env = wrecked();
    env.ok(&["rescue", "1", "--commit"]);
    let tree = env.root().join("app.weald/fix-it");
    assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
    assert_eq!(env.git(&["show", "wt/fix-it:config.py"]), "changed\n");
    let answer = env.weald(&[
        "rescue",
        "1",
        "--continue",
        "--",
        "sh",
        "-c",
        "echo done > done",
    ]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(show(&env, "config.py"), "changed\n");
    assert_eq!(show(&env, "done"), "done\n");
}

#[test]
fn s18_a_restart_that_nobody_can_begin_takes_nothing_away() {
    let env = wrecked();
    let before = listed(&env);
    let answer = env.weald(&["rescue", "1", "--restart", "--driver", "nope", "--json"]);
    assert_ne!(answer.code, 0, "{answer:#?}");
    assert_eq!(listed(&env), before);
}

#[test]
fn s18_a_restart_begins_anew_and_keeps_the_old_work() {
    let env = wrecked();
    let head = env.git(&["rev-parse", "wt/fix-it"]);
    let script = "test ! -e one && echo fresh > fresh";
    let answer = env.weald(&["rescue", "1", "--restart", "--", "sh", "-c", script]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(show(&env, "fresh"), "fresh\n");
    assert!(!try_git(&env, &env.repo(), &["show", "main:one"]).0);
    let trash = env.ok(&["trash", "list"]);
    let old: Vec<&Value> = trash["trash"].as_array().unwrap().iter().collect();
    assert_eq!(
        old.len(),
        2,
        "the old one, and the one that landed: {trash}"
    );
    let vault = env.repo().join(".git/weald/vault");
    let (kept, said) = try_git(&env, &vault, &["cat-file", "-e", head.trim()]);
    assert!(kept, "{said}");
    env.ok(&["trash", "restore", &old[0]["id"].to_string()]);
    let restored = listed(&env);
    assert_eq!(restored.len(), 1, "{restored:?}");
}

#[test]
fn s18_a_tree_can_go_to_the_trash() {
    let env = wrecked();
    env.ok(&["rescue", "1", "--trash"]);
    assert!(listed(&env).is_empty());
    env.refused(&["rescue", "1", "--trash"], 1, "no_tree");
}

#[test]
fn s18_a_working_agent_is_left_alone() {
    let env = repository();
    let mut child = begin(&env, &["work", "Fix it", "--new", "--", "sleep", "300"]);
    wait_until(|| events(&env, "agent.started").len() == 1);
    for choice in ["--continue", "--restart", "--trash", "--commit"] {
        env.refused(&["rescue", "1", choice], 5, "agent_running");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    child.wait().unwrap();
}

#[test]
fn s18_a_task_goes_on_with_the_branch_that_its_removed_tree_left() {
    let env = wrecked();
    let agents = || {
        env.ok(&["agent", "list", "--all"])["agents"]
            .as_array()
            .unwrap()
            .len()
    };
    let removed = env.ok(&["rm", "fix-it", "--discard"]);
    assert_eq!(removed["branch"], "kept_unmerged", "{removed}");
    // Somebody went on with the branch: it is not the task's own any more, and nothing is begun.
    let tip = env.git(&["rev-parse", "wt/fix-it"]);
    env.git(&["update-ref", "refs/heads/wt/fix-it", "main"]);
    let before = agents();
    let owner = || env.ok(&["task", "show", "1"])["task"]["owner"].clone();
    let owned = owner();
    env.refused(&["resume", "1", "--", "true"], 1, "branch_exists");
    assert_eq!(agents(), before, "an agent was recorded");
    assert_eq!(owner(), owned);
    env.git(&["update-ref", "refs/heads/wt/fix-it", tip.trim()]);
    let script = "test -f one && echo two > two && git add two && git commit -q -m two";
    let done = env.weald(&["resume", "1", "--", "sh", "-c", script]);
    assert_eq!(done.code, 0, "{done:#?}");
    let there = env.git(&["ls-tree", "--name-only", "main"]);
    assert!(there.contains("one") && there.contains("two"), "{there}");
}
