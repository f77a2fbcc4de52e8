//! Steering agents: messages, pause and resume, stop, restart, attach.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::agent_views::{UNTIL_TOLD, let_go, pulse, spawn, until, until_state};
use crate::no_stray_records::unloadable;
use crate::trees_remove::repository;

/// The states of every process that has this word on its command line.
fn states(word: &str) -> Vec<char> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|found| found == word.as_bytes())
        })
        .filter_map(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let (_, after) = stat.rsplit_once(") ")?;
            after.chars().next()
        })
        .collect()
}

/// Processes that ignore signals, left their session, lost their parents; all of them count in a file of their own.
fn busy(mark: &str) -> String {
    let counting =
        "trap \"\" TERM INT HUP; n=0; while :; do n=$((n+1)); echo $n > $1; sleep 0.05; done";
    format!(
        "trap '' TERM INT HUP; count='{counting}'; \
         sh -c \"$count\" {mark} one & \
         setsid sh -c \"$count\" {mark} two & \
         (setsid sh -c \"$count\" {mark} three &) ; \
         nohup sh -c \"$count\" {mark} four >/dev/null 2>&1 & \
         exec sh -c \"$count\" {mark} five"
    )
}

fn counts(path: &str) -> Vec<String> {
    let read = |name| fs::read_to_string(format!("{path}/{name}")).unwrap_or_default();
    ["one", "two", "three", "four", "five"].map(read).to_vec()
}

#[test]
fn s12_a_pause_stops_every_process_and_a_stop_ends_them_all() {
    for (number, level) in ["full", "landlock"].into_iter().enumerate() {
        let env = repository();
        let mark = format!("weald-mark-{}-{number}", std::process::id());
        let level = format!("sandbox.level={level}");
        let agent = spawn(&env, "count for ever", &["--set", &level], &busy(&mark));
        let id = agent["id"].as_str().unwrap();
        let path = until_state(&env, id, "running")["path"]
            .as_str()
            .unwrap()
            .to_owned();
        until("all five count", || {
            counts(&path).iter().all(|count| !count.trim().is_empty())
        });
        let begun = Instant::now();
        let paused = env.ok(&["agent", "pause", id]);
        assert_eq!(paused["agents"][0]["state"], "paused");
        assert!(begun.elapsed() < Duration::from_secs(30));
        // Whoever waits for a processor stops when it gets one, before anything else. A shell that was about to start a
        // program (vfork) waits in the kernel (D) for one that is stopped.
        until("all of them are stopped", || {
            let found = states(&mark);
            found.len() >= 5 && found.iter().all(|state| "TD".contains(*state))
        });
        let before = counts(&path);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(counts(&path), before, "{level}: somebody counts on");
        env.refused(&["agent", "pause", id], 1, "agent_not_now");
        env.ok(&["agent", "resume", id]);
        until("all five count on", || {
            counts(&path)
                .iter()
                .zip(&before)
                .all(|(now, then)| now != then)
        });
        env.refused(&["agent", "resume", id], 1, "agent_not_now");
        // A paused one ends, too, though none of its processes listens.
        env.ok(&["agent", "pause", id]);
        let begun = Instant::now();
        env.ok(&["agent", "stop", id, "--reason", "enough"]);
        until("nobody is left", || states(&mark).is_empty());
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{level}: {:?}",
            begun.elapsed()
        );
        let ended = env.ok(&["agent", "wait", id])["agents"][0].clone();
        assert_eq!(
            (&ended["end"]["outcome"], &ended["end"]["why"]),
            (&json!("stopped"), &json!("enough"))
        );
        let task = env.ok(&["task", "show", &ended["task"].to_string()])["task"].clone();
        assert_eq!(task["status"], "failed", "{task:#}");
        assert!(fs::metadata(&path).is_ok(), "its tree is kept");
        assert_eq!(
            env.ok(&["show", agent["tree"].as_str().unwrap()])["tree"]["status"],
            "active"
        );
    }
}

