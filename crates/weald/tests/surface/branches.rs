//! Worktrees for branches that are there before them, compared with git's own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::env;

fn in_tree(env: &TestEnv, path: &Path, args: &[&str]) -> String {
    env.git(&[&["-C", path.to_str().unwrap()], args].concat())
}

/// A branch `name` with two commits on top of `main`'s first, and one more commit on `main`.
fn branch(env: &TestEnv, name: &str) {
    env.git(&["switch", "-q", "-c", name]);
    for file in ["one", "two"] {
        fs::write(env.repo().join(file), "text\n").unwrap();
        env.git(&["add", file]);
        env.git(&["commit", "-q", "-m", file]);
    }
    env.git(&["switch", "-q", "main"]);
    fs::write(env.repo().join("other"), "text\n").unwrap();
    env.git(&["add", "other"]);
    env.git(&["commit", "-q", "-m", "other"]);
}

fn path_of(made: &Value) -> PathBuf {
    made["tree"]["path"].as_str().unwrap().into()
}

#[test]
fn u12_a_worktree_for_a_branch_is_what_git_would_make_and_lands_its_commits() {
    for kind in ["sealed", "linked"] {
        let env = env();
        branch(&env, "feature/x");
        let tip = env.git(&["rev-parse", "feature/x"]);
        let gits = env.root().join("gits");
        env.git(&["worktree", "add", "-q", gits.to_str().unwrap(), "feature/x"]);
        let as_git = |path: &Path| {
            [
                in_tree(&env, path, &["log", "--format=%H %s %an", "HEAD"]),
                in_tree(&env, path, &["status", "--porcelain", "--branch"]),
                in_tree(&env, path, &["rev-parse", "HEAD", "HEAD^{tree}"]),
                in_tree(&env, path, &["ls-files", "-s"]),
            ]
        };
        let gits_own = as_git(&gits);
        // While another worktree has it, weald refuses as git does, and says where.
        let refused = env.refused(&["new", "--branch", "feature/x"], 1, "branch_in_use");
        assert_eq!(refused["error"]["details"]["path"], gits.to_str().unwrap());
        env.git(&["worktree", "remove", gits.to_str().unwrap()]);

        let made = env.ok(&["new", "--branch", "feature/x", "--kind", kind]);
        let tree = &made["tree"];
        assert_eq!(
            (&tree["name"], &tree["branch"]),
            (&"feature-x".into(), &"feature/x".into())
        );
        let path = path_of(&made);
        assert_eq!(as_git(&path), gits_own, "{kind}");
        let base = env.git(&["merge-base", "main", "feature/x"]);
        assert_eq!(tree["base"]["commit"], base.trim());
        let shown = env.ok(&["show", "feature/x"])["tree"].clone();
        assert_eq!(
            (&shown["ahead"], &shown["behind"]),
            (&2.into(), &1.into()),
            "{shown}"
        );
        let diff = env.ok(&["diff", "feature/x"]);
        let files: Vec<_> = diff["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| &file["path"])
            .collect();
        assert_eq!(files, ["one", "two"]);
        let again = env.refused(&["new", "y", "--branch", "feature/x"], 1, "branch_in_use");
        assert_eq!(again["error"]["details"]["path"], path.to_str().unwrap());

        // What is committed there is on the branch; all of it lands.
        fs::write(path.join("three"), "text\n").unwrap();
        let landed = env.ok(&["land", "feature/x", "--commit=all"]);
        assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed}");
        for file in ["one", "two", "three", "other"] {
            assert!(env.repo().join(file).exists(), "{kind}: {file}");
        }
        assert!(!path.exists(), "{kind}");
        // The branch is the user's: it stays, with what was added to it.
        let after = env.git(&["log", "--format=%H", "feature/x"]);
        assert!(after.lines().nth(1) == Some(tip.trim()), "{kind}: {after}");
        assert_eq!(landed["landings"][0]["cleanup"]["branch"], "kept_by_policy");
    }
}

#[test]
fn u12_a_removal_keeps_the_branch_unless_it_landed_and_that_was_asked_for() {
    let env = env();
    branch(&env, "feature/x");
    let tip = env.git(&["rev-parse", "feature/x"]);
    let always = ["--set", "remove.branch=always"];
    for set in [&[][..], &always] {
        env.ok(&["new", "--branch", "feature/x"]);
        let removed = env.ok(&[set, &["rm", "feature-x", "--discard"]].concat());
        let branch = &removed["branch"];
        assert!(
            ["kept_by_policy", "kept_unmerged"].contains(&branch.as_str().unwrap()),
            "{removed}"
        );
        assert_eq!(env.git(&["rev-parse", "feature/x"]), tip);
    }
    env.ok(&["new", "mine", "--branch", "feature/x"]);
    env.ok(&["land", "mine", "--keep"]);
    let removed = env.ok(&[&always[..], &["rm", "mine"]].concat());
    assert_eq!(removed["branch"], "deleted", "{removed}");
    assert_eq!(env.git(&["branch", "--list", "feature/x"]), "");
    // It can still be brought back with its branch.
    env.ok(&["restore", "mine"]);
    assert_eq!(env.git(&["rev-parse", "feature/x"]), tip);
}

