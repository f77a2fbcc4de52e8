//! What commands say of agents' work: the same objects everywhere for programs, the next command for people.

use std::fs;
use std::io::{BufReader, Read};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent_orders::read_until;
use crate::agent_views::{UNTIL_TOLD, let_go, until_state};
use crate::landing_gate::set;
use crate::trees_remove::repository;
use crate::work::work;

/// What `weald land --json` says of a landing, and no less.
#[track_caller]
fn assert_landing(landing: &Value, outcome: &str) {
    assert_eq!(landing["outcome"], outcome, "{landing:#}");
    assert_eq!(landing["status"], outcome, "the record is there, too");
    assert!(landing["conflicts"].is_array(), "{landing:#}");
    if outcome == "landed" {
        assert_eq!(landing["commit"], landing["new_tip"], "{landing:#}");
        assert_eq!(landing["cleanup"]["directory"], "trashed", "{landing:#}");
    }
}

#[test]
fn p1_a_landing_is_the_same_object_wherever_it_is_told() {
    let env = repository();
    for subject in ["One", "Two", "Three", "Four"] {
        env.ok(&["task", "add", subject]);
    }
    let worked = work(&env, "1", "echo 1 > one");
    assert_landing(&worked.json()["landing"], "landed");
    assert_eq!(work(&env, "2", "echo 2 > two; exit 1").code, 1);
    let resumed = env.weald(&["resume", "2", "--json", "--", "true"]);
    assert_landing(&resumed.json()["landing"], "landed");
    let phased = env.weald(&["phase", "3", "--json", "--", "sh", "-c", "date > three"]);
    let told = phased.json();
    assert_landing(&told["landing"], "landed");
    let stages = told["phase"]["stages"].as_array().unwrap().iter();
    let stages: Vec<_> = stages
        .map(|stage| (stage["phase"].clone(), stage["state"].clone()))
        .collect();
    let passed = ["plan", "build", "review", "qa"].map(|phase| (json!(phase), json!("PASS")));
    assert_eq!(stages, passed, "{told:#}");
    let race = ["race", "4", "-n", "2", "--json", "--", "sh", "-c"];
    let raced = env.weald(&[&race[..], &["echo 4 > four"]].concat());
    assert_eq!(raced.code, 0, "{raced:#?}");
    let picked = env.ok(&["race", "pick", "4", "a"]);
    assert_landing(&picked["landing"], "landed");
}

#[test]
fn p1_a_detached_agent_is_told_as_its_supervisor_has_it() {
    let env = repository();
    let args = ["work", "Be away", "--detach", "--json", "--", "sh", "-c"];
    let answer = env.weald(&[&args[..], &[UNTIL_TOLD]].concat());
    let agent = &answer.json()["agent"];
    assert_eq!(agent["supervised"], true, "{agent:#}");
    let id = agent["id"].as_str().unwrap().to_owned();
    assert_ne!(agent["supervisor"]["pid"], json!(null));
    let_go(&until_state(&env, &id, "running"));
    env.ok(&["agent", "wait", &id]);
}

