//! `weald usage`: what trees take, and making room of what builds make again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::clean::grow_old;
use crate::trees_remove::{KINDS, events, git_in, grow, has_event, repository, try_git};
use crate::trees_trash::manifest;

const MEGABYTE: usize = 1 << 20;

fn fill(path: &Path, megabytes: usize) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, vec![7; megabytes * MEGABYTE]).unwrap();
}

/// A repository that ignores what builds make.
fn ground() -> TestEnv {
    let env = repository();
    fs::write(
        env.repo().join(".gitignore"),
        "target/\nnode_modules\n*.log\n",
    )
    .unwrap();
    env.git(&["commit", "-qam", "ignore"]);
    env
}

/// However young trees are.
fn usage(env: &TestEnv, args: &[&str]) -> Value {
    let any_age = ["--set", "usage.min_age=0"];
    usage_by_age(env, &[args, &any_age].concat())
}

/// What falls short of what was asked for is no success.
fn usage_by_age(env: &TestEnv, args: &[&str]) -> Value {
    let answer = env.weald(&[&["--json", "usage"], args].concat());
    let told = answer.json()["usage"].clone();
    let freeing = &told["freeing"];
    let fell_short = freeing["applied"] == true && freeing["short"] != 0;
    assert_eq!(answer.code, i32::from(fell_short), "{answer:#?}");
    told
}

/// The folders that builds make, of the first tree.
fn folders(usage: &Value) -> Vec<String> {
    let all = usage["trees"][0]["regenerable"].as_array().unwrap();
    let path = |folder: &Value| folder["path"].as_str().unwrap().to_owned();
    let mut paths: Vec<_> = all.iter().map(path).collect();
    paths.sort();
    paths
}

#[test]
fn l14_usage_tells_bytes_a_tree_and_in_all() {
    for kind in KINDS {
        let env = ground();
        let (a, b) = (grow(&env, "a", kind), grow(&env, "b", kind));
        fill(&a.join("target/debug/out"), 3);
        fs::hard_link(a.join("target/debug/out"), a.join("target/out")).unwrap();
        fill(&b.join("notes.log"), 1);
        symlink("/", b.join("everything")).unwrap();
        let told = usage(&env, &[]);
        let bytes = |place: usize| told["trees"][place]["bytes"].as_u64().unwrap() as usize;
        assert!((3 * MEGABYTE..4 * MEGABYTE).contains(&bytes(0)), "{told}");
        assert!((MEGABYTE..2 * MEGABYTE).contains(&bytes(1)), "{told}");
        assert_eq!(told["total"], json!(bytes(0) + bytes(1)), "{told}");
        assert_eq!(folders(&told), ["target"]);
        assert!(told["free"].as_u64().unwrap() > 0);
        assert_eq!(told["would_free"], 0, "nothing of it is over");
        for line in ["add", "start", "done"] {
            env.ok(&["task", line, if line == "add" { "a" } else { "1" }]);
        }
        env.ok(&["task", "bind", "1", "a"]);
        let over = usage(&env, &["--set", "clean.min_age=1ms"]);
        assert_eq!(over["would_free"], json!(bytes(0)), "{over}");
        let one = usage(&env, &["b"]);
        assert_eq!(one["trees"].as_array().unwrap().len(), 1, "{one}");
        env.ok(&["rm", "b", "--discard"]);
        let told = usage(&env, &[]);
        assert!(
            told["trash"].as_u64().unwrap() as usize >= MEGABYTE,
            "{told}"
        );
        let plain = env.weald(&["usage"]).stdout;
        assert!(plain.contains("target 3."), "{plain}");
    }
}

