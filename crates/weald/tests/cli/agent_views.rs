//! Seeing agents: spawn, list, pulse, diff, logs, wait, and what stops a spawn.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{grow, repository};

/// Starts an agent that runs a script, and answers what `spawn` said of it.
#[track_caller]
pub fn spawn(env: &TestEnv, subject: &str, flags: &[&str], script: &str) -> Value {
    let head = ["agent", "spawn", subject];
    let tail = ["--", "sh", "-c", script];
    let answer = env.weald(&[&["--json"], &head[..], flags, &tail].concat());
    assert_eq!(answer.code, 0, "{answer:#?}");
    answer.json()["agents"][0].clone()
}

#[track_caller]
pub fn pulse(env: &TestEnv, id: &str) -> Value {
    env.ok(&["agent", "pulse", id])["agents"][0].clone()
}

/// Waits until something holds; a test that waits too long fails.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
pub fn until_state(env: &TestEnv, id: &str, state: &str) -> Value {
    let mut last = Value::Null;
    until(&format!("{id} is {state}"), || {
        last = pulse(env, id);
        last["state"] == state
    });
    last
}

/// Works until a file appears in its tree.
pub const UNTIL_TOLD: &str = "echo at work; until test -e go; do sleep 0.05; done; echo on it";

#[track_caller]
pub fn let_go(agent: &Value) {
    let path = agent["path"].as_str().expect("a tree");
    fs::write(format!("{path}/go"), "").unwrap();
}

#[test]
fn s5_an_agent_has_its_own_process_tree_name_and_log() {
    let env = repository();
    let script = format!("pwd; {UNTIL_TOLD}");
    let one = spawn(&env, "do one thing", &["--name", "alice"], &script);
    let two = spawn(&env, "do another", &["--name", "bob"], &script);
    let (a, b) = (one["id"].as_str().unwrap(), two["id"].as_str().unwrap());
    let (one, two) = (
        until_state(&env, a, "running"),
        until_state(&env, b, "running"),
    );
    for key in ["pid", "tree", "branch", "path", "id", "session"] {
        assert!(!one[key].is_null(), "{key}: {one:#}");
        assert_ne!(one[key], two[key], "{key}");
    }
    assert!(fs::metadata(format!("/proc/{}", one["pid"])).is_ok());
    let log = env.private().join("agents").join(a).join("output.log");
    until("its output is kept", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("at work"))
    });
    assert!(
        fs::read_to_string(&log)
            .unwrap()
            .contains(one["path"].as_str().unwrap())
    );
    // A name belongs to one agent at a time.
    let again = ["agent", "spawn", "a third", "--name", "alice", "--", "true"];
    let refused = env.weald(&[&["--json"], &again[..]].concat());
    assert_eq!(
        (refused.code, refused.error_code().as_str()),
        (5, "agent_name_taken")
    );
    // Every way to name it leads to it.
    for name in [
        a,
        "alice",
        one["tree"].as_str().unwrap(),
        &one["task"].to_string(),
    ] {
        assert_eq!(pulse(&env, name)["id"], one["id"], "{name}");
    }
    let_go(&one);
    let_go(&two);
    let waited = env.ok(&["agent", "wait", a, b]);
    assert_eq!(waited["timed_out"], false);
    let outcomes = waited["agents"].as_array().unwrap().iter();
    let outcomes: Vec<_> = outcomes.map(|agent| &agent["end"]["outcome"]).collect();
    assert_eq!(outcomes, ["done", "done"]);
    let text = env.ok(&["agent", "logs", a, "--tail", "1"])["text"].clone();
    assert_eq!(text, "on it\n");
}

