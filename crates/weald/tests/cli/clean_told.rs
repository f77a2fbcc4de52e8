//! A clean as people see it, and one that is disturbed.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::clean::{abandoned, blockers, named, pair};
use crate::trees_meanwhile::stands_still;
use crate::trees_remove::{commit, git_in, grow, has_event, repository};

#[test]
fn l2_one_that_fails_does_not_stop_the_rest() {
    let env = repository();
    let a = abandoned(&env, "a", "sealed");
    let b = abandoned(&env, "b", "sealed");
    let c = abandoned(&env, "c", "sealed");
    let mut command = env.weald_command(&["clean", "--apply", "--min-age", "0", "--json"]);
    command.env("WEALD_STEP", "stop:clean.begun");
    let clean = command.stdout(Stdio::piped()).spawn().unwrap();
    stands_still(&clean);
    // Somebody comes before it takes them.
    fs::write(b.join("draft"), "mine").unwrap();
    git_in(&env, &b, &["add", "draft"]);
    let pid = Pid::from_child(&clean);
    kill_process(pid, Signal::CONT).unwrap();
    let answer = weald_testkit::Answer::of(clean.wait_with_output().unwrap());
    let removed = named(&answer.json(), "removed", "outcome");
    assert_eq!(removed, [pair("a", "trashed"), pair("c", "trashed")]);
    // It was looked into before or after somebody came: then the removal was called off, or there was none.
    let failed = named(&answer.json(), "failed", "error");
    let kept = blockers(&answer.json()).contains_key("b");
    assert!(
        kept || (failed.len() == 1 && failed[0].0 == "b"),
        "{answer:#?}"
    );
    assert_eq!(answer.code, i32::from(!kept), "{answer:#?}");
    assert_eq!(fs::read_to_string(b.join("draft")).unwrap(), "mine");
    assert!(!a.exists() && !c.exists());
    // The trash can't be made where a file is.
    git_in(&env, &b, &["rm", "-qf", "draft"]);
    let trash = env.root().join("app.weald/.trash");
    fs::rename(&trash, env.root().join("elsewhere")).unwrap();
    fs::write(&trash, "in the way").unwrap();
    let answer = env.weald(&["clean", "--apply", "--min-age", "0", "--json"]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert!(b.join("config.py").is_file());
    assert!(has_event(&env, "b", "tree.remove.failed"));
}

#[test]
fn l3_people_read_what_keeps_a_tree_and_what_helps() {
    let env = repository();
    abandoned(&env, "free", "sealed");
    let dirty = abandoned(&env, "dirty", "sealed");
    fs::write(dirty.join("draft"), "mine").unwrap();
    for name in ["one", "two"] {
        let path = grow(&env, name, "sealed");
        commit(&env, &path, "new", "new");
    }
    let told = env.weald(&["clean", "--min-age", "0"]).stdout;
    for said in [
        "dirty = uncommitted changes: commit them, or weald rm dirty --discard",
        "branch_not_merged = commits that its target lacks: weald land NAME",
        "move 1 worktree to the trash: weald clean --min-age 0 --apply",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    // What is to be done is the same call.
    let told = env.weald(&[
        "clean",
        "--min-age",
        "90m",
        "--task",
        "1",
        "--fetch",
        "--set",
        "clean.requires=complete",
    ]);
    assert!(told.stdout.contains("would remove nothing"), "{told:#?}");
    let told = env.weald(&[
        "clean",
        "--min-age",
        "0",
        "--task",
        "1",
        "--fetch",
        "--set",
        "clean.requires=complete",
    ]);
    let again = "weald clean --min-age 0 --task 1 --fetch --set 'clean.requires=complete' --apply";
    assert!(told.stdout.contains(again), "{told:#?}");
    let report = env.ok(&["clean"]);
    assert!(
        !report.as_object().unwrap().contains_key("trash"),
        "{report:#}"
    );
    let help = env.weald(&["clean", "--help"]).stdout;
    assert!(help.contains("docs/cleanup.md"), "{help}");
}
