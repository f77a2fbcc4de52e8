//! What becomes of calls, claims and messages when a client or a server of `weald mcp` is gone.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::rev;
use crate::landing_gate::wait_until;
use crate::mcp_client::McpClient;
use crate::mcp_ends::{pid_in, running};
use crate::trees_remove::{commit, grow, repository};

fn called(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// What is in the command line of every long call of a server.
fn mark_of(client: &McpClient) -> String {
    format!("--ends-with={}", client.child.id())
}

fn status_of(env: &TestEnv, task: &str) -> Value {
    env.ok(&["task", "show", task])["task"]["status"].clone()
}

#[test]
fn p13_whatever_takes_long_ends_with_a_server_that_is_killed() {
    let env = repository();
    env.ok(&["config", "set", "gate.command", "sleep 600"]);
    let run_in = grow(&env, "a", "sealed");
    let landing = grow(&env, "b", "sealed");
    commit(&env, &landing, "mine", "m\n");
    let before = rev(&env, "main");
    let mut client = McpClient::start(&env, &["--session", "alice"]);
    client.initialize();
    let word = format!("62.{}", std::process::id());
    let command = format!("echo $$ > started.log; sleep {word}");
    for (tool, arguments) in [
        ("message_inbox", json!({"wait_seconds": 600})),
        ("worktree_run", json!({"name": "a", "command": command})),
        ("land", json!({"name": "b"})),
    ] {
        client.ask("tools/call", called(tool, arguments));
    }
    pid_in(&run_in);
    let log = env.private().join("landings/1-1.log");
    wait_until(|| fs::read_to_string(&log).is_ok_and(|text| text.contains("$ sleep 600")));
    let mark = mark_of(&client);
    wait_until(|| running(&mark) == 2);
    client.child.kill().unwrap();
    let began = Instant::now();
    client.child.wait().unwrap();
    wait_until(|| running(&mark) == 0 && running(&word) == 0);
    assert!(began.elapsed() < Duration::from_secs(30));

    let queue = env.ok(&["queue", "status", "--all"]);
    assert_eq!(queue["queue"][0]["outcome"], "dropped");
    assert_eq!(rev(&env, "main"), before);
    env.ok(&["msg", "send", "alice", "still there?"]);
    let inbox = env.ok(&["msg", "inbox", "--session", "alice"]);
    assert_eq!(inbox["messages"][0]["text"], "still there?");
}

#[test]
fn p13_at_the_end_of_the_input_short_calls_are_answered_and_long_ones_end() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let mut client = McpClient::open(&env);
    let command = "echo $$ > started.log; sleep 600";
    let run = client.ask(
        "tools/call",
        called("worktree_run", json!({"name": "a", "command": command})),
    );
    pid_in(&tree);
    let made = client.ask(
        "tools/call",
        called("task_create", json!({"subject": "one"})),
    );
    let claimed = client.ask("tools/call", called("task_claim", json!({"task_id": 1})));
    let began = Instant::now();
    client.close();
    let mut answers = [Value::Null, Value::Null, Value::Null];
    for _ in 0..answers.len() {
        let line = client.line();
        let asked = [run, made, claimed];
        let place = asked.iter().position(|id| line["id"] == *id).unwrap();
        answers[place] = line["result"].clone();
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{answers:?}");
    let [run, made, claimed] = answers;
    assert!(run.to_string().contains("cancelled"), "{run}");
    assert_eq!(made["structuredContent"]["task"]["id"], 1);
    // They went side by side: the claim may have been too early.
    assert!(claimed["content"].is_array(), "{claimed}");
    assert!(client.child.wait().unwrap().success());
}

#[test]
fn p13_a_claim_that_is_taken_back_is_whole() {
    let env = repository();
    env.ok(&["task", "add", "first"]);
    let mut client = McpClient::open(&env);
    client.call("task_list", json!({}));
    let id = client.ask("tools/call", called("task_claim", json!({})));
    wait_until(|| status_of(&env, "1") == "in_progress");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // The server waits for it, and then gives back what nobody will work on.
    assert!(client.leave().success());
    assert_eq!(status_of(&env, "1"), "pending");
    let trees = env.ok(&["list"]);
    assert_eq!(trees["trees"][0]["status"], "active", "{trees}");
    let found = env.ok(&["doctor"]).to_string();
    assert!(!found.contains("create_unfinished"), "{found}");
}

#[test]
fn p13_what_a_server_of_its_own_held_is_free_when_it_ends() {
    let env = repository();
    env.ok(&["task", "add", "first"]);
    let mut client = McpClient::open(&env);
    let claimed = client.call("task_claim", json!({}));
    let tree = claimed["tree"]["path"].as_str().unwrap().to_owned();
    fs::write(format!("{tree}/mine"), "m\n").unwrap();
    assert!(client.leave().success());
    assert_eq!(status_of(&env, "1"), "pending");

    let mut named = McpClient::start(&env, &["--session", "alice"]);
    named.initialize();
    let again = named.call("task_claim", json!({"task_id": 1}));
    assert_eq!(again["tree"]["path"], json!(tree));
    assert!(fs::exists(format!("{tree}/mine")).unwrap());
    // A name that somebody gave stays theirs.
    assert!(named.leave().success());
    assert_eq!(status_of(&env, "1"), "in_progress");
}

/// Clients call several tools in their first turn: they are one caller all the same.
#[test]
fn p13_first_calls_that_come_at_once_are_one_session_that_ends() {
    let env = repository();
    env.ok(&["task", "add", "first"]);
    let mut client = McpClient::open(&env);
    let tools = ["task_claim", "task_list", "worktree_list", "message_inbox"];
    let mut asked = tools
        .map(|tool| client.ask("tools/call", called(tool, json!({}))))
        .to_vec();
    while !asked.is_empty() {
        let line = client.line();
        assert_eq!(line["result"]["isError"], false, "{line}");
        asked.retain(|id| line["id"] != *id);
    }
    assert!(client.leave().success());
    assert_eq!(status_of(&env, "1"), "pending");
}

#[test]
fn p13_only_so_many_calls_are_at_work_at_once() {
    let env = repository();
    grow(&env, "a", "sealed");
    let mut client = McpClient::start(&env, &["--session", "alice"]);
    client.initialize();
    for _ in 0..20 {
        let command = json!({"name": "a", "command": "sleep 600"});
        client.ask("tools/call", called("worktree_run", command));
    }
    let mark = mark_of(&client);
    wait_until(|| running(&mark) == 16);
    // Whoever waits is in nobody's way.
    assert_eq!(client.call("task_list", json!({}))["total"], 0);
    // A process that another is just about to start looks like that other.
    wait_until(|| running(&mark) == 16);
    assert!(client.leave().success());
    assert_eq!(running(&mark), 0);
}

#[test]
fn p13_what_a_killed_server_held_is_free_for_whoever_names_it() {
    let env = repository();
    env.ok(&["task", "add", "first"]);
    let mut client = McpClient::open(&env);
    let claimed = client.call("task_claim", json!({"task_id": 1}));
    let tree = PathBuf::from(claimed["tree"]["path"].as_str().unwrap());
    let claim = || env.weald(&["--json", "task", "claim", "1", "--session", "bob"]);
    assert_eq!(claim().error_code(), "task_held", "it lives");
    let script = "echo $$ > started.log; exec sleep 600";
    let mut run = env.weald_command(&["run", "first", "--", "sh", "-c", script]);
    let mut run = run.spawn().unwrap();
    pid_in(&tree);
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    assert_eq!(claim().error_code(), "task_held", "something runs there");
    run.kill().unwrap();
    run.wait().unwrap();
    let taken = claim();
    assert_eq!(taken.code, 0, "{taken:#?}");
    assert_eq!(taken.json()["lease"]["token"], 2);
    assert_eq!(taken.json()["task"]["worktree"], "first");
    let late = env.weald(&["--json", "task", "done", "1", "--token", "1"]);
    assert_eq!(late.error_code(), "stale_token");
}

#[test]
fn p13_a_claim_of_whom_nothing_is_known_waits_for_its_lease() {
    let env = repository();
    env.ok(&["task", "add", "first"]);
    // No process says whether it lives.
    env.ok(&["session", "register", "--session", "alice"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    let refused = env.weald(&["--json", "task", "claim", "1", "--session", "bob"]);
    assert_eq!(refused.error_code(), "task_held");
}
