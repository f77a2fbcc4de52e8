//! `weald work` and `weald resume`: one command a task, whatever comes out.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::landing::{rev, show};
use crate::trees_remove::{KINDS, has_event, repository};

/// Works on a task with a shell script.
#[track_caller]
pub fn work(env: &TestEnv, task: &str, script: &str) -> Answer {
    env.weald(&["work", task, "--json", "--", "sh", "-c", script])
}

/// The status of a task.
#[track_caller]
pub fn status(env: &TestEnv, task: &str) -> Value {
    env.ok(&["task", "show", task])["task"]["status"].clone()
}

#[test]
fn p1_work_lands_what_an_agent_edited_and_added_without_committing() {
    let env = repository();
    fs::write(env.repo().join("known"), "1\n").unwrap();
    env.git(&["add", "known"]);
    env.git(&["commit", "-qm", "known"]);
    env.ok(&["task", "add", "Change it"]);
    let script = "echo 2 >> known; echo new > added; mkdir deep; echo x > deep/er";
    let answer = work(&env, "1", script);
    assert_eq!(answer.code, 0, "{answer:#?}");
    let json = answer.json();
    assert_eq!(json["exit"], 0);
    assert_eq!(json["task"]["status"], "completed");
    assert_eq!(json["landing"]["status"], "landed");
    for (file, text) in [("known", "1\n2\n"), ("added", "new\n"), ("deep/er", "x\n")] {
        assert_eq!(show(&env, file), text);
        assert_eq!(fs::read_to_string(env.repo().join(file)).unwrap(), text);
    }
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert!(!env.root().join("app.weald/change-it").exists());
    assert_eq!(env.git(&["branch", "--list", "wt/*"]), "");
}

/// What keeps work from landing is told with the way on, as `weald land` tells it.
#[test]
fn p1_what_did_not_land_says_what_helps() {
    let env = repository();
    fs::write(env.repo().join("known"), "1\n").unwrap();
    env.git(&["add", "known"]);
    env.git(&["commit", "-qm", "known"]);
    let told = |task: &str, script: &str| {
        let work = ["work", task, "--new", "--retries", "0"];
        let answer = env.weald(&[&work[..], &["--", "sh", "-c", script]].concat());
        assert_eq!(answer.code, 1, "{answer:#?}");
        answer.stdout
    };
    fs::write(env.repo().join("known"), "mine\n").unwrap();
    let refused = told("One", "echo 2 > known");
    assert!(
        refused.contains("\n    known\n") && refused.contains("first: commit"),
        "{refused}"
    );
    assert!(!refused.contains("weald sync"), "{refused}");
    env.git(&["checkout", "-q", "known"]);
    assert_eq!(env.weald(&["resume", "1"]).code, 0);
    env.ok(&["config", "set", "gate.command", "false"]);
    let red = told("Two", "echo 3 > known");
    assert!(red.contains("weald queue log 3"), "{red}");
}

#[test]
fn p1_success_without_changes_parks_and_failure_keeps_everything() {
    let env = repository();
    let before = rev(&env, "main");
    env.ok(&["task", "add", "Look at it"]);
    let answer = work(&env, "1", "true");
    assert_eq!((answer.code, status(&env, "1")), (1, json!("in_progress")));
    assert!(!env.root().join("app.weald/look-at-it").exists());
    env.ok(&["task", "add", "Break it"]);
    let answer = work(&env, "2", "false");
    assert_eq!((answer.code, status(&env, "2")), (1, json!("failed")));
    assert!(env.root().join("app.weald/break-it").exists());
    assert_eq!(rev(&env, "main"), before);
}

#[test]
fn m14_a_failed_run_keeps_the_tree_and_says_where() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "Try it"]);
        env.ok(&["new", "try", "--task", "1", "--kind", kind]);
        let script = "echo half > work; git add work; echo loose > loose; exit 1";
        let plain = env.weald(&["work", "1", "--", "sh", "-c", script]);
        assert_eq!(plain.code, 1, "{plain:#?}");
        let said = format!("{}{}", plain.stdout, plain.stderr);
        for part in ["app.weald/try", "wt/try", "kept", "weald resume 1"] {
            assert!(said.contains(part), "{part} is missing: {said}");
        }
        let tree = env.root().join("app.weald/try");
        assert_eq!(fs::read_to_string(tree.join("work")).unwrap(), "half\n");
        assert_eq!(fs::read_to_string(tree.join("loose")).unwrap(), "loose\n");
        assert!(!has_event(&env, "try", "tree.remove.before"));
    }
}

