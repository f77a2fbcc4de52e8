//! Changes that are not committed: committed first if that is asked for, all or nothing, with the tree's own hooks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository, try_git};

/// A tree with a staged, an unstaged and an untracked change, and an ignored file.
fn changed(kind: &str) -> (TestEnv, PathBuf) {
    let env = repository();
    let tree = grow(&env, "a", kind);
    commit(&env, &tree, "staged", "s\n");
    commit(&env, &tree, "unstaged", "u\n");
    fs::write(tree.join("staged"), "S\n").unwrap();
    git_in(&env, &tree, &["add", "staged"]);
    fs::write(tree.join("unstaged"), "U\n").unwrap();
    fs::write(tree.join("new"), "n\n").unwrap();
    fs::write(tree.join("build.log"), "l\n").unwrap();
    (env, tree)
}

fn land(env: &TestEnv, commit: &str, more: &[&str]) -> Value {
    let args = ["land", "a", "--keep", "--json", commit, "-m", "All of it"];
    let answer = env.weald(&[&args[..], more].concat());
    answer.json()["landings"][0].clone()
}

/// A file of the tree's repository, wherever that is.
fn git_path(env: &TestEnv, tree: &Path, name: &str) -> PathBuf {
    let path = git_in(env, tree, &["rev-parse", "--git-path", name]);
    tree.join(path.trim())
}