#[test]
fn s10_agents_are_listed_filtered_paged_and_told_by_what_changed() {
    let env = repository();
    let fails = spawn(&env, "fail at it", &[], "echo no luck; exit 3");
    let failed = fails["id"].as_str().unwrap();
    env.ok(&["agent", "wait", failed]);
    let works = spawn(&env, "work on it", &[], UNTIL_TOLD);
    let works = works["id"].as_str().unwrap().to_owned();
    until_state(&env, &works, "running");
    let ids = |args: &[&str]| {
        let list = env.ok(&[&["agent", "list"], args].concat());
        let agents = list["agents"].as_array().unwrap().clone();
        let ids = agents.iter().map(|agent| agent["id"].clone());
        (ids.collect::<Vec<_>>(), list)
    };
    assert_eq!(ids(&[]).0, [works.as_str()]);
    assert_eq!(ids(&["--all"]).0, [failed, &works]);
    assert_eq!(ids(&["--state", "failed"]).0, [failed]);
    assert_eq!(ids(&["--state", "running,paused"]).0, [works.as_str()]);
    assert_eq!(
        ids(&["--all", "--limit", "1", "--offset", "1"]).0,
        [works.as_str()]
    );
    assert_eq!(
        ids(&["--all", "--sort", "state"]).0,
        [works.as_str(), failed]
    );
    let (_, list) = ids(&["--all", "--limit", "1"]);
    assert_eq!(list["total"], 2);
    assert_eq!(list["agents"][0]["condition"], "failed");
    let alert = &list["alerts"][0];
    assert_eq!(
        (&alert["agent"], &alert["kind"]),
        (&json!(failed), &json!("failed"))
    );
    assert_eq!(alert["command"], format!("weald resume {}", fails["task"]));
    // Nothing changed since; then one is paused, and only that one is told.
    let seq = list["seq"].to_string();
    assert_eq!(ids(&["--since", &seq]).0, [0_u8; 0]);
    env.ok(&["agent", "pause", &works]);
    let (changed, list) = ids(&["--since", &seq]);
    assert_eq!(changed, [works.as_str()]);
    assert_eq!(list["agents"][0]["condition"], "paused");
    let kinds = list["alerts"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|alert| &alert["kind"]).collect();
    assert_eq!(kinds, ["failed", "paused"]);
    env.refused(&["agent", "list", "--state", "odd"], 2, "invalid_value");
    env.refused(&["agent", "pulse", "a99"], 4, "agent_not_found");
    env.ok(&["agent", "stop", &works, "--wait"]);
}

#[test]
fn s10_an_agent_that_asked_is_waiting_until_somebody_answers() {
    let env = repository();
    let agent = spawn(&env, "ask first", &["--name", "asker"], UNTIL_TOLD);
    let id = agent["id"].as_str().unwrap();
    until_state(&env, id, "running");
    let ask = [
        "msg",
        "send",
        "boss",
        "blue or green?",
        "--type",
        "question",
    ];
    let question = env.ok(&[&ask[..], &["--session", "asker"]].concat());
    let number = question["messages"][0]["id"].to_string();
    let view = pulse(&env, id);
    assert_eq!(
        (&view["state"], &view["condition"]),
        (&json!("waiting"), &json!("stuck"))
    );
    assert_eq!(view["question_text"], "blue or green?");
    let alerts = env.ok(&["agent", "list"])["alerts"].clone();
    assert_eq!(
        alerts[0]["command"],
        format!("weald msg reply {number} \"…\"")
    );
    env.ok(&["msg", "reply", &number, "green", "--session", "boss"]);
    assert_eq!(pulse(&env, id)["state"], "running");
    let_go(&view);
    env.ok(&["agent", "wait", id]);
}