#[test]
fn p2_resume_goes_on_in_the_same_tree_and_makes_it_again() {
    let env = repository();
    env.ok(&["task", "add", "Go on"]);
    let tree = env.root().join("app.weald/go-on");
    let first = "echo 1 > one && git add one && git commit -qm one; echo 2 > two; exit 1";
    assert_eq!(work(&env, "1", first).code, 1);
    let again = env.weald(&[
        "resume",
        "1",
        "--json",
        "--",
        "sh",
        "-c",
        "cat one two && exit 1",
    ]);
    assert_eq!(again.code, 1, "{again:#?}");
    assert!(again.stderr.contains("1\n2\n"), "{again:#?}");
    fs::remove_dir_all(&tree).unwrap();
    let last = env.weald(&[
        "resume",
        "1",
        "--json",
        "--",
        "sh",
        "-c",
        "cat one; echo 3 > three",
    ]);
    assert_eq!(last.code, 0, "{last:#?}");
    assert_eq!(show(&env, "one"), "1\n");
    assert_eq!(show(&env, "three"), "3\n");
    let done = env.weald(&["resume", "1", "--json"]);
    assert_eq!(
        (done.code, &done.json()["diagnosis"]),
        (0, &json!("completed"))
    );
}

#[test]
fn p2_resume_repeats_the_command_and_gives_a_task_its_first_tree() {
    let env = repository();
    env.ok(&["task", "add", "Try twice"]);
    let script = "test -e tried || { touch tried; exit 1; }";
    assert_eq!(work(&env, "1", script).code, 1);
    let again = env.weald(&["resume", "1"]);
    assert_eq!(again.code, 0, "the same command again: {again:#?}");
    assert_eq!(status(&env, "1"), "completed");
    env.ok(&["task", "add", "Never begun"]);
    let first = env.weald(&["resume", "2", "--", "sh", "-c", "echo x > begun"]);
    assert_eq!(first.code, 0, "{first:#?}");
    assert_eq!(show(&env, "begun"), "x\n");
    env.ok(&["task", "add", "Blocked"]);
    env.ok(&["task", "cancel", "3"]);
    env.refused(&["resume", "9", "--", "true"], 4, "task_not_found");
}

