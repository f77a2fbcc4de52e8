//! The board and the dashboard: everything at a glance, with the command for whatever needs somebody.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::agent_views::{UNTIL_TOLD, let_go, pulse, spawn, until_state};
use crate::trees_remove::repository;

#[test]
fn p11_the_board_names_what_needs_somebody_and_fits_a_terminal() {
    let env = repository();
    let failed = spawn(&env, "fail at it", &[], "exit 3");
    env.ok(&["agent", "wait", failed["id"].as_str().unwrap()]);
    let words = "a subject that is far too long for one line of a terminal ".repeat(3);
    let long = spawn(&env, words.trim(), &["--name", "alice"], UNTIL_TOLD);
    let id = long["id"].as_str().unwrap();
    until_state(&env, id, "running");
    let ask = [
        "msg",
        "send",
        "boss",
        "blue or green?",
        "--type",
        "question",
    ];
    env.ok(&[&ask[..], &["--session", "alice"]].concat());
    env.ok(&["task", "add", words.trim()]);
    let mut board = env.weald_command(&["--json"]);
    let board = board.env("WEALD_SESSION", "boss").output().unwrap();
    let board = weald_testkit::Answer::of(board).json();
    let needs = board["needs"].as_array().unwrap().iter();
    let needs: Vec<_> = needs
        .map(|need| (&need["kind"], &need["command"]))
        .collect();
    let expected = [
        (json!("question"), json!("weald msg reply 1 \"…\"")),
        (json!("failed"), json!("weald resume 1")),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(kind, command)| (kind, command))
        .collect();
    assert_eq!(needs, expected);
    assert_eq!(board["agents"][0]["state"], "waiting");
    assert_eq!(board["queue"], json!([]));
    let text = env.weald(&[]).stdout;
    for word in [
        "needs you",
        "weald resume 1",
        "agents (1)",
        "worktrees (1)",
        "ready (1)",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(
        text.contains(words.trim()),
        "a program reads it whole: {text}"
    );
    let text = env.printed_at(80, "weald").join("\n");
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 80, "{widest}: {text}");
    let_go(&pulse(&env, id));
    env.ok(&["agent", "wait", id]);
}

#[test]
fn p11_status_of_all_tells_phase_progress_state_and_disk() {
    let env = repository();
    let script = format!("head -c 300000 /dev/urandom > big; {UNTIL_TOLD}");
    let agent = spawn(&env, "fill the disk", &[], &script);
    let id = agent["id"].as_str().unwrap();
    env.ok(&["task", "add", "later"]);
    until_state(&env, id, "running");
    crate::agent_views::until("the file is there", || {
        let status = env.ok(&["status", "--all"]);
        status["trees"][0]["bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 300_000)
    });
    let status = env.ok(&["status", "--all"]);
    let tree = &status["trees"][0];
    assert_eq!(
        (
            &tree["phase"],
            &tree["dirty"],
            &tree["agent"],
            &tree["agent_state"]
        ),
        (
            &json!("implementing"),
            &json!(true),
            &json!(id),
            &json!("running")
        )
    );
    assert_eq!(tree["bytes_whole"], true);
    assert_eq!(status["progress"], json!({"completed": 0, "total": 2}));
    let text = env.weald(&["status", "--all"]).stdout;
    assert!(
        text.contains("0 of 2 tasks") && text.contains("implementing"),
        "{text}"
    );
    let_go(&pulse(&env, id));
    env.ok(&["agent", "wait", id]);
    assert_eq!(env.ok(&["status", "--all"])["progress"]["completed"], 1);
}

#[test]
fn p11_a_watch_streams_what_changes_until_it_is_interrupted() {
    let env = repository();
    let agent = spawn(&env, "be watched", &[], UNTIL_TOLD);
    let id = agent["id"].as_str().unwrap();
    until_state(&env, id, "running");
    let mut watch = env.weald_command(&["status", "--watch"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut read_until = |word: &str| {
        let found = lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(word));
        found.unwrap_or_else(|| panic!("no line with {word}"))
    };
    read_until(&format!("{id}: running"));
    env.ok(&["agent", "pause", id]);
    read_until(&format!("{id}: paused"));
    env.ok(&["agent", "resume", id]);
    read_until(&format!("{id}: running"));
    let_go(&pulse(&env, id));
    read_until(&format!("{id}: ended"));
    kill_process(Pid::from_child(&watch), Signal::INT).unwrap();
    assert!(watch.wait().unwrap().success());
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
    let board = env.printed_at(80, "weald").join("\n");
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
    // Without a name: all that are at work.
    env.ok(&["agent", "wait"]);
    assert_eq!(env.ok(&["agent", "list"])["agents"], json!([]));
    assert_eq!(env.ok(&["agent", "wait"])["agents"], json!([]));
}