fn hook(env: &TestEnv, tree: &Path, name: &str, script: &str) {
    let hooks = git_path(env, tree, "hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(hooks.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

/// What must be the same after a commit that was not made.
fn untouched(env: &TestEnv, tree: &Path) -> (Vec<u8>, String, bool, String) {
    (
        fs::read(git_path(env, tree, "index")).unwrap(),
        git_in(env, tree, &["rev-parse", "HEAD"]),
        git_path(env, tree, "index.lock").exists(),
        env.git(&["rev-parse", "main"]),
    )
}

#[test]
fn m8_changes_are_committed_first_if_asked_for() {
    for kind in KINDS {
        for (scope, left) in [("--commit", "?? new\n"), ("--commit=all", "")] {
            let (env, tree) = changed(kind);
            let landing = land(&env, scope, &[]);
            assert_eq!(landing["outcome"], "landed", "{kind} {scope}: {landing}");
            let status = git_in(&env, &tree, &["status", "--porcelain"]);
            assert_eq!(status, left, "{kind} {scope}");
            let message = git_in(&env, &tree, &["log", "-1", "--format=%B"]);
            assert_eq!(message.trim(), "All of it");
            let files = env.git(&["ls-tree", "--name-only", "main"]);
            assert_eq!(files.contains("new"), left.is_empty(), "{files}");
            assert!(!files.contains("build.log"), "{files}");
            for (file, text) in [("staged", "S\n"), ("unstaged", "U\n")] {
                assert_eq!(env.git(&["show", &format!("main:{file}")]), text);
            }
            assert!(!git_path(&env, &tree, "index.lock").exists());
            git_in(&env, &tree, &["fsck", "--connectivity-only"]);
        }
    }
}

#[test]
fn m8_a_change_in_the_tick_in_which_a_file_was_staged_is_committed() {
    for kind in KINDS {
        let env = repository();
        let tree = grow(&env, "a", kind);
        commit(&env, &tree, "file", "1\n");
        // The time that a file changes its state can't be set, so git must not look at it here.
        git_in(&env, &tree, &["config", "core.trustctime", "false"]);
        let tick = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let at_tick = |path: &Path| {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(tick).unwrap();
        };
        let file = tree.join("file");
        at_tick(&file);
        git_in(&env, &tree, &["update-index", "--refresh"]);
        at_tick(&git_path(&env, &tree, "index"));
        fs::write(&file, "2\n").unwrap();
        at_tick(&file);
        let landing = land(&env, "--commit", &[]);
        assert_eq!(landing["outcome"], "landed", "{kind}: {landing}");
        assert_eq!(env.git(&["show", "main:file"]), "2\n", "{kind}");
    }
}

#[test]
fn m8_a_failing_hook_leaves_index_and_head_as_they_were() {
    for kind in KINDS {
        for name in ["pre-commit", "prepare-commit-msg", "commit-msg"] {
            for scope in ["--commit", "--commit=all"] {
                let (env, tree) = changed(kind);
                let script = "git add -A; echo no way >&2; exit 1";
                hook(&env, &tree, name, script);
                let before = untouched(&env, &tree);
                let landing = land(&env, scope, &[]);
                assert_eq!(landing["reason"]["code"], "not_committed", "{landing}");
                let message = landing["reason"]["message"].as_str().unwrap();
                assert!(message.contains("no way"), "{message}");
                assert_eq!(untouched(&env, &tree), before, "{kind} {name} {scope}");
            }
        }
    }
}

#[test]
fn m8_hooks_run_as_git_runs_them_but_in_the_sandbox() {
    let (env, tree) = changed("sealed");
    let outside = env.root().join("outside");
    let script = format!(
        "echo formatted > staged; git add staged; echo x > {}; true",
        outside.display()
    );
    hook(&env, &tree, "pre-commit", &script);
    hook(
        &env,
        &tree,
        "post-commit",
        "git rev-parse HEAD > build.log; env > env.log",
    );
    let landing = land(&env, "--commit", &[]);
    assert_eq!(landing["outcome"], "landed", "{landing}");
    assert_eq!(env.git(&["show", "main:staged"]), "formatted\n");
    assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "?? new\n");
    let head = git_in(&env, &tree, &["rev-parse", "HEAD"]);
    assert_eq!(fs::read_to_string(tree.join("build.log")).unwrap(), head);
    let seen = fs::read_to_string(tree.join("env.log")).unwrap();
    assert!(!seen.contains("GIT_WORK_TREE"), "{seen}");
    assert!(!outside.exists());
}

#[test]
fn m8_untracked_files_alone_are_refused_and_told_when_left_behind() {
    for kind in KINDS {
        let env = repository();
        let tree = grow(&env, "a", kind);
        fs::write(tree.join("new"), "n\n").unwrap();
        let before = env.git(&["rev-parse", "main"]);
        let refused = env.weald(&["land", "a", "--json"]);
        let landing = refused.json()["landings"][0].clone();
        assert_eq!(refused.code, 1, "{refused:#?}");
        assert_eq!(landing["outcome"], "refused", "{landing}");
        assert_eq!(landing["reason"]["code"], "tree_dirty", "{landing}");
        let hint = "weald land a --commit=all -m MESSAGE";
        assert_eq!(landing["reason"]["hint"], hint);
        assert_eq!(env.git(&["rev-parse", "main"]), before);
        commit(&env, &tree, "mine", "m\n");
        let landed = env.weald(&["land", "a", "--json", "--keep"]);
        assert_eq!(landed.json()["landings"][0]["outcome"], "landed");
        assert!(
            landed.stderr.contains("left out 1 untracked file in a")
                && landed.stderr.contains(hint),
            "{landed:#?}"
        );
        // What a squash landed counts as landed here, too.
        let again = env.weald(&["land", "a", "--json"]);
        let reason = again.json()["landings"][0]["reason"]["code"].clone();
        assert_eq!(reason, "tree_dirty", "{again:#?}");
        assert!(tree.join("new").exists());
        let all = ["land", "a", "--json", "--commit=all", "-m", "All"];
        let done = env.weald(&all);
        assert_eq!(done.json()["landings"][0]["outcome"], "landed");
        assert_eq!(done.stderr, "", "nothing stayed behind");
        assert_eq!(env.git(&["show", "main:new"]), "n\n");
    }
}

#[test]
fn m9_nothing_is_committed_in_the_middle_of_something() {
    let (env, tree) = changed("sealed");
    // Another git is at work.
    fs::write(git_path(&env, &tree, "index.lock"), "theirs").unwrap();
    let before = untouched(&env, &tree);
    let landing = land(&env, "--commit", &[]);
    assert_eq!(landing["reason"]["code"], "not_committed", "{landing}");
    assert_eq!(untouched(&env, &tree), before);
    fs::remove_file(git_path(&env, &tree, "index.lock")).unwrap();
    git_in(&env, &tree, &["stash", "-q", "-u"]);
    git_in(&env, &tree, &["checkout", "-q", "-b", "other", "HEAD~1"]);
    commit(&env, &tree, "unstaged", "other\n");
    assert!(!try_git(&env, &tree, &["merge", "-q", "wt/a"]).0);
    let before = untouched(&env, &tree);
    let landing = land(&env, "--commit=all", &[]);
    assert_eq!(landing["outcome"], "refused", "{landing}");
    assert!(landing["reason"]["message"].to_string().contains("merge"));
    assert_eq!(untouched(&env, &tree), before);
    assert!(git_path(&env, &tree, "MERGE_HEAD").exists());
}

#[test]
fn m10_a_tree_without_a_name_and_with_signing_commits_all_the_same() {
    let (env, tree) = changed("sealed");
    for key in ["user.name", "user.email"] {
        env.git(&["config", "--unset", key]);
        git_in(&env, &tree, &["config", "--unset", key]);
    }
    git_in(&env, &tree, &["config", "user.useConfigOnly", "true"]);
    git_in(&env, &tree, &["config", "commit.gpgsign", "true"]);
    let identity = "landing.identity=Somebody <some@example.com>";
    let landing = land(&env, "--commit", &["--set", identity]);
    assert_eq!(landing["outcome"], "landed", "{landing}");
    let author = git_in(&env, &tree, &["log", "-1", "--format=%an <%ae> %cn"]);
    assert_eq!(author.trim(), "Somebody <some@example.com> Somebody");
}

#[test]
fn m8_nothing_to_commit_is_no_error() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let head = commit(&env, &tree, "mine", "m\n");
    let landing = land(&env, "--commit=all", &[]);
    assert_eq!(landing["outcome"], "landed", "{landing}");
    assert_eq!(landing["head"], head);
}
