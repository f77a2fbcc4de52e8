//! Changes that git was told not to look at: kept, counted and put back like any others.

use std::fs;
use std::path::Path;

use crate::trees_remove::{KINDS, git_in, grow, repository};

const MARKS: [&str; 2] = ["--skip-worktree", "--assume-unchanged"];

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|error| format!("{error}"))
}

#[test]
fn z4_a_snapshot_holds_changes_that_git_was_told_not_to_see() {
    for (kind, mark) in KINDS
        .iter()
        .flat_map(|kind| MARKS.map(|mark| (*kind, mark)))
    {
        let env = repository();
        let path = grow(&env, "a", kind);
        let file = path.join("config.py");
        git_in(&env, &path, &["update-index", mark, "config.py"]);
        fs::write(&file, "hidden\n").unwrap();
        assert_eq!(git_in(&env, &path, &["status", "--porcelain"]), "");
        env.ok(&["snapshot", "create", "a"]);
        fs::write(&file, "ruined\n").unwrap();
        let back = env.ok(&["snapshot", "restore", "a", "1"]);
        assert_eq!(text(&file), "hidden\n", "{kind} {mark}: {back}");
        assert_eq!(back["set_aside"], serde_json::json!([]), "{back}");
        // The marks are as they were, and what was there before is one restore away.
        assert_eq!(git_in(&env, &path, &["status", "--porcelain"]), "");
        env.ok(&["snapshot", "restore", "a", "2"]);
        assert_eq!(text(&file), "ruined\n", "{kind} {mark}");
    }
}

#[test]
fn z4_a_snapshot_without_a_hidden_change_is_put_back_without_it() {
    for mark in MARKS {
        let env = repository();
        let path = grow(&env, "a", "sealed");
        env.ok(&["snapshot", "create", "a"]);
        git_in(&env, &path, &["update-index", mark, "config.py"]);
        fs::write(path.join("config.py"), "hidden\n").unwrap();
        env.ok(&["snapshot", "restore", "a", "1"]);
        assert_eq!(text(path.join("config.py")), "base\n", "{mark}");
    }
}

#[test]
fn z4_hidden_changes_alone_are_kept_by_a_stop_and_by_a_discard() {
    for (kind, mark) in KINDS
        .iter()
        .flat_map(|kind| MARKS.map(|mark| (*kind, mark)))
    {
        let env = repository();
        let path = grow(&env, "a", kind);
        git_in(&env, &path, &["update-index", mark, "config.py"]);
        // What a hook at the end of a turn starts.
        let keep = || {
            let kept = env.weald(&["snapshot", "create", "a", "--background"]);
            assert_eq!(kept.code, 0, "{kept:#?}");
        };
        let list = || {
            let listed = env.ok(&["snapshot", "list", "a"]);
            listed["snapshots"].as_array().unwrap().len()
        };
        keep();
        assert_eq!(list(), 0, "a mark alone is no change");
        fs::write(path.join("config.py"), "hidden\n").unwrap();
        keep();
        assert_eq!(list(), 1, "{kind} {mark}");
        keep();
        assert_eq!(list(), 1, "the same is not kept twice");
        fs::write(path.join("config.py"), "hidden, too\n").unwrap();
        keep();
        assert_eq!(list(), 2, "{kind} {mark}");
        let gone = env.ok(&["rm", "a", "--discard"]);
        let commit = gone["tree"]["trash"]["snapshot"].as_str().unwrap();
        let held = format!("{commit}:files/config.py");
        let vault = env.repo().join(".git/weald/vault");
        assert_eq!(
            git_in(&env, &vault, &["cat-file", "blob", &held]),
            "hidden, too\n"
        );
    }
}

#[test]
fn w3_hidden_changes_make_a_tree_dirty() {
    for mark in MARKS {
        let env = repository();
        let path = grow(&env, "a", "sealed");
        git_in(&env, &path, &["update-index", mark, "config.py"]);
        let status = env.ok(&["status", "a"]);
        assert_eq!(status["tree"]["dirty"], false, "a mark alone: {status}");
        fs::write(path.join("config.py"), "hidden\n").unwrap();
        let status = env.ok(&["status", "a"]);
        assert_eq!(status["tree"]["dirty"], true, "{status}");
        assert_eq!(status["tree"]["hidden"], 1, "{status}");
        let listed = env.ok(&["list"]);
        assert_eq!(listed["trees"][0]["dirty"], true, "{listed}");
        let plain = env.weald(&["status", "a"]).stdout;
        let line = "0 staged, 0 unstaged, 0 untracked, 0 conflicted, 1 hidden from git";
        assert!(plain.contains(line), "{plain}");
    }
}