#[test]
fn l14_room_is_made_of_what_builds_make_again_and_of_nothing_else() {
    for kind in KINDS {
        let env = ground();
        let tree = grow(&env, "a", kind);
        // These go.
        fill(&tree.join("target/out"), 1);
        fill(&tree.join("web/node_modules/x/index.js"), 1);
        // These have such a name, and stay.
        fill(&tree.join("tracked/target/file"), 1);
        git_in(&env, &tree, &["add", "-f", "tracked/target/file"]);
        fill(&tree.join("tracked/target/ignored"), 1);
        fill(&tree.join("nested/target/deep/.git/HEAD"), 1);
        fs::create_dir(tree.join("linked")).unwrap();
        symlink(tree.join("tracked"), tree.join("linked/target")).unwrap();
        fs::create_dir(tree.join("negated")).unwrap();
        fs::write(tree.join("negated/.gitignore"), "!target/\n").unwrap();
        fill(&tree.join("negated/target/mine"), 1);
        fs::write(tree.join("draft"), "mine").unwrap();
        // What is in another repository is that one's, and a repository without a work tree is one.
        git_in(&env, &tree, &["init", "-q", "vend"]);
        fill(&tree.join("vend/src/target/spec.c"), 1);
        let bare = ["init", "-q", "--bare", "bare/node_modules/mirror.git"];
        git_in(&env, &tree, &bare);
        let told = usage(&env, &[]);
        assert_eq!(folders(&told), ["target", "web/node_modules"], "{told}");
        let before = manifest(&tree);
        let dry = usage(&env, &["--free", "1000T"]);
        assert_eq!(
            dry["freeing"]["evicted"].as_array().unwrap().len(),
            2,
            "{dry}"
        );
        assert_eq!(dry["freeing"]["applied"], false);
        assert_eq!(manifest(&tree), before, "a dry run deletes nothing");
        let done = usage(&env, &["--free", "1000T", "--apply"]);
        assert_eq!(
            done["freeing"]["evicted"].as_array().unwrap().len(),
            2,
            "{done}"
        );
        assert!(done["freeing"]["short"].as_u64().unwrap() > 0);
        assert!(!tree.join("target").exists() && !tree.join("web/node_modules").exists());
        for kept in [
            "tracked/target/file",
            "tracked/target/ignored",
            "nested/target/deep/.git/HEAD",
            "negated/target/mine",
            "vend/src/target/spec.c",
            "bare/node_modules/mirror.git/HEAD",
            "draft",
            "config.py",
        ] {
            assert!(tree.join(kept).is_file(), "{kind} {kept}");
        }
        assert!(tree.join("linked/target").is_symlink());
        assert!(has_event(&env, "a", "tree.evicted"));
        let gone = usage(&env, &["--free", "1000T", "--apply"]);
        assert_eq!(gone["freeing"]["evicted"], json!([]));
    }
}

#[test]
fn l14_a_tree_that_somebody_uses_keeps_its_builds() {
    let env = ground();
    let tree = grow(&env, "a", "sealed");
    fill(&tree.join("target/out"), 1);
    let kept = |word: &str| {
        let done = usage(&env, &["--free", "1000T", "--apply"]);
        let why = done["freeing"]["kept"][0]["why"]
            .as_str()
            .unwrap_or_default();
        assert!(why.contains(word), "{done}");
        assert!(tree.join("target/out").exists());
    };
    env.ok(&["lock", "a", "--reason", "mine"]);
    kept("locked");
    env.ok(&["unlock", "a"]);
    let path = tree.to_str().unwrap();
    try_git(&env, &env.repo(), &["worktree", "unlock", path]);
    env.git(&["worktree", "lock", "--reason", "on a stick", path]);
    kept("on a stick");
    env.git(&["worktree", "unlock", path]);
    env.ok(&["session", "register", "alice"]);
    env.ok(&["session", "heartbeat", "alice", "--tree", "a"]);
    kept("alice");
    env.ok(&["session", "end", "alice"]);
    // As a clean has it: whoever claimed its task is at work.
    let task = env.ok(&["task", "add", "one"])["task"]["id"].to_string();
    env.ok(&["task", "bind", &task, "a"]);
    let claim = env.ok(&["task", "claim", &task, "--session", "bob"]);
    kept("bob has claimed its task");
    let token = claim["lease"]["token"].to_string();
    env.ok(&["task", "release", &task, "--token", &token]);
    let mut shell = env.command("sleep");
    let mut shell = shell.arg("600").current_dir(&tree).spawn().unwrap();
    kept("is in it");
    shell.kill().unwrap();
    shell.wait().unwrap();
    // What is free already needs nobody's build.
    let done = usage(&env, &["--free", "1K", "--apply"]);
    assert_eq!(done["freeing"]["evicted"], json!([]), "{done}");
    assert!(tree.join("target/out").exists());
    usage(&env, &["--free", "1000T", "--apply"]);
    assert!(!tree.join("target").exists());
    fill(&tree.join("target/out"), 1);
    env.ok(&["keep", "a"]);
    kept("it is kept");
}

#[test]
fn l14_half_a_folder_is_never_left_under_its_name() {
    for (kind, place) in [
        ("sealed", ".git/weald-evicted"),
        ("linked", ".weald-evicted"),
    ] {
        let env = ground();
        let tree = grow(&env, "a", kind);
        // What a kill in the middle leaves: renamed, half deleted. git does not see it, and the next one clears it.
        let mark = "# weald: everything here is being deleted\n*\n";
        fill(&tree.join(place).join("0/out"), 1);
        fs::write(tree.join(place).join(".gitignore"), mark).unwrap();
        assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
        fill(&tree.join("target/out"), 1);
        // What only looks like half of one is somebody's.
        let like = tree.join(format!("{place}.new"));
        fill(&like.join("mine"), 1);
        usage(&env, &["--free", "1000T", "--apply"]);
        assert!(like.join("mine").exists());
        fs::remove_dir_all(&like).unwrap();
        assert!(!tree.join(place).exists());
        assert!(!tree.join("target").exists());
        // What only has the name is nobody's to delete.
        fill(&tree.join(place).join("mine"), 1);
        fill(&tree.join("target/out"), 1);
        let done = usage(&env, &["--free", "1000T", "--apply"]);
        let why = done["freeing"]["kept"][0]["why"].as_str().unwrap();
        assert!(why.contains("is not weald's"), "{done}");
        assert!(tree.join(place).join("mine").exists() && tree.join("target/out").exists());
    }
}

