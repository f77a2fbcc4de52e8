//! Agents that do nothing: their owner is told, twice, and then they count as stalled.

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::agent_views::{pulse, spawn, until};
use crate::trees_remove::repository;

/// Silence counts in seconds.
const QUICK: [&str; 6] = [
    "--set",
    "agent.silent_after=1s",
    "--set",
    "agent.silent_again=2s",
    "--set",
    "agent.stalled_after=4s",
];

fn kinds(env: &TestEnv) -> Vec<String> {
    let events = env.weald(&["events", "--json", "--limit", "200"]);
    let lines = events.stdout.lines();
    lines
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|event| Some(event["type"].as_str()?.to_owned()))
        .collect()
}

fn count(env: &TestEnv, kind: &str) -> usize {
    kinds(env)
        .iter()
        .filter(|found| found.ends_with(kind))
        .count()
}

#[test]
fn s14_silence_is_told_twice_then_the_agent_is_stalled_and_goes_on() {
    let env = repository();
    env.ok(&["session", "register", "--session", "boss"]);
    let script = "echo x > made; echo at work; until test -e go; do sleep 0.05; done; echo on it; \
                  until test -e end; do sleep 0.05; done";
    let mut command = env.weald_command(&["--json"]);
    command.env("WEALD_SESSION", "boss").args(QUICK);
    command.args(["agent", "spawn", "fall asleep", "--", "sh", "-c", script]);
    let spawned = weald_testkit::Answer::of(command.output().unwrap()).json();
    let id = spawned["agents"][0]["id"].as_str().unwrap().to_owned();
    until("it is stalled", || pulse(&env, &id)["state"] == "stalled");
    let view = pulse(&env, &id);
    assert_eq!(view["told"], 2);
    assert!(
        view["stalled"].as_str().unwrap().contains("made"),
        "{view:#}"
    );
    let texts = || -> Vec<String> {
        let inbox = env.ok(&["msg", "inbox", "--session", "boss"]);
        let texts = inbox["messages"].as_array().unwrap().iter();
        let texts = texts.filter_map(|message| message["text"].as_str());
        texts.map(str::to_owned).collect()
    };
    // It is told right after it is recorded.
    until("three messages", || texts().len() >= 3);
    let texts = texts();
    assert_eq!(texts.len(), 3, "{texts:#?}");
    assert!(
        texts[2].contains("stalled") && texts[2].contains("made |"),
        "{texts:#?}"
    );
    assert_eq!(
        (count(&env, "agent.silent"), count(&env, "agent.stalled")),
        (2, 1)
    );
    let alerts = env.ok(&["agent", "list"])["alerts"].clone();
    assert_eq!(alerts[0]["kind"], "stalled");
    // It was not ended: a word from it, and it is at work again.
    let path = view["path"].as_str().unwrap();
    std::fs::write(format!("{path}/go"), "").unwrap();
    until("it is awake", || {
        let view = pulse(&env, &id);
        view["state"] == "running" && view["told"] == 0
    });
    std::fs::write(format!("{path}/end"), "").unwrap();
    assert_eq!(
        env.ok(&["agent", "wait", &id])["agents"][0]["condition"],
        "done"
    );
}

#[test]
fn s14_who_writes_files_or_waits_for_an_answer_is_not_silent() {
    let env = repository();
    let script = "n=0; until test -e go; do n=$((n+1)); echo $n > count; sleep 0.1; done";
    let writer = spawn(&env, "write quietly", &QUICK, script);
    let script = "until test -e go; do sleep 0.05; done";
    let flags = [&QUICK[..], &["--name", "asker"]].concat();
    let asker = spawn(&env, "ask and wait", &flags, script);
    let ask = ["msg", "send", "boss", "which?", "--type", "question"];
    env.ok(&[&ask[..], &["--session", "asker"]].concat());
    let sleeper = spawn(&env, "fall asleep", &QUICK, script);
    let [writer, asker, sleeper] =
        [&writer, &asker, &sleeper].map(|agent| agent["id"].as_str().unwrap());
    // Both would have stalled before one who came later, had they been silent.
    until("the sleeper is stalled", || {
        pulse(&env, sleeper)["state"] == "stalled"
    });
    for (id, state) in [(writer, "running"), (asker, "waiting")] {
        let view = pulse(&env, id);
        assert_eq!(
            (&view["state"], &view["told"]),
            (&json!(state), &json!(0)),
            "{id}"
        );
    }
    for id in [writer, asker, sleeper] {
        env.ok(&["agent", "stop", id, "--wait"]);
    }
}

#[test]
fn s14_a_stalled_agent_is_stopped_only_if_that_is_configured() {
    let env = repository();
    let flags = [&QUICK[..], &["--set", "agent.on_stall=stop"]].concat();
    let agent = spawn(&env, "sleep for ever", &flags, "echo x > made; sleep 600");
    let id = agent["id"].as_str().unwrap();
    let ended = env.ok(&["agent", "wait", id, "--timeout", "60s"])["agents"][0].clone();
    assert_eq!(ended["end"]["outcome"], "stopped", "{ended:#}");
    assert!(ended["stalled"].as_str().unwrap().contains("made"));
    let task = env.ok(&["task", "show", &agent["task"].to_string()])["task"].clone();
    assert_eq!(task["status"], "failed");
    assert!(
        task["report"].as_str().unwrap().contains("made |"),
        "{task:#}"
    );
    let tree = env.ok(&["show", agent["tree"].as_str().unwrap()])["tree"].clone();
    assert_eq!(
        (&tree["status"], &tree["exists"]),
        (&json!("active"), &json!(true))
    );
}