#[test]
fn p2_a_conflict_is_resumed_by_the_agent_and_a_missing_approval_only_lands() {
    let env = repository();
    fs::write(env.repo().join("f"), "0\n").unwrap();
    env.git(&["add", "f"]);
    env.git(&["commit", "-qm", "f"]);
    env.ok(&["task", "add", "Conflict"]);
    let meanwhile = "echo theirs > f; git -C \"$WEALD_MAIN\" log -1 >/dev/null";
    env.ok(&["new", "conflict", "--task", "1"]);
    fs::write(env.repo().join("f"), "ours\n").unwrap();
    env.git(&["commit", "-qam", "ours"]);
    let answer = work(&env, "1", meanwhile);
    assert_eq!(answer.code, 3, "{answer:#?}");
    assert_eq!(status(&env, "1"), "needs_merge");
    env.weald(&["sync", "conflict"]);
    let script = "echo both > f; git add f; git commit -qm both";
    let again = env.weald(&["resume", "1", "--json", "--", "sh", "-c", script]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert_eq!(show(&env, "f"), "both\n");

    env.ok(&["config", "set", "policy.gate", "human"]);
    env.ok(&["task", "add", "Ask first"]);
    let count = "echo once >> log; echo ran";
    let answer = work(&env, "2", count);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert_eq!(status(&env, "2"), "in_progress", "parked: nobody takes it");
    env.refused(&["task", "claim", "--session", "other"], 4, "nothing_ready");
    let approved = env.weald_alone(&["approve", "ask-first", "--yes", "--json"]);
    assert_eq!(approved.code, 0, "{approved:#?}");
    let landed = env.weald_alone(&["resume", "2", "--json"]);
    assert_eq!(landed.code, 0, "{landed:#?}");
    assert_eq!(show(&env, "log"), "once\n", "the agent did not run again");
}

#[test]
fn m18_an_agents_landing_waits_for_a_person() {
    let env = repository();
    env.ok(&["config", "set", "policy.gate", "human"]);
    env.ok(&["task", "add", "Sneak in"]);
    let before = rev(&env, "main");
    let answer = work(
        &env,
        "1",
        "echo evil > evil; git add evil; git commit -qm evil",
    );
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert_eq!(rev(&env, "main"), before);
    let json = answer.json();
    assert_eq!(json["agent"]["end"]["outcome"], "not_landed");
    assert_eq!(json["landing"]["status"], "refused");
}

#[test]
fn s2_a_task_of_another_live_session_stops_work_and_ensure() {
    let env = repository();
    env.ok(&["task", "add", "Mine"]);
    env.ok(&["session", "register", "alice"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    for args in [
        &["work", "1", "--", "true"][..],
        &["ensure", "--task", "1"],
        &["resume", "1", "--", "true"],
    ] {
        let answer = env.weald(&[&["--json"], args].concat());
        assert_eq!(answer.code, 5, "{args:?}: {answer:#?}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], "task_held");
        assert_eq!(error["details"]["owner"], "alice");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.starts_with("alice has been working on task 1 since 20"),
            "{message}"
        );
    }
    assert_eq!(env.ok(&["list"])["trees"], json!([]));
    let own = env.weald_command(&["ensure", "--task", "1", "--json"]);
    let mut own = own;
    let own = Answer::of(own.env("WEALD_SESSION", "alice").output().unwrap());
    assert_eq!(own.code, 0, "the owner itself may: {own:#?}");
    env.ok(&["session", "end", "alice"]);
    assert_eq!(work(&env, "1", "echo x > x").code, 0);
}

#[test]
fn k10_work_inside_a_tree_runs_in_place() {
    let env = repository();
    env.ok(&["new", "here"]);
    let tree = env.root().join("app.weald/here");
    let mut command = env.weald_command(&["work", "Do it here", "--", "sh", "-c", "echo x > x"]);
    let answer = Answer::of(command.current_dir(&tree).output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(show(&env, "x"), "x\n");
    let trees = env.git(&["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "nothing else was made: {trees}");
    let foreign = env.repo().join(".claude/worktrees/x");
    fs::create_dir_all(&foreign).unwrap();
    let mut command = env.weald_command(&["work", "Not here", "--json", "--", "true"]);
    let answer = Answer::of(command.current_dir(&foreign).output().unwrap());
    assert_eq!(
        (answer.code, answer.error_code().as_str()),
        (1, "foreign_tree")
    );
}

#[test]
fn n7_odd_ids_and_subjects_are_refused_before_anything_is_made() {
    let env = repository();
    for text in ["../x", "a;rm -rf .", "-x y", "$(id) x", "a|b c", "", " "] {
        let answer = env.weald(&["work", "--json", "--", text]);
        assert_ne!(answer.code, 0, "{text:?}");
        let answer = env.weald(&["work", text, "--json", "--", "true"]);
        assert_ne!(answer.code, 0, "{text:?}: {answer:#?}");
    }
    env.refused(&["work", "nosuch", "--", "true"], 4, "task_not_found");
    assert_eq!(env.ok(&["task", "list"])["tasks"], json!([]));
    let odd = env.weald(&["work", "--new", "a;b", "--json", "--", "true"]);
    assert_eq!(odd.json()["task"]["subject"], "a;b");
}

#[test]
fn ignored_files_that_go_to_the_trash_with_a_worktree_are_mentioned() {
    let env = repository();
    let script = "echo 1 > one; echo 2 > build.log";
    let worked = env.weald(&["work", "Fix it", "--", "sh", "-c", script]);
    let told = "ignored files in it: 1, in the trash (weald trash restore ";
    assert!(worked.stdout.contains(told), "{worked:#?}");
    env.ok(&["new", "b"]);
    let script = format!("{script}; git add one; git commit -qm one --allow-empty");
    env.weald(&["run", "b", "--", "sh", "-c", &script.replace("1 >", "3 >")]);
    let landed = env.weald(&["land", "b"]);
    let told = "directory trashed with 1 ignored file,";
    assert!(landed.stdout.contains(told), "{landed:#?}");
}

#[test]
fn p15_the_story_names_tree_branch_and_what_happens_next() {
    let env = repository();
    env.ok(&["init", "--profile", "jean-claude"]);
    env.ok(&["task", "add", "Fix login", "--id", "jean_claude-y97"]);
    let words = [
        "work",
        "jean_claude-y97",
        "--yes",
        "--",
        "sh",
        "-c",
        "echo agent; echo 1 > one",
    ];
    let answer = env.weald(&words);
    assert_eq!(answer.code, 0, "{answer:#?}");
    let told = format!("{}{}", answer.stderr, answer.stdout);
    let root = env.root().canonicalize().unwrap().display().to_string();
    let told = told.replace(&root, "");
    let commit = &rev(&env, "main")[..7];
    assert_eq!(
        told.replace(commit, "COMMIT"),
        "Creating isolated worktree...\n\
         ✓ Worktree created: /app/trees/beads-jean_claude-y97\n\
         \x20 Branch: beads/jean_claude-y97\n\
         \x20 Agent a1 (command) works on task jean_claude-y97\n\
         Committing the work of a1\n\
         Merging beads-jean_claude-y97 with main\n\
         Moving main to beads-jean_claude-y97\n\
         Landed beads-jean_claude-y97 on main as COMMIT\n\
         Cleaned up beads-jean_claude-y97\n\
         agent\n\
         ✓ Agent finished\n\
         ✓ Merged into main as COMMIT, worktree and branch cleaned up (undo: weald revert 1)\n"
    );
}
