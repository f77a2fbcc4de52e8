//! Submodules of trees: filled from what main has, and what is committed in them is not lost.

use std::fs;

use weald_testkit::TestEnv;

use crate::trees_remove::{git_in, repository};

/// A repository with a submodule `libs/one`, and tree `a` of it.
pub fn with_submodule() -> TestEnv {
    let env = repository();
    let library = env.root().join("library");
    fs::create_dir(&library).unwrap();
    git_in(&env, &library, &["init", "-q", "-b", "main"]);
    fs::write(library.join("l"), "one\n").unwrap();
    git_in(&env, &library, &["add", "."]);
    git_in(&env, &library, &["commit", "-q", "-m", "one"]);
    let allow = "protocol.file.allow=always";
    let add = [
        "-c",
        allow,
        "submodule",
        "--quiet",
        "add",
        "../library",
        "libs/one",
    ];
    git_in(&env, &env.repo(), &add);
    git_in(&env, &env.repo(), &["commit", "-q", "-m", "submodule"]);
    env.ok(&["new", "a"]);
    env
}

#[test]
fn k1_a_submodule_is_filled_without_the_network() {
    let env = with_submodule();
    // Not even the library is there any more.
    fs::rename(env.root().join("library"), env.root().join("away")).unwrap();
    env.ok(&["new", "b"]);
    let tree = env.root().join("app.weald/b");
    assert_eq!(
        fs::read_to_string(tree.join("libs/one/l")).unwrap(),
        "one\n"
    );
    assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
    let status = git_in(&env, &tree, &["submodule", "status"]);
    assert!(status.starts_with(' '), "{status}");
    let inside = env.weald(&["run", "b", "--", "git", "-C", "libs/one", "fsck"]);
    assert_eq!(inside.code, 0, "{inside:#?}");
}

#[test]
fn z3_commits_in_a_submodule_refuse_a_removal_and_are_kept_by_one() {
    let env = with_submodule();
    let module = env.root().join("app.weald/a/libs/one");
    git_in(&env, &module, &["switch", "-q", "-c", "feature"]);
    fs::write(module.join("l"), "two\n").unwrap();
    git_in(&env, &module, &["commit", "-q", "-a", "-m", "only copy"]);
    let only = git_in(&env, &module, &["rev-parse", "HEAD"]);
    // The superproject sees nothing of it.
    git_in(&env, &module, &["checkout", "-q", "--detach", "HEAD~1"]);
    assert_eq!(env.ok(&["status", "a"])["tree"]["dirty"], false);
    let refused = env.weald(&["rm", "a", "--json"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(
        refused.stdout.contains("1 commit that main"),
        "{refused:#?}"
    );
    env.ok(&["rm", "a", "--discard"]);
    env.ok(&["trash", "purge", "--older-than", "1ms", "--apply"]);
    assert!(!module.exists());
    let vault = env.repo().join(".git/weald/vault/modules/libs/one");
    let kind = git_in(&env, &vault, &["cat-file", "-t", only.trim()]);
    assert_eq!(kind.trim(), "commit");
}

#[test]
fn z3_a_submodule_that_only_the_tree_has_is_not_removed_without_a_word() {
    let env = with_submodule();
    let tree = env.root().join("app.weald/a");
    let allow = "protocol.file.allow=always";
    let library = env.root().join("library").display().to_string();
    let add = [
        "-c",
        allow,
        "submodule",
        "--quiet",
        "add",
        &library,
        "libs/two",
    ];
    git_in(&env, &tree, &add);
    git_in(&env, &tree, &["commit", "-q", "-m", "another"]);
    env.ok(&["status", "a"]);
    git_in(&env, &env.repo(), &["merge", "-q", "--ff-only", "wt/a"]);
    let refused = env.weald(&["rm", "a", "--json"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(refused.stdout.contains("libs/two"), "{refused:#?}");
    assert!(tree.join("libs/two/l").is_file());
}