#[test]
fn p1_work_that_did_not_land_says_where_it_is() {
    let env = repository();
    let args = [
        "work",
        "Keep it",
        "--no-land",
        "--",
        "sh",
        "-c",
        "echo 1 > one",
    ];
    let told = env.weald(&args).stdout;
    let path = env.root().canonicalize().unwrap().join("app.weald/keep-it");
    let path = path.display().to_string();
    for part in [path.as_str(), "wt/keep-it", "weald land keep-it"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let again = env.weald(&["resume", "1"]).stdout;
    for part in [
        "1 commits",
        &path,
        "weald land keep-it",
        "weald task reopen 1",
    ] {
        assert!(again.contains(part), "{part}: {again}");
    }
    env.ok(&["land", "keep-it"]);
    let landed = env.weald(&["resume", "1"]).stdout;
    assert!(!landed.contains("weald land"), "{landed}");
    let failed = env.weald(&["work", "Fail it", "--", "false"]).stdout;
    let place = path.replace("keep-it", "fail-it");
    assert!(failed.contains(&place), "{failed}");
    let both = env.weald(&["work", "Both ways", "--land", "--no-land", "--", "true"]);
    assert_eq!(both.code, 2, "{both:#?}");
}

#[test]
fn p1_hints_name_what_works() {
    let env = repository();
    let hint = |args: &[&str]| -> String {
        let answer = env.weald(&[&["--json"], args].concat());
        assert_ne!(answer.code, 0, "{args:?}: {answer:#?}");
        let error = &answer.json()["error"];
        error["hint"].as_str().unwrap_or_default().to_owned()
    };
    for args in [
        &["resume", "77"][..],
        &["phase", "999", "--", "true"],
        &["agent", "spawn", "999", "--", "true"],
    ] {
        assert_eq!(hint(args), "weald task list", "{args:?}");
    }
    assert!(hint(&["work", "77", "--", "true"]).contains("--new"));
    env.ok(&["task", "add", "Done soon"]);
    assert_eq!(work(&env, "1", "echo x > x").code, 0);
    let answer = env.weald(&["work", "1", "--", "true"]);
    assert!(answer.stderr.contains("weald task reopen 1"), "{answer:#?}");
    assert!(!answer.stderr.contains("Creating"), "{answer:#?}");
    env.ok(&["task", "add", "Bound"]);
    env.ok(&["task", "add", "Other"]);
    env.ok(&["new", "bound", "--task", "2"]);
    let bound = hint(&["new", "another", "--task", "2"]);
    assert!(!bound.contains("--rebind"), "{bound}");
    assert!(hint(&["task", "bind", "3", "bound"]).contains("--rebind"));
    let rescue = env.ok(&["rescue", "3"]);
    let choices = &rescue["rescue"]["choices"];
    assert_eq!(
        *choices,
        json!(["weald rescue 3 --continue", "weald rescue 3 --restart"])
    );
}

#[test]
fn n7_a_subject_is_words_and_the_error_names_what_is_not() {
    let env = repository();
    for (number, subject) in ["Fix login & logout", "Rename $x to $y", "Use a \\ here"]
        .into_iter()
        .enumerate()
    {
        let answer = work(&env, subject, "echo $WEALD_TASK > x");
        assert_eq!(answer.code, 0, "{answer:#?}");
        assert_eq!(answer.json()["task"]["subject"], subject);
        assert_eq!(answer.json()["task"]["id"], number + 1);
    }
    for (text, odd) in [
        ("a;rm -rf .", "\";\""),
        ("say `id` now", "\"`\""),
        ("say $(id) now", "\"$(\""),
        ("a | b", "\"|\""),
        ("a && b", "\"&&\""),
        ("a > b", "\">\""),
        ("./x y", "'.'"),
        ("a\u{7} b", "'\\u{7}'"),
    ] {
        let answer = env.weald(&["work", text, "--json", "--", "true"]);
        assert_eq!(answer.error_code(), "bad_id", "{text:?}");
        let message = answer.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains(odd), "{message}");
    }
}

#[test]
fn p1_an_interrupt_while_it_lands_is_told_so() {
    let env = repository();
    let go = env.repo().canonicalize().unwrap().join("go");
    let go_on = format!("test -e {} && exit 0", go.display());
    let gate = format!("for turn in $(seq 400); do {go_on}; sleep 0.05; done; exit 1");
    set(&env, "gate.command", &gate);
    let mut command = env.weald_command(&["work", "Land slowly", "--", "sh", "-c", "echo 1 > one"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    read_until(&mut said, "works on task 1");
    until_state(&env, "a1", "finishing");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let words = "a1 is finishing and lands; press Ctrl-C again to leave it running";
    let told = read_until(&mut said, words);
    assert!(!told.contains("asking"), "{told}");
    fs::write(&go, "").unwrap();
    let mut rest = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut rest)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("Merged into main"), "{rest}");
}

#[test]
fn m14_notes_have_no_colour_of_their_own() {
    let env = repository();
    let args = ["--color", "always", "work", "Be plain", "--", "true"];
    let answer = env.weald(&args);
    let note = answer
        .stderr
        .lines()
        .find(|line| line.contains("Worktree created"));
    assert!(note.unwrap().starts_with('✓'), "{answer:#?}");
}