#[test]
fn s12_a_stop_asks_first_and_may_give_the_task_back() {
    let env = repository();
    let script =
        "trap 'echo bye > farewell; exit 0' TERM; echo at work; while :; do sleep 0.05; done";
    let agent = spawn(&env, "say goodbye", &[], script);
    let id = agent["id"].as_str().unwrap();
    until("it is ready", || {
        pulse(&env, id)["last_output"] == "at work"
    });
    let path = agent["path"].as_str().unwrap();
    let stopped = env.ok(&["agent", "stop", id, "--release", "--wait"]);
    assert_eq!(stopped["agents"][0]["end"]["outcome"], "stopped");
    assert_eq!(
        fs::read_to_string(format!("{path}/farewell")).unwrap(),
        "bye\n"
    );
    let task = env.ok(&["task", "show", &agent["task"].to_string()])["task"].clone();
    assert_eq!(
        (&task["status"], &task["owner"]),
        (&json!("pending"), &Value::Null)
    );
    env.refused(&["agent", "stop", id], 1, "agent_over");
    env.refused(&["agent", "steer", id, "too late"], 1, "agent_over");
}

#[test]
fn s12_words_go_into_the_inbox_by_their_priority() {
    let env = repository();
    let agent = spawn(&env, "read your mail", &["--name", "alice"], UNTIL_TOLD);
    let id = agent["id"].as_str().unwrap();
    env.ok(&["msg", "send", "alice", "some time", "--session", "boss"]);
    env.ok(&["agent", "steer", id, "left", "--session", "boss"]);
    env.ok(&[
        "agent",
        "steer",
        id,
        "stop that",
        "--urgent",
        "--session",
        "boss",
    ]);
    let inbox = env.ok(&["msg", "inbox", "--session", "alice"]);
    let words = inbox["messages"].as_array().unwrap().iter();
    let words: Vec<_> = words.map(|m| (&m["text"], &m["priority"])).collect();
    let expected = [
        ("stop that", "urgent"),
        ("left", "steer"),
        ("some time", "info"),
    ];
    let expected = expected.map(|(text, priority)| (json!(text), json!(priority)));
    let expected: Vec<_> = expected
        .iter()
        .map(|(text, priority)| (text, priority))
        .collect();
    assert_eq!(words, expected);
    let_go(&pulse(&env, id));
    env.ok(&["agent", "wait", id]);
}

#[test]
fn s6_s9_a_request_to_shut_down_is_answered_and_obeyed_at_work() {
    let env = repository();
    let agent = spawn(&env, "work until told", &["--name", "alice"], UNTIL_TOLD);
    let id = agent["id"].as_str().unwrap();
    until_state(&env, id, "running");
    let ask = ["msg", "send", "alice", "time to go", "--type", "shutdown"];
    env.ok(&[&ask[..], &["--session", "boss"]].concat());
    let ended = env.ok(&["agent", "wait", id])["agents"][0].clone();
    assert_eq!(ended["end"]["outcome"], "stopped", "{ended:#}");
    let inbox = env.ok(&["msg", "inbox", "--session", "boss"]);
    let reply = &inbox["messages"][0];
    assert_eq!(
        (&reply["type"], &reply["state"]),
        (&json!("shutdown_reply"), &json!("approved"))
    );
    let task = env.ok(&["task", "show", &agent["task"].to_string()])["task"].clone();
    assert_eq!(task["status"], "pending");
}

#[test]
fn s13_a_restart_goes_on_in_the_same_tree() {
    let env = repository();
    let script = "echo $((1 + $(cat tries 2>/dev/null || echo 0))) > tries; test $(cat tries) = 2";
    let first = spawn(&env, "try twice", &[], script);
    let id = first["id"].as_str().unwrap();
    env.ok(&["agent", "wait", id]);
    assert_eq!(pulse(&env, id)["condition"], "failed");
    env.refused(&["agent", "restart", id, "--resume"], 1, "no_conversation");
    let second = env.ok(&["agent", "restart", id, "--fresh"])["agents"][0].clone();
    assert_eq!(
        (&second["resumes"], &second["tree"], &second["attempt"]),
        (&json!(id), &first["tree"], &json!(2))
    );
    env.ok(&["agent", "wait", second["id"].as_str().unwrap()]);
    assert_eq!(fs::read_to_string(env.repo().join("tries")).unwrap(), "2\n");
    env.refused(&["agent", "restart", id], 1, "agent_superseded");
}

