//! Taking back only what can be, only as it was, and nothing that nobody asked for.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use weald_testkit::TestEnv;

use crate::trees_remove::{commit, events, grow, repository};

/// The place of the last event about a tree of this kind.
fn place(env: &TestEnv, tree: &str, kind: &str) -> String {
    let found = events(env, tree).into_iter().rev();
    let mut found = found.filter(|(known, _)| known == kind);
    found.next().unwrap().1["sequence"].to_string()
}

fn purge(env: &TestEnv) {
    env.ok(&["trash", "purge", "--older-than", "1ms", "--apply"]);
}

#[test]
fn undo_opens_only_the_task_that_the_removal_completed() {
    let env = repository();
    grow(&env, "a", "sealed");
    grow(&env, "b", "sealed");
    for _ in 0..2 {
        env.ok(&["task", "add", "something"]);
    }
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    env.ok(&["task", "bind", "2", "a"]);
    env.ok(&["rm", "b"]);
    env.ok(&["task", "done", "1", "--token", "1"]);
    let status = |id: &str| env.ok(&["task", "show", id])["task"]["status"].clone();
    let undone = env.ok(&["undo"]);
    assert_eq!(undone["trees"][0]["name"], "b", "{undone}");
    assert_eq!(status("1"), "completed", "it was never b's");
    env.ok(&["task", "start", "2"]);
    env.ok(&["rm", "a", "--complete-task", "--force"]);
    assert_eq!(status("2"), "completed");
    let undone = env.ok(&["undo"]);
    assert_eq!(undone["task"]["id"], 2, "{undone}");
    assert_ne!(status("2"), "completed");
}

#[test]
fn undo_leaves_the_locks_alone_that_weald_made_itself() {
    let env = repository();
    env.ok(&["init", "--profile", "jkz"]);
    env.ok(&["task", "add", "something"]);
    let made = env.ok(&["new", "--task", "1"]);
    let name = made["tree"]["name"].as_str().unwrap();
    assert_ne!(made["tree"]["locked"], json!(null), "{made}");
    env.refused(&["undo"], 1, "nothing_to_undo");
    let locked = place(&env, name, "tree.locked");
    env.refused(&["undo", &locked], 1, "not_undoable");
    // A person's own is another matter.
    env.ok(&["unlock", name]);
    assert_eq!(env.ok(&["undo"])["undone"], "tree.unlocked");
    env.refused(&["undo"], 1, "nothing_to_undo");
    let shown = env.ok(&["show", name]);
    assert_eq!(shown["tree"]["locked"], made["tree"]["locked"]);
}

#[test]
fn undo_stops_at_what_was_deleted_for_good() {
    let env = repository();
    let path = grow(&env, "landed", "sealed");
    commit(&env, &path, "new.txt", "work\n");
    env.ok(&["land", "landed"]);
    for name in ["n", "m"] {
        grow(&env, name, "sealed");
        env.ok(&["rm", name]);
    }
    let gone = place(&env, "m", "tree.trashed");
    purge(&env);
    let tip = env.git(&["rev-parse", "main"]);
    let listed = env.ok(&["undo", "--list"])["operations"].clone();
    let landing = listed[0]["event"].to_string();
    for args in [&["undo"][..], &["undo", "--dry-run"]] {
        let refused = env.refused(args, 1, "undo_gone");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("the removal of m"), "{message}");
        let hint = refused["error"]["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("weald undo {landing}")), "{hint}");
    }
    for args in [&["undo", &gone][..], &["undo", &gone, "--dry-run"]] {
        env.refused(args, 1, "undo_gone");
    }
    assert_eq!(env.git(&["rev-parse", "main"]), tip);
    // By its name it goes, and of its tree, which was purged, too, that is said with a command that works.
    let undone = env.ok(&["undo", &landing]);
    let note = undone["notes"][0].as_str().unwrap();
    assert!(note.ends_with("weald restore 1 --purged"), "{note}");
    env.ok(&["vault", "restore", "1"]);
    assert_eq!(env.git(&["show", "wt/landed:new.txt"]), "work\n");
}

