//! Messages on the command line.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};
use weald_testkit::full_scale;

use crate::env;

fn texts(answer: &Value) -> Vec<String> {
    let messages = answer["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|message| message["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn s7_messages_are_consumed_exactly_once_while_others_write() {
    let env = env();
    let each = if full_scale() { 500 } else { 60 };
    let written = AtomicBool::new(false);
    let read = || {
        let mut found = Vec::new();
        loop {
            let last = written.load(Ordering::SeqCst);
            let batch = texts(&env.ok(&[
                "msg",
                "inbox",
                "--consume",
                "--limit",
                "7",
                "--session",
                "reader",
            ]));
            if batch.is_empty() && last {
                return found;
            }
            found.extend(batch);
        }
    };
    let found: Vec<String> = thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
        let script = format!(
            "for i in $(seq {each}); do \"$WEALD\" msg send reader \"$W $i\" --session w || exit 1; done"
        );
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let mut command = env.command("sh");
                command
                    .args(["-c", &script])
                    .env("W", writer.to_string())
                    .env("WEALD", env!("CARGO_BIN_EXE_weald"));
                command.stdout(Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut writer in writers {
            assert!(writer.wait().unwrap().success());
        }
        written.store(true, Ordering::SeqCst);
        readers
            .into_iter()
            .flat_map(|reader| reader.join().unwrap())
            .collect()
    });
    assert_eq!(found.len(), 4 * each, "none twice");
    assert_eq!(
        found.iter().collect::<BTreeSet<_>>().len(),
        4 * each,
        "none lost"
    );
}

#[test]
fn s8_requests_are_answered_once_by_whom_they_were_sent_to() {
    let env = env();
    env.ok(&["msg", "ask", "bob", "which port?", "--session", "alice"]);
    assert_eq!(
        env.ok(&["msg", "inbox", "--session", "bob"])["messages"][0]["state"],
        "pending"
    );
    env.refused(
        &["msg", "reply", "9", "x", "--session", "bob"],
        4,
        "message_not_found",
    );
    env.refused(
        &["msg", "reply", "1", "x", "--session", "carol"],
        1,
        "not_yours",
    );
    env.refused(
        &[
            "msg",
            "reply",
            "1",
            "x",
            "--type",
            "plan_verdict",
            "--session",
            "bob",
        ],
        1,
        "wrong_type",
    );
    let sent = env.ok(&["msg", "reply", "1", "8080", "--session", "bob"]);
    assert_eq!(
        (&sent["outcome"], &sent["messages"][0]["reply_to"]),
        (&json!("sent"), &json!(1))
    );
    assert_eq!(sent["messages"][0]["type"], "answer");
    let again = env.ok(&["msg", "reply", "1", "9090", "--session", "bob"]);
    assert_eq!(
        (&again["outcome"], &again["messages"]),
        (&json!("duplicate"), &json!([]))
    );
    assert_eq!(
        texts(&env.ok(&["msg", "inbox", "--consume", "--session", "alice"])),
        ["8080"]
    );
    assert!(
        texts(&env.ok(&["msg", "inbox", "--session", "bob"])).is_empty(),
        "answering takes the question out"
    );
    env.ok(&["msg", "send", "bob", "fyi", "--session", "alice"]);
    env.refused(
        &["msg", "reply", "4", "x", "--session", "bob"],
        1,
        "not_a_request",
    );
}

#[test]
fn s8_asking_can_wait_for_the_answer() {
    let env = env();
    env.refused(
        &[
            "msg",
            "ask",
            "bob",
            "?",
            "--wait",
            "50ms",
            "--session",
            "alice",
        ],
        1,
        "no_answer",
    );
    let mut command = env.weald_command(&[
        "msg",
        "ask",
        "bob",
        "really?",
        "--wait",
        "60s",
        "--session",
        "alice",
        "--json",
    ]);
    let asking = command.stdout(Stdio::piped()).spawn().unwrap();
    let seen = env.ok(&["msg", "inbox", "--session", "bob", "--wait", "60s"]);
    assert!(!texts(&seen).is_empty());
    let asked = || {
        env.ok(&["msg", "inbox", "--session", "bob"])["messages"]
            .as_array()
            .unwrap()
            .len()
    };
    while asked() < 2 {
        thread::yield_now();
    }
    env.ok(&["msg", "reply", "2", "yes", "--session", "bob"]);
    let output = asking.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(texts(&answer), ["really?", "yes"]);
}

#[test]
fn s9_plans_are_approved_or_rejected_with_feedback() {
    let env = env();
    env.ok(&["task", "add", "big", "--needs-plan"]);
    env.ok(&["task", "claim", "1", "--session", "worker"]);
    env.refused(
        &["task", "done", "1", "--token", "1"],
        1,
        "plan_not_approved",
    );
    let plan = |text: &str| {
        let args = [
            "msg",
            "send",
            "lead",
            text,
            "--type",
            "plan",
            "--task",
            "1",
            "--session",
            "worker",
        ];
        env.ok(&args)["messages"][0]["id"].to_string()
    };
    let first = plan("rewrite it all");
    env.refused(
        &["msg", "reply", &first, "hm", "--session", "lead"],
        1,
        "verdict_missing",
    );
    env.ok(&[
        "msg",
        "reply",
        &first,
        "smaller",
        "--reject",
        "--session",
        "lead",
    ]);
    env.refused(
        &["task", "done", "1", "--token", "1"],
        1,
        "plan_not_approved",
    );
    let verdict = env.ok(&["msg", "inbox", "--consume", "--session", "worker"]);
    assert_eq!(
        (
            &verdict["messages"][0]["type"],
            &verdict["messages"][0]["state"]
        ),
        (&json!("plan_verdict"), &json!("rejected"))
    );
    assert_eq!(texts(&verdict), ["smaller"]);
    let second = plan("one file");
    env.ok(&[
        "msg",
        "reply",
        &second,
        "go",
        "--approve",
        "--session",
        "lead",
    ]);
    env.ok(&["task", "done", "1", "--token", "1"]);
}

#[test]
fn s9_a_shutdown_is_a_handshake() {
    let env = env();
    let asked = env.ok(&[
        "msg",
        "send",
        "worker",
        "stop please",
        "--type",
        "shutdown",
        "--session",
        "lead",
    ]);
    let id = asked["messages"][0]["id"].to_string();
    env.ok(&[
        "msg",
        "reply",
        &id,
        "one minute",
        "--approve",
        "--session",
        "worker",
    ]);
    let reply = env.ok(&["msg", "inbox", "--consume", "--session", "lead"]);
    let last = reply["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["type"], &last["state"]),
        (&json!("shutdown_reply"), &json!("approved"))
    );
}

#[test]
fn urgent_messages_come_first_and_broadcasts_reach_everybody_else() {
    let env = env();
    for name in ["alice", "bob", "carol"] {
        env.ok(&["session", "register", name]);
    }
    env.ok(&["session", "end", "carol"]);
    env.ok(&["msg", "send", "bob", "later", "--session", "alice"]);
    env.ok(&[
        "msg",
        "send",
        "bob",
        "now",
        "--priority",
        "urgent",
        "--session",
        "alice",
    ]);
    let sent = env.ok(&["msg", "broadcast", "lunch", "--session", "alice"]);
    assert_eq!(sent["messages"].as_array().unwrap().len(), 1);
    assert_eq!(
        texts(&env.ok(&["msg", "inbox", "--session", "bob"])),
        ["now", "later", "lunch"]
    );
    let long = "x".repeat(100_000);
    env.ok(&["msg", "send", "bob", &long, "--session", "alice"]);
}

#[test]
fn s9_only_the_newest_plan_counts_and_nobody_approves_their_own() {
    let env = env();
    env.ok(&["task", "add", "big", "--needs-plan"]);
    env.ok(&["task", "claim", "1", "--session", "worker"]);
    let plan = |to: &str| {
        let args = [
            "msg",
            "send",
            to,
            "a plan",
            "--type",
            "plan",
            "--task",
            "1",
            "--session",
            "worker",
        ];
        env.ok(&args)["messages"][0]["id"].to_string()
    };
    let own = plan("worker");
    env.refused(
        &["msg", "reply", &own, "--approve", "--session", "worker"],
        1,
        "own_request",
    );
    let old = plan("lead");
    let new = plan("lead");
    env.ok(&["msg", "reply", &old, "--approve", "--session", "lead"]);
    env.refused(
        &["task", "done", "1", "--token", "1"],
        1,
        "plan_not_approved",
    );
    env.ok(&["msg", "reply", &new, "--approve", "--session", "lead"]);
    env.ok(&["task", "done", "1", "--token", "1"]);
    env.ok(&["task", "add", "small"]);
    env.ok(&[
        "msg",
        "send",
        "lead",
        "unasked",
        "--type",
        "plan",
        "--task",
        "2",
        "--session",
        "worker",
    ]);
    env.ok(&["task", "claim", "2", "--session", "worker"]);
    env.ok(&["task", "done", "2", "--token", "1"]);
}

#[test]
fn text_of_others_can_not_command_the_terminal() {
    let env = env();
    env.ok(&[
        "msg",
        "send",
        "bob",
        "\u{1b}]52;c;AAAA\u{7}",
        "--session",
        "alice",
    ]);
    let shown = env
        .weald(&["msg", "inbox", "--session", "bob", "--color", "never"])
        .stdout;
    assert!(
        shown.contains("]52;c") && !shown.contains('\u{1b}') && !shown.contains('\u{7}'),
        "{shown:?}"
    );
}

#[test]
fn s7_a_message_to_a_name_that_nobody_has_is_sent_and_told() {
    let env = env();
    env.ok(&["session", "register", "--session", "bob"]);
    env.ok(&["task", "add", "one"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    let send = |command: &str, to: &str| {
        env.weald(&["--json", "msg", command, to, "hello", "--session", "lead"])
    };
    // Who is here, and who works though it never registered.
    for to in ["bob", "alice"] {
        let sent = send("send", to);
        assert_eq!((sent.code, sent.stderr.as_str()), (0, ""), "{sent:#?}");
        assert!(sent.json().get("notices").is_none(), "{sent:#?}");
    }
    env.ok(&["session", "end", "--session", "bob"]);
    for (command, to, why) in [
        ("send", "bop", "there is no session bop"),
        ("ask", "bop", "there is no session bop"),
        ("send", "bob", "session bob has ended"),
    ] {
        let sent = send(command, to);
        assert_eq!(sent.code, 0, "{sent:#?}");
        assert!(sent.stderr.contains(why), "{sent:#?}");
        let notice = sent.json()["notices"][0].to_string();
        assert!(notice.contains(why), "{sent:#?}");
    }
    let wait = ["--json", "msg", "ask", "bop", "hello?", "--wait", "1s"];
    let unanswered = env.weald(&wait);
    assert_eq!(unanswered.error_code(), "no_answer");
    let details = &unanswered.json()["error"]["details"];
    let notice = details["notices"][0].to_string();
    assert!(notice.contains("there is no session bop"), "{details}");
    // It is there for whoever comes by that name.
    let inbox = env.ok(&["msg", "inbox", "--session", "bop"]);
    assert_eq!(texts(&inbox), ["hello", "hello", "hello?"]);
}