#[test]
fn s11_pulse_and_diff_tell_what_is_really_there() {
    let env = repository();
    let script = format!(
        "echo new > made; echo more >> config.py; git add made; git commit -qm made; {UNTIL_TOLD}"
    );
    let agent = spawn(&env, "change two files", &[], &script);
    let id = agent["id"].as_str().unwrap();
    until("it says so", || pulse(&env, id)["last_output"] == "at work");
    let view = pulse(&env, id);
    assert_eq!(view["state"], "running");
    assert!(view["idle_seconds"].as_i64().unwrap() < 60, "{view:#}");
    let files = |what: &Value| {
        let mut files: Vec<_> = what["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| (file["path"].clone(), file["state"].clone()))
            .collect();
        files.sort_by_key(|(path, _)| path.to_string());
        files
    };
    assert_eq!(
        files(&env.ok(&["agent", "diff", id])),
        [
            (json!("config.py"), json!("unstaged")),
            (json!("made"), json!("committed"))
        ]
    );
    let patch = env.weald(&["agent", "diff", id]).stdout;
    assert!(patch.contains("+more"), "{patch}");
    let_go(&view);
    env.ok(&["agent", "wait", id]);
    // Its tree is gone, so it is what it landed (with the file that told it to go on).
    assert_eq!(env.ok(&["list"])["trees"], json!([]));
    let landed = files(&env.ok(&["agent", "diff", id]));
    let paths: Vec<_> = landed.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(paths, ["config.py", "go", "made"]);
    let patch = env.weald(&["agent", "diff", id]).stdout;
    assert!(patch.contains("+more") && patch.contains("+new"), "{patch}");
}

#[test]
fn s17_a_spawn_is_refused_while_a_finished_task_has_a_tree() {
    let env = repository();
    let finished = spawn(&env, "finish it", &["--no-land"], "echo x > x");
    env.ok(&["agent", "wait", finished["id"].as_str().unwrap()]);
    let tree = finished["tree"].as_str().unwrap();
    let again = ["agent", "spawn", "the next thing"];
    let refused = env.weald(&[&["--json"], &again[..], &["--", "true"]].concat());
    assert_eq!(
        (refused.code, refused.error_code().as_str()),
        (1, "abandoned_trees")
    );
    let error = refused.json()["error"].clone();
    assert_eq!(error["details"]["trees"], json!([tree]));
    for command in ["weald land", "weald keep", "weald rm", "--force"] {
        assert!(
            error["hint"].as_str().unwrap().contains(command),
            "{error:#}"
        );
    }
    assert_eq!(
        env.ok(&["task", "list"])["tasks"].as_array().unwrap().len(),
        1
    );
    let forced = spawn(&env, "the next thing", &["--force"], "true");
    env.ok(&["agent", "wait", forced["id"].as_str().unwrap()]);
    env.ok(&["keep", tree]);
    let after = spawn(&env, "and one more", &[], "true");
    env.ok(&["agent", "wait", after["id"].as_str().unwrap()]);
    // A tree without a task, or of an open one, is in nobody's way.
    grow(&env, "mine", "sealed");
    let last = spawn(&env, "the last one", &[], "true");
    env.ok(&["agent", "wait", last["id"].as_str().unwrap()]);
}

#[test]
fn s19_waiting_ends_with_the_agent_or_with_the_time() {
    let env = repository();
    let quick = spawn(&env, "be quick", &[], "true");
    let slow = spawn(&env, "be slow", &[], UNTIL_TOLD);
    let (quick, slow) = (quick["id"].as_str().unwrap(), slow["id"].as_str().unwrap());
    let any = env.ok(&["agent", "wait", slow, quick, "--any"]);
    assert_eq!(any["agents"][1]["state"], "exited");
    assert_ne!(any["agents"][0]["state"], "exited", "{any:#}");
    for time in ["29s", "1801s", "1h", "0s"] {
        let wait = ["agent", "wait", slow, "--timeout", time];
        env.refused(&wait, 2, "invalid_value");
    }
    let begun = Instant::now();
    let answer = env.weald(&["agent", "wait", slow, "--timeout", "30s", "--json"]);
    assert_eq!(answer.code, 5, "{answer:#?}");
    assert!((30..60).contains(&begun.elapsed().as_secs()));
    assert_eq!(answer.json()["timed_out"], true);
    assert_eq!(answer.json()["agents"][0]["state"], "running");
    let_go(&pulse(&env, slow));
    assert_eq!(
        env.ok(&["agent", "wait", slow])["agents"][0]["condition"],
        "done"
    );
}