#[test]
fn l14_bad_sizes_and_names_are_refused() {
    let env = ground();
    env.refused(&["usage", "--free", "much"], 2, "invalid_value");
    env.refused(&["usage", "--free", "0"], 2, "invalid_value");
    env.refused(&["usage", "--apply"], 2, "usage");
    env.refused(&["usage", "nobody"], 4, "tree_not_found");
}

#[test]
fn l14_the_longest_unused_goes_first_and_the_youngest_not_at_all() {
    for kind in KINDS {
        let env = ground();
        let paths = ["new", "touched", "mid", "old"].map(|name| {
            let path = grow(&env, name, kind);
            fill(&path.join("target/out"), 1);
            path
        });
        grow_old(&env, "mid", "2020-02-02T00:00:00Z");
        grow_old(&env, "old", "2020-01-01T00:00:00Z");
        // The record is old, and somebody worked there by hand.
        grow_old(&env, "touched", "2019-01-01T00:00:00Z");
        fs::write(paths[1].join("notes.log"), "x").unwrap();
        let trees = |told: &Value, list: &str| {
            let all = told["freeing"][list].as_array().unwrap().iter();
            let names = all.map(|one| one["tree"].as_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        let done = usage_by_age(&env, &["--free", "1000T", "--apply"]);
        assert_eq!(trees(&done, "evicted"), ["old", "mid"], "{done}");
        assert_eq!(trees(&done, "kept"), ["new", "touched"], "{done}");
        let why = &done["freeing"]["kept"][1]["why"];
        assert!(why.as_str().unwrap().contains("a moment ago"), "{done}");
        assert!(paths[0].join("target/out").exists() && paths[1].join("target/out").exists());
        // Making room is no use of a tree.
        let told = usage(&env, &["old", "old"]);
        let trees = told["trees"].as_array().unwrap();
        assert_eq!(trees.len(), 1, "named twice, counted once");
        assert_eq!(trees[0]["last_used_at"], "2020-01-01T00:00:00Z", "{told}");
    }
}

#[test]
fn l14_what_falls_short_says_how_to_go_on() {
    let env = ground();
    let tree = grow(&env, "a", "sealed");
    fill(&tree.join("target/out"), 1);
    let ask = ["usage", "--free", "1000T", "--set", "usage.min_age=0"];
    let dry = env.weald(&ask);
    assert_eq!(dry.code, 0, "{dry:#?}");
    assert!(dry.stdout.contains("to delete, add --apply"), "{dry:#?}");
    assert!(dry.stdout.contains("weald clean --apply"), "{dry:#?}");
    let done = env.weald(&[&ask[..], &["--apply"]].concat());
    assert_eq!(done.code, 1, "{done:#?}");
    assert!(done.stdout.contains("are missing"), "{done:#?}");
}

#[test]
fn l14_an_eviction_that_is_killed_is_in_the_log() {
    let env = ground();
    let tree = grow(&env, "a", "linked");
    fill(&tree.join("target/out"), 1);
    let ask = ["usage", "--free", "1000T", "--apply"];
    let mut command = env.weald_command(&[&ask[..], &["--set", "usage.min_age=0"]].concat());
    command.env("WEALD_STEP", "kill:evict.renamed");
    assert!(!command.status().unwrap().success());
    let found = events(&env, "a");
    let event = found.iter().find(|(kind, _)| kind == "tree.evicted");
    assert_eq!(event.unwrap().1["data"]["note"], "target", "{found:#?}");
    assert!(!tree.join("target").exists());
    assert!(tree.join(".weald-evicted").exists());
    assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
    fill(&tree.join("target/out"), 1);
    usage(&env, &["--free", "1000T", "--apply"]);
    assert!(!tree.join(".weald-evicted").exists() && !tree.join("target").exists());
}

#[test]
fn l14_only_plain_names_are_folders_that_builds_make() {
    let env = ground();
    for odd in ["/", "..", ".", ".git", "*", "a/b", "target, .GIT"] {
        let answer = env.weald(&["config", "set", "usage.regenerable", odd]);
        assert_eq!(answer.code, 2, "{odd}: {answer:#?}");
    }
    env.ok(&["config", "set", "usage.regenerable", "target, dist"]);
}
