//! Whether a tree's commits are on the target, however they came there.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

/// How weald knows that a tree has landed; null if it has not.
fn landed(env: &TestEnv, tree: &str) -> Value {
    env.ok(&["status", tree])["tree"]["landed"].clone()
}

/// A tree with two commits on one file of many lines.
fn with_work(kind: &str) -> (TestEnv, PathBuf) {
    let env = repository();
    commit(&env, &env.repo(), "lines", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let tree = grow(&env, "a", kind);
    commit(&env, &tree, "lines", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    commit(&env, &tree, "lines", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    env.ok(&["status", "a"]);
    (env, tree)
}

fn in_main(env: &TestEnv, args: &[&str]) {
    git_in(env, &env.repo(), args);
}

/// Something else happens on main, in the same file but elsewhere.
fn main_moves_on(env: &TestEnv) {
    let text = fs::read_to_string(env.repo().join("lines")).unwrap();
    commit(env, &env.repo(), "lines", &text.replace('5', "five"));
}

fn squash(env: &TestEnv) {
    in_main(env, &["merge", "-q", "--squash", "wt/a"]);
    in_main(env, &["commit", "-q", "-m", "squashed"]);
}

#[track_caller]
fn assert_removable(env: &TestEnv, tree: &Path) {
    assert_eq!(env.ok(&["rm", "a"])["branch"], "deleted");
    assert!(!tree.exists());
}

#[test]
fn l4_each_way_of_merging_is_seen() {
    type Way = fn(&TestEnv);
    let ways: [(&str, Way); 6] = [
        ("ancestor", |env| {
            in_main(env, &["merge", "-q", "--ff-only", "wt/a"])
        }),
        ("ancestor", |env| {
            main_moves_on(env);
            in_main(env, &["merge", "-q", "--no-edit", "wt/a"]);
        }),
        ("patches", |env| {
            main_moves_on(env);
            in_main(env, &["cherry-pick", "main..wt/a"]);
        }),
        ("same_tree", |env| {
            squash(env);
            // The same lines change again afterwards.
            commit(env, &env.repo(), "lines", "other\n");
        }),
        ("adds_nothing", |env| {
            main_moves_on(env);
            squash(env);
        }),
        ("ancestor", |env| {
            // Only the remote has it, as far as is known here.
            let remote = env.root().join("remote.git");
            let remote = remote.to_str().unwrap();
            env.git(&["clone", "-q", "--bare", ".", remote]);
            env.git(&["remote", "add", "origin", remote]);
            env.git(&["push", "-q", "origin", "wt/a:main"]);
            env.git(&["fetch", "-q", "origin"]);
        }),
    ];
    for kind in KINDS {
        for (expected, merge) in ways {
            let (env, tree) = with_work(kind);
            assert_eq!(landed(&env, "a"), Value::Null, "{kind} {expected}");
            merge(&env);
            assert_eq!(landed(&env, "a"), expected, "{kind}");
            assert_removable(&env, &tree);
        }
    }
}

#[test]
fn l4_what_is_not_all_there_has_not_landed() {
    type Way = fn(&TestEnv, &Path);
    let ways: [(&str, Way); 5] = [
        ("one of two", |env, _| {
            main_moves_on(env);
            in_main(env, &["cherry-pick", "wt/a~1"]);
        }),
        ("one more since", |env, tree| {
            main_moves_on(env);
            squash(env);
            commit(env, tree, "more", "m\n");
        }),
        ("changed again, and never looked the same", |env, _| {
            main_moves_on(env);
            squash(env);
            commit(env, &env.repo(), "lines", "other\n");
        }),
        (
            "an empty one more, and the same empty one on main",
            |env, tree| {
                main_moves_on(env);
                in_main(env, &["cherry-pick", "main..wt/a"]);
                in_main(env, &["commit", "-q", "--allow-empty", "-m", "nothing"]);
                git_in(env, tree, &["reset", "-q", "--hard", "HEAD~2"]);
                git_in(
                    env,
                    tree,
                    &["commit", "-q", "--allow-empty", "-m", "nothing"],
                );
            },
        ),
        ("taken back inside", |env, tree| {
            main_moves_on(env);
            git_in(env, tree, &["revert", "--no-edit", "HEAD~2..HEAD"]);
        }),
    ];
    for (what, change) in ways {
        let (env, tree) = with_work("sealed");
        change(&env, &tree);
        assert_eq!(landed(&env, "a"), Value::Null, "{what}");
        env.refused(&["rm", "a"], 1, "tree_unlanded");
        assert!(tree.is_dir(), "{what}");
    }
}

fn land(env: &TestEnv, more: &[&str]) -> Value {
    env.ok(&[&["land", "a", "--keep"], more].concat())["landings"][0].clone()
}

#[test]
fn l4_a_recorded_landing_covers_its_head_until_it_is_taken_back() {
    for strategy in ["squash", "merge", "rebase", "ff"] {
        let (env, tree) = with_work("sealed");
        let landing = land(&env, &["--strategy", strategy]);
        assert_eq!(landed(&env, "a"), "recorded", "{strategy}");
        // The same lines change again, so nothing else would tell.
        env.git(&["reset", "-q", "--hard", "main"]);
        commit(&env, &env.repo(), "lines", "other\n");
        commit(&env, &env.repo(), "lines", "another\n");
        assert_eq!(landed(&env, "a"), "recorded", "{strategy}");
        let id = landing["id"].to_string();
        let more = commit(&env, &tree, "more", "m\n");
        assert_eq!(landed(&env, "a"), Value::Null, "{strategy}: {more} {id}");
        let refused = env.refused(&["rm", "a"], 1, "tree_unlanded");
        assert!(refused.to_string().contains("1 commit"), "{refused}");
        git_in(&env, &tree, &["reset", "-q", "--hard", "HEAD~1"]);
        assert_removable(&env, &tree);
    }
}

#[test]
fn l4_a_landing_that_was_taken_back_or_lost_covers_nothing() {
    let (env, tree) = with_work("sealed");
    main_moves_on(&env);
    let landing = land(&env, &[]);
    env.git(&["reset", "-q", "--hard", "main"]);
    assert_eq!(landed(&env, "a"), "recorded");
    env.ok(&["revert", &landing["id"].to_string()]);
    assert_eq!(landed(&env, "a"), Value::Null);
    env.refused(&["rm", "a"], 1, "tree_unlanded");
    assert!(tree.is_dir());
    // Landed again, and then somebody moved main away from it.
    commit(&env, &tree, "more", "m\n");
    assert_eq!(land(&env, &[])["outcome"], "landed");
    assert_eq!(landed(&env, "a"), "recorded");
    env.git(&["update-ref", "refs/heads/main", "main~1"]);
    assert_eq!(landed(&env, "a"), Value::Null);
}

#[test]
fn l4_work_whose_landing_was_taken_back_has_not_landed_until_it_comes_again() {
    for (strategy, kind) in [
        ("squash", "sealed"),
        ("merge", "sealed"),
        ("rebase", "linked"),
        ("ff", "sealed"),
    ] {
        let (env, tree) = with_work(kind);
        let id = land(&env, &["--strategy", strategy])["id"].to_string();
        assert_eq!(id, "1");
        env.ok(&["revert", &id]);
        assert_eq!(landed(&env, "a"), Value::Null, "{strategy}");
        let report = env.ok(&["clean", "--min-age", "0"]);
        let blockers = report["skipped"][0]["blockers"].to_string();
        assert!(
            blockers.contains("branch_not_merged"),
            "{strategy}: {report:#}"
        );
        env.ok(&["clean", "--min-age", "0", "--apply"]);
        let refused = env.refused(&["rm", "a"], 1, "tree_unlanded");
        assert!(refused.to_string().contains("2 commits"), "{refused}");
        let would = &env.ok(&["land", "a", "--dry-run"])["landings"][0];
        assert_eq!(would["outcome"], "would_land", "{strategy}: {would}");
        // It comes again, by whatever way; a line beside it changes meanwhile.
        main_moves_on(&env);
        match strategy {
            "squash" | "ff" => drop(env.ok(&["revert", "2"])),
            _ => in_main(&env, &["revert", "--no-edit", "HEAD~1"]),
        }
        assert_eq!(landed(&env, "a"), "adds_nothing", "{strategy}");
        let report = env.ok(&["clean", "--min-age", "0"]);
        assert_eq!(
            report["candidates"][0]["reason"], "landed",
            "{strategy}: {report:#}"
        );
        assert_removable(&env, &tree);
    }
}

#[test]
fn l4_what_the_remote_has_only_until_it_hears_of_the_undoing_has_not_landed() {
    let (env, _) = with_work("sealed");
    let remote = env.root().join("remote.git");
    env.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    env.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    let id = land(&env, &[])["id"].to_string();
    env.git(&["push", "-q", "origin", "main"]);
    env.ok(&["revert", &id]);
    assert_eq!(landed(&env, "a"), Value::Null);
    env.refused(&["rm", "a"], 1, "tree_unlanded");
    // There it comes again, after the undoing.
    in_main(&env, &["switch", "-q", "-c", "theirs"]);
    in_main(&env, &["revert", "--no-edit", "HEAD"]);
    env.git(&["push", "-q", "origin", "theirs:main"]);
    assert_eq!(landed(&env, "a"), "adds_nothing");
}
