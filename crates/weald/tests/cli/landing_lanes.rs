//! Landings where worktrees lie inside the checkout, and where the target got another name.

use std::fs;
use std::path::{Path, PathBuf};

use weald_testkit::TestEnv;

use crate::landing::{land, landed, rev};
use crate::trees_refuse::manifest;
use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

/// Commits an entry that no honest git would stage: `path` holds `text`, also in a folder of somebody else's.
fn commit_at(env: &TestEnv, tree: &Path, path: &str, mode: &str) {
    fs::write(env.root().join("text"), "brought\n").unwrap();
    let from = env.root().join("text");
    let blob = git_in(env, tree, &["hash-object", "-w", from.to_str().unwrap()]);
    let entry = format!("{mode},{},{path}", blob.trim());
    git_in(env, tree, &["update-index", "--add", "--cacheinfo", &entry]);
    git_in(env, tree, &["commit", "-qm", "bring"]);
    git_in(env, tree, &["reset", "-q", "--hard"]);
}

fn place(env: &TestEnv, root: &str, name: &str) -> PathBuf {
    env.repo().join(root).join(name)
}

#[test]
fn x25_a_landing_brings_nothing_into_another_worktree() {
    for (profile, root) in [
        ("classroom", ".worktrees"),
        ("claude-code", ".claude/worktrees"),
    ] {
        let env = repository();
        env.ok(&["config", "set", "profile", profile]);
        env.ok(&["config", "set", "policy.protected", "!.claude"]);
        env.ok(&["new", "b"]);
        let victim = place(&env, root, "b");
        for (number, (below, mode)) in [
            ("b/new.txt", "100644"),
            ("b/config.py", "100644"),
            ("b/deep/er", "120000"),
            ("c/new.txt", "100644"),
            (".trash/x", "100644"),
            ("B/new.txt", "100644"),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("a{number}");
            env.ok(&["new", &name]);
            let path = format!("{root}/{below}");
            commit_at(&env, &place(&env, root, &name), &path, mode);
            let (before, tip) = (manifest(&victim), rev(&env, "main"));
            let (code, landings) = land(&env, &[&name]);
            let reason = &landings[0]["reason"];
            assert_eq!(
                (code, reason["code"].as_str()),
                (1, Some("path_in_worktree")),
                "{path}: {reason}"
            );
            assert_eq!(reason["paths"], serde_json::json!([path]), "{path}");
            assert!(
                manifest(&victim) == before && rev(&env, "main") == tip,
                "{path}"
            );
        }
        // Where they lie, also after others are made elsewhere; without its entry, a worktree is still on record.
        env.ok(&["new", "later"]);
        commit_at(
            &env,
            &place(&env, root, "later"),
            &format!("{root}/b/x"),
            "100644",
        );
        env.ok(&["new", "root"]);
        commit_at(
            &env,
            &place(&env, root, "root"),
            &format!("{root}/free"),
            "100644",
        );
        env.ok(&["config", "set", "tree.path", "{repo_parent}/else/{name}"]);
        let entry = env.repo().join(".git/worktrees/b");
        let aside = env.root().join("entry");
        fs::rename(&entry, &aside).unwrap();
        for name in ["later", "root"] {
            let (_, landings) = land(&env, &[name]);
            let reason = &landings[0]["reason"];
            assert_eq!(reason["code"], "path_in_worktree", "{name}: {reason}");
        }
        fs::rename(&aside, &entry).unwrap();
        env.ok(&["config", "unset", "tree.path"]);
        // Beside them everything may come.
        env.ok(&["new", "z"]);
        let tree = place(&env, root, "z");
        fs::create_dir_all(tree.join(".claude")).unwrap();
        commit(&env, &tree, ".claude/agents.md", "x\n");
        landed(&env, &["z"]);
    }
}

#[test]
fn x32_worktrees_land_after_the_default_branch_was_renamed() {
    for kind in KINDS {
        let env = repository();
        let tree = grow(&env, "a", kind);
        commit(&env, &tree, "mine", "m\n");
        env.git(&["branch", "-m", "main", "next"]);
        env.git(&["branch", "-m", "next", "trunk"]);
        commit(&env, &env.repo(), "theirs", "t\n");
        let synced = env.ok(&["sync", "a"]);
        assert_eq!(synced["outcome"], "merged", "{kind}: {synced}");
        assert_eq!(fs::read_to_string(tree.join("theirs")).unwrap(), "t\n");
        landed(&env, &["a"]);
        assert_eq!(env.git(&["show", "trunk:mine"]), "m\n", "{kind}");
        assert!(env.repo().join("mine").is_file(), "{kind}");
    }
}

#[test]
fn x32_a_target_that_is_gone_is_asked_for_and_never_guessed() {
    let env = repository();
    env.git(&["branch", "feature"]);
    env.ok(&["new", "a", "--target", "feature", "--base", "feature"]);
    let tree = env.root().join("app.weald/a");
    commit(&env, &tree, "mine", "m\n");
    env.git(&["branch", "-D", "feature"]);
    let before = rev(&env, "main");
    env.refused(&["sync", "a"], 1, "no_target");
    let (code, landings) = land(&env, &["a"]);
    assert_eq!(
        (code, landings[0]["reason"]["code"].as_str()),
        (1, Some("no_target"))
    );
    let hint = landings[0]["reason"]["hint"].as_str().unwrap();
    assert!(hint.starts_with("git branch feature "), "{hint}");
    assert_eq!(rev(&env, "main"), before);
    env.ok(&["config", "set", "target", "main"]);
    landed(&env, &["a"]);
    assert_eq!(env.git(&["show", "main:mine"]), "m\n");
}
