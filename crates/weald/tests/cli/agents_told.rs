//! What commands say of agents' work: the same objects everywhere for programs, the next command for people.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent_views::{UNTIL_TOLD, let_go, pulse, spawn, until_state};
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
    assert_eq!(work(&env, "1", "true").code, 0);
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
        let answer = work(&env, subject, "true");
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

/// Reads lines until one holds these words.
#[track_caller]
fn read_until(lines: &mut impl BufRead, words: &str) -> String {
    let mut all = String::new();
    while !all.contains(words) {
        let read = lines.read_line(&mut all).unwrap();
        assert_ne!(read, 0, "{words} was not said: {all}");
    }
    all
}

#[test]
fn p1_an_interrupt_while_it_lands_is_told_so() {
    let env = repository();
    let go = env.repo().canonicalize().unwrap().join("go");
    let gate = format!("until test -e {}; do sleep 0.05; done", go.display());
    set(&env, "gate.command", &gate);
    let mut command = env.weald_command(&["work", "Land slowly", "--", "sh", "-c", "echo 1 > one"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    read_until(&mut said, "works on task 1");
    until_state(&env, "a1", "finishing");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let words = "a1 is finishing and lands; Ctrl-C again leaves it";
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
fn s6_a_worker_tells_what_it_begins_and_that_it_waits() {
    let env = repository();
    env.ok(&["task", "add", "Two words"]);
    let args = [
        "worker",
        "--name",
        "alice",
        "--idle-timeout",
        "300ms",
        "--",
        "true",
    ];
    let answer = env.weald(&args);
    let begun = "alice: task 1 begun (a1 in two-words)";
    assert_eq!(answer.stderr.matches(begun).count(), 1, "{answer:#?}");
    let waits = answer.stderr.matches("alice: waits for work").count();
    assert_eq!(waits, 1, "{answer:#?}");
}

#[test]
fn s12_attach_begins_with_the_last_lines() {
    let env = repository();
    let script = format!("seq 100; {UNTIL_TOLD}");
    let agent = spawn(&env, "count to hundred", &[], &script);
    let id = agent["id"].as_str().unwrap();
    crate::agent_views::until("it has counted", || {
        pulse(&env, id)["output_bytes"].as_u64() > Some(290)
    });
    let attach = |more: &[&str], end: bool| -> Vec<String> {
        let mut command = env.weald_command(&[&["agent", "attach", id], more].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut all = read_until(&mut lines, "at work");
        match end {
            true => let_go(&pulse(&env, id)),
            false => kill_process(Pid::from_child(&child), Signal::INT).unwrap(),
        }
        lines.read_to_string(&mut all).unwrap();
        assert!(child.wait().unwrap().success());
        all.lines().map(str::to_owned).collect()
    };
    assert_eq!(attach(&["--tail", "2"], false), ["100", "at work"]);
    assert_eq!(attach(&["--all"], false).len(), 101);
    let told = attach(&[], true);
    assert_eq!((told[0].as_str(), told[19].as_str()), ("82", "at work"));
    assert!(told.iter().any(|line| line == "on it"), "{told:?}");
}

#[test]
fn t14_a_report_is_what_the_agent_said_and_nothing_else() {
    let env = repository();
    env.ok(&["task", "add", "First"]);
    env.ok(&["task", "add", "Second", "--after", "1"]);
    assert_eq!(work(&env, "1", "echo 1 > one").code, 0);
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["report"],
        json!(null)
    );
    let answer = work(&env, "2", "cp \"$WEALD_PROMPT_FILE\" prompt");
    assert_eq!(answer.code, 0, "{answer:#?}");
    let prompt = fs::read_to_string(env.repo().join("prompt")).unwrap();
    assert!(
        prompt.contains("First") && !prompt.contains("landing 1"),
        "{prompt}"
    );
}

#[test]
fn k14_a_run_that_took_snapshots_leaves_nothing_for_doctor() {
    let env = repository();
    set(&env, "snapshot.every", "1s");
    let answer = work(&env, "Take time", "echo 1 > one; sleep 2.5");
    assert_eq!(answer.code, 0, "{answer:#?}");
    let kept = env.weald(&["events", "--json", "--limit", "100"]).stdout;
    assert!(kept.contains("snapshot"), "none was taken: {kept}");
    let found = env.ok(&["doctor"])["findings"].to_string();
    assert!(!found.contains("leftover"), "{found}");
}

#[test]
fn s12_words_for_an_agent_that_does_not_listen_say_who_reads_them() {
    let env = repository();
    let agent = spawn(&env, "be deaf", &[], UNTIL_TOLD);
    let id = agent["id"].as_str().unwrap();
    until_state(&env, id, "running");
    let answer = env.weald(&["agent", "steer", id, "hello", "--session", "boss"]);
    assert!(answer.stderr.contains("weald msg inbox"), "{answer:#?}");
    let said = env.weald(&["agent", "pulse", id]).stdout;
    assert!(!said.contains("(running)"), "{said}");
    let all = env.ok(&["agent", "list", "--limit", "0"]);
    assert_eq!(all["agents"].as_array().unwrap().len(), 1);
    let_go(&pulse(&env, id));
    env.ok(&["agent", "wait", id]);
    for said in [
        env.weald(&["agent", "pulse", id]).stdout,
        env.weald(&["rescue", "1"]).stdout,
    ] {
        assert!(
            !said
                .lines()
                .any(|line| line.trim_end().ends_with(':') && line.contains("ago")),
            "{said}"
        );
        assert!(!said.contains("exit code 0: "), "{said}");
    }
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

/// As many agents as a person watches at once, on one screen.
#[test]
fn p11_ten_agents_fit_a_screen_one_row_each() {
    let env = repository();
    let names = ["--name", "alice"];
    let mut ids = Vec::new();
    for number in 0..10 {
        let subject =
            format!("Task number {number} with a long subject that goes on and on and on");
        let flags = if number == 3 { &names[..] } else { &[] };
        let agent = spawn(&env, &subject, flags, UNTIL_TOLD);
        ids.push(agent["id"].as_str().unwrap().to_owned());
    }
    for number in 0..9 {
        env.ok(&["task", "add", &format!("Later {number}")]);
    }
    for id in &ids {
        until_state(&env, id, "running");
    }
    let board = env.weald(&[]).stdout;
    assert!(board.lines().count() <= 24, "{board}");
    let widest = board.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{board}");
    for (number, id) in ids.iter().enumerate() {
        let rows: Vec<_> = board
            .lines()
            .filter(|line| line.contains(&format!("number {number}")))
            .collect();
        assert_eq!(rows.len(), 1, "{id}: {board}");
        let row = rows[0];
        assert!(row.contains(id) && row.contains("running"), "{row}");
        assert_eq!(row.contains("alice"), number == 3, "{row}");
    }
    assert!(
        !board.contains("in progress\n") && !board.contains("trees ("),
        "{board}"
    );
    let told = env.ok(&[]);
    assert_eq!(told["in_progress"].as_array().unwrap().len(), 10);
    assert_eq!(told["total"]["ready"], 9);
    let list = env.weald(&["agent", "list"]).stdout;
    assert!(list.contains("NAME") && list.contains("alice"), "{list}");
    for id in &ids {
        let_go(&pulse(&env, id));
    }
    env.ok(&[
        &["agent", "wait"],
        &ids.iter().map(String::as_str).collect::<Vec<_>>()[..],
    ]
    .concat());
}