#[test]
fn undo_takes_back_unasked_neither_others_work_nor_a_landing_that_something_came_after() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    grow(&env, "b", "sealed");
    commit(&env, &path, "new.txt", "work\n");
    env.ok(&["land", "a"]);
    let tip = || env.git(&["rev-parse", "main"]);
    let landed = tip();
    env.ok(&["session", "register", "carol"]);
    let by_carol = |args: &[&str]| {
        let mut asked = env.weald_command(&[&["--json"], args].concat());
        let output = asked.env("WEALD_SESSION", "carol").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = by_carol(&["undo"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("undo_unnamed"), "{text}");
    env.ok(&["rm", "b"]);
    assert_eq!(env.ok(&["undo"])["undone"], "tree.trashed");
    let refused = env.refused(&["undo"], 1, "undo_unnamed");
    assert_eq!(tip(), landed);
    // The command that it names does it.
    let hint = refused["error"]["hint"].as_str().unwrap();
    let event = hint.rsplit(' ').next().unwrap();
    assert_eq!(env.ok(&["undo", event])["landing"], 1);
    assert_ne!(tip(), landed);
}

#[test]
fn undo_of_a_clean_up_of_which_a_part_was_purged_brings_back_the_rest() {
    let env = repository();
    for name in ["first", "second"] {
        crate::clean::abandoned(&env, name, "sealed");
    }
    env.ok(&["clean", "--apply", "--min-age", "0"]);
    let listed = env.ok(&["trash", "list"]);
    let entries = listed["trash"].as_array().unwrap();
    let of_second = |entry: &&serde_json::Value| entry["name"] == "second";
    let second = entries.iter().find(of_second).unwrap()["path"].clone();
    let second = PathBuf::from(second.as_str().unwrap());
    // What is not what was put there is not deleted.
    let aside = env.root().join("aside");
    fs::rename(&second, &aside).unwrap();
    fs::create_dir(&second).unwrap();
    let purged = env.weald(&["trash", "purge", "--older-than", "1ms", "--apply"]);
    assert_eq!(purged.code, 1, "{purged:?}");
    env.refused(&["undo", "--dry-run"], 1, "undo_gone");
    fs::remove_dir(&second).unwrap();
    fs::rename(&aside, &second).unwrap();
    let undone = env.ok(&["undo"]);
    let trees = undone["trees"].as_array().unwrap();
    assert_eq!(trees.len(), 1, "{undone}");
    assert_eq!(trees[0]["name"], "second");
    let note = undone["notes"][0].as_str().unwrap();
    assert!(note.contains("tree first"), "{note}");
    env.refused(&["undo"], 1, "nothing_to_undo");
}

#[test]
fn undo_refuses_a_taken_name_also_in_a_dry_run_and_its_hint_helps() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("draft"), "mine").unwrap();
    env.ok(&["rm", "a", "--discard"]);
    let trashed = place(&env, "a", "tree.trashed");
    // Something that is no tree.
    fs::create_dir_all(&path).unwrap();
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let refused = env.refused(args, 1, "undo_inexact");
        let hint = refused["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("weald undo"), "{hint}");
    }
    fs::remove_dir(&path).unwrap();
    grow(&env, "a", "sealed");
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let refused = env.refused(args, 1, "undo_inexact");
        let hint = refused["error"]["hint"].as_str().unwrap();
        let wanted = format!("weald rm a, then weald undo {trashed}");
        assert_eq!(hint, wanted);
    }
    env.ok(&["rm", "a"]);
    env.ok(&["undo", &trashed, "--dry-run"]);
    env.ok(&["undo", &trashed]);
    assert_eq!(fs::read_to_string(path.join("draft")).unwrap(), "mine");
}

#[test]
fn undo_dry_run_looks_at_locks_bindings_and_landings_as_undo_does() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    grow(&env, "b", "sealed");
    env.ok(&["task", "add", "something"]);
    env.ok(&["task", "bind", "1", "b"]);
    env.ok(&["task", "unbind", "1"]);
    env.ok(&["rm", "b"]);
    let unbound = place(&env, "b", "task.unbound");
    for args in [&["undo", &unbound, "--dry-run"][..], &["undo", &unbound]] {
        env.refused(args, 1, "undo_inexact");
    }
    env.ok(&["lock", "a", "--reason", "one"]);
    let first = place(&env, "a", "tree.locked");
    env.ok(&["lock", "a", "--reason", "two"]);
    for args in [&["undo", &first, "--dry-run"][..], &["undo", &first]] {
        env.refused(args, 1, "undo_inexact");
    }
    env.ok(&["unlock", "a"]);
    commit(&env, &path, "new.txt", "work\n");
    env.ok(&["land", "a", "--keep"]);
    let would = env.ok(&["undo", "--dry-run"]);
    assert_eq!(would["would_undo"]["type"], "landing.landed", "{would}");
}

#[test]
fn undo_says_calmly_that_there_is_nothing() {
    let env = repository();
    let listed = env.weald(&["undo", "--list"]);
    assert_eq!(listed.code, 0);
    assert_eq!(listed.stdout.trim(), "Nothing to undo.");
    let refused = env.refused(&["undo"], 1, "nothing_to_undo");
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("weald events"), "{hint}");
    assert_eq!(refused["error"]["details"], json!({}));
    env.refused(&["undo", "9999"], 4, "event_not_found");
    env.refused(&["undo", "9999", "--dry-run"], 4, "event_not_found");
}

#[test]
fn undo_of_a_landing_names_the_commit_and_the_landing_that_took_it_back() {
    for is_json in [true, false] {
        let env = repository();
        let path = grow(&env, "a", "sealed");
        commit(&env, &path, "new.txt", "work\n");
        env.ok(&["land", "a"]);
        let tip = || env.git(&["rev-parse", "main"]).trim().to_owned();
        match is_json {
            true => {
                let undone = env.ok(&["undo"]);
                let revert = json!({"landing": 2, "commit": tip(), "target": "main"});
                assert_eq!(undone["revert"], revert, "{undone}");
            }
            false => {
                let told = env.weald(&["undo"]).stdout;
                let wanted = format!("on main as {} (landing 2)", &tip()[..9]);
                assert!(told.contains(&wanted), "{told}");
            }
        }
    }
}

#[test]
fn undo_after_a_clean_up_that_only_forgot_stops_there() {
    for orphans in [true, false] {
        let env = repository();
        grow(&env, "stays", "sealed");
        let path = grow(&env, "a", "sealed");
        env.ok(&["lock", "stays", "--reason", "mine"]);
        fs::remove_dir_all(&path).unwrap();
        match orphans {
            true => {
                let done = env.ok(&["clean", "--orphans", "--apply", "--min-age", "0"]);
                assert_eq!(done["removed"][0]["outcome"], "already_gone", "{done}");
            }
            false => drop(env.ok(&["rm", "a"])),
        }
        let gone = place(&env, "a", "tree.remove.after");
        let listed = env.ok(&["undo", "--list"])["operations"].clone();
        assert_eq!(listed.as_array().unwrap().len(), 1);
        env.refused(&["undo", &gone], 1, "undo_gone");
        env.refused(&["undo"], 1, "undo_gone");
        let undone = env.ok(&["undo", &listed[0]["event"].to_string()]);
        assert_eq!(undone["undone"], "tree.locked", "{undone}");
    }
}