#[test]
fn u12_a_branch_that_only_a_remote_has_becomes_one_here_that_follows_it() {
    let env = env();
    let remote = env.root().join("remote.git");
    let remote = remote.to_str().unwrap();
    env.git(&["clone", "-q", "--bare", ".", remote]);
    env.git(&["remote", "add", "origin", remote]);
    for name in ["feature/x", "feature/y", "feature/z"] {
        env.git(&["push", "-q", "origin", &format!("main:refs/heads/{name}")]);
    }
    env.git(&["fetch", "-q", "origin"]);
    let follows = |branch: &str| {
        let key = |what: &str| env.git(&["config", &format!("branch.{branch}.{what}")]);
        (key("remote"), key("merge"))
    };
    // As git does it.
    let gits = env.root().join("gits");
    env.git(&["worktree", "add", "-q", gits.to_str().unwrap(), "feature/z"]);
    let gits_own = follows("feature/z");
    for (word, branch, name) in [
        ("origin/feature/x", "feature/x", "feature-x"),
        ("feature/y", "feature/y", "feature-y"),
    ] {
        let made = env.ok(&["new", "--branch", word]);
        assert_eq!(made["tree"]["branch"], branch);
        assert_eq!(made["tree"]["name"], name);
        let followed = follows(branch);
        assert_eq!(followed.0, gits_own.0);
        assert_eq!(followed.1.trim(), format!("refs/heads/{branch}"));
        let upstream = env.git(&[
            "rev-parse",
            "--abbrev-ref",
            &format!("{branch}@{{upstream}}"),
        ]);
        assert_eq!(upstream.trim(), format!("origin/{branch}"));
    }
    let here = env.refused(&["new", "--branch", "origin/feature/x"], 1, "branch_exists");
    assert_eq!(here["error"]["hint"], "weald new --branch feature/x");
    env.git(&["remote", "add", "fork", remote]);
    env.git(&["push", "-q", "fork", "main:refs/heads/both"]);
    env.git(&["fetch", "-q", "--all"]);
    let several = env.refused(&["new", "--branch", "both"], 1, "ambiguous_name");
    let upstreams = &several["error"]["details"]["upstreams"];
    assert_eq!(upstreams.as_array().unwrap().len(), 2, "{several}");
    assert_eq!(
        env.ok(&["new", "--branch", "fork/both"])["tree"]["branch"],
        "both"
    );
}

#[test]
fn u12_a_branch_that_can_t_be_used_is_refused_and_nothing_is_left() {
    let env = env();
    branch(&env, "feature/login");
    env.git(&["branch", "trash", "feature/login"]);
    env.git(&["switch", "-q", "--orphan", "alien"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "alien"]);
    env.git(&["switch", "-q", "main"]);
    let before = env.git(&["for-each-ref"]);
    for (branch, exit, code, hint) in [
        (
            "main",
            1,
            "target_branch",
            "to start from it: weald new NAME --base main",
        ),
        (
            "feature/logn",
            4,
            "no_branch",
            "did you mean feature/login? to list them: git branch --all",
        ),
        ("../x", 4, "no_branch", ""),
        ("-x", 2, "usage", ""),
        (
            "trash",
            2,
            "invalid_name",
            "give it another name: weald new NAME --branch trash",
        ),
        (
            "alien",
            1,
            "unrelated_histories",
            "name the branch it lands on: --target BRANCH",
        ),
    ] {
        let refused = env.refused(&["new", "--branch", branch], exit, code);
        if !hint.is_empty() {
            assert_eq!(refused["error"]["hint"], hint, "{branch}");
        }
    }
    env.refused(
        &["new", "--branch", "feature/login", "--base", "main"],
        2,
        "usage",
    );
    assert_eq!(env.git(&["for-each-ref"]), before);
    assert_eq!(env.ok(&["list"])["trees"].as_array().unwrap().len(), 0);
    // A name of its own helps where the branch gives none.
    assert_eq!(
        env.ok(&["new", "bin", "--branch", "trash"])["tree"]["branch"],
        "trash"
    );
}