#[test]
fn s13_what_is_finished_is_not_started_again_unless_that_is_said() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["work", "1", "--", "sh", "-c", "echo x >> f"]);
    env.refused(&["agent", "restart", "1"], 1, "task_finished");
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["status"],
        "completed"
    );
    env.ok(&["agent", "restart", "1", "--force"]);
    env.ok(&["agent", "wait", "1"]);
    assert_eq!(env.git(&["show", "main:f"]), "x\nx\n");
}

#[test]
fn s13_a_restart_is_refused_at_work_unless_it_is_stopped_first() {
    let env = repository();
    let agent = spawn(&env, "work on", &[], UNTIL_TOLD);
    let id = agent["id"].as_str().unwrap();
    until_state(&env, id, "running");
    env.refused(&["agent", "restart", id], 1, "agent_running");
    assert_eq!(pulse(&env, id)["state"], "running");
    let second = env.ok(&["agent", "restart", id, "--force"])["agents"][0].clone();
    assert_eq!(pulse(&env, id)["end"]["outcome"], "stopped");
    assert_eq!(second["tree"], agent["tree"]);
    let_go(&second);
    let ended = env.ok(&["agent", "wait", second["id"].as_str().unwrap()]);
    assert_eq!(ended["agents"][0]["condition"], "done");
}

#[test]
fn s13_a_restart_that_fails_leaves_everything_as_it_was() {
    let env = repository();
    let tool = env.repo().join("tool");
    fs::write(&tool, "#!/bin/sh\nexit 1\n").unwrap();
    let run = |mode| env.command("chmod").arg(mode).arg(&tool).status().unwrap();
    run("755");
    let spawned = env.weald(&[
        "--json",
        "agent",
        "spawn",
        "use the tool",
        "--",
        tool.to_str().unwrap(),
    ]);
    let agent = spawned.json()["agents"][0].clone();
    let id = agent["id"].as_str().unwrap();
    env.ok(&["agent", "wait", id]);
    let task = agent["task"].to_string();
    let before = env.ok(&["task", "show", &task])["task"].clone();
    let record = pulse(&env, id);
    assert_eq!(before["status"], "failed");
    // It is there and may be executed, but can't be.
    unloadable(&tool);
    let answer = env.weald(&["agent", "restart", id, "--json"]);
    assert_eq!(
        (answer.code, answer.error_code().as_str()),
        (1, "agent_not_started")
    );
    let after = env.ok(&["task", "show", &task])["task"].clone();
    for key in ["status", "report", "worktree", "lease"] {
        assert_eq!(after[key], before[key], "{key}: {after:#}");
    }
    assert_eq!(pulse(&env, id), record);
    assert_eq!(env.ok(&["agent", "list"])["agents"], json!([]));
}

#[test]
fn s12_whoever_is_attached_leaves_and_the_agent_goes_on() {
    let env = repository();
    let agent = spawn(&env, "be followed", &["--name", "alice"], UNTIL_TOLD);
    let id = agent["id"].as_str().unwrap();
    let attach = |env: &TestEnv| {
        let mut command = env.weald_command(&["agent", "attach", id, "--session", "boss"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = attach(&env);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "at work");
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"a word\n")
        .unwrap();
    until("the word is in its inbox", || {
        let inbox = env.ok(&["msg", "inbox", "--session", "alice"]);
        inbox["messages"][0]["text"] == "a word"
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("{id} keeps running")));
    assert_eq!(pulse(&env, id)["state"], "running");
    // The next one sees its end.
    let child = attach(&env);
    let_go(&pulse(&env, id));
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("on it") && text.contains("Merged into main"),
        "{text}"
    );
}

/// Reads lines until one holds these words.
#[track_caller]
pub fn read_until(lines: &mut impl BufRead, words: &str) -> String {
    let mut all = String::new();
    while !all.contains(words) {
        let read = lines.read_line(&mut all).unwrap();
        assert_ne!(read, 0, "{words} was not said: {all}");
    }
    all
}

#[test]
fn s12_attach_begins_with_the_last_lines() {
    let env = repository();
    let script = format!("seq 100; {UNTIL_TOLD}");
    let agent = spawn(&env, "count to hundred", &[], &script);
    let id = agent["id"].as_str().unwrap();
    until("it has counted", || {
        pulse(&env, id)["output_bytes"].as_u64() > Some(299)
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
