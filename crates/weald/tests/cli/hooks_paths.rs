//! Which edits a hook takes for edits in the tree: what counts is where a path leads, whether or not it is there yet.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::hooks_claude::edit;
use crate::trees_remove::{grow, repository};

#[test]
fn w8_folders_that_are_allowed_need_not_be_there_yet() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    env.ok(&["config", "set", "hook.allow", "~/shared/notes"]);
    let home = env.home();
    for (path, code) in [
        (home.join(".claude/plans/plan.md"), 0),
        (home.join(".claude/plans/../settings.json"), 2),
        (home.join("shared/notes/new"), 0),
        (home.join("shared/notes2"), 2),
    ] {
        let answer = edit(&env, &tree, &path);
        assert_eq!(answer.code, code, "{path:?}: {answer:#?}");
    }
    // A link out of such a folder leads out of it.
    fs::create_dir_all(home.join("shared/notes")).unwrap();
    symlink(env.repo(), home.join("shared/notes/main")).unwrap();
    let answer = edit(&env, &tree, &home.join("shared/notes/main/config.py"));
    assert_eq!(answer.code, 2, "{answer:#?}");
}

#[test]
fn w8_what_counts_is_where_a_path_leads() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    fs::create_dir(tree.join("src")).unwrap();
    symlink(tree.join("src"), tree.join("absolute")).unwrap();
    symlink(env.home().join("not-yet"), tree.join("dangling")).unwrap();
    symlink("circle", tree.join("circle")).unwrap();
    for (path, code) in [
        (PathBuf::from("../fix/a"), 0),
        (tree.join("../fix/src/new/a"), 0),
        (tree.join("not-yet/../a"), 0),
        (tree.join("absolute/a"), 0),
        (tree.join("dangling"), 2),
        (PathBuf::from("../fix2/a"), 2),
        (PathBuf::from(".."), 2),
    ] {
        let answer = edit(&env, &tree, &path);
        assert_eq!(answer.code, code, "{path:?}: {answer:#?}");
    }
    // What leads nowhere can't be judged, and is said.
    let answer = edit(&env, &tree, &tree.join("circle/a"));
    assert!(answer.stderr.contains("in a circle"), "{answer:#?}");
}
