//! How calls of `weald mcp` end: by themselves, by the clock, or because nobody waits for them any more.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::landing::rev;
use crate::landing_gate::wait_until;
use crate::mcp_client::McpClient;
use crate::trees_remove::{commit, grow, repository};

/// The number that a command in a tree wrote down, once it did.
pub fn pid_in(tree: &Path) -> u32 {
    let file = tree.join("started.log");
    wait_until(|| fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
    let text = fs::read_to_string(file).unwrap();
    text.trim().parse().unwrap()
}

/// Processes anywhere whose command line has this word.
pub fn running(word: &str) -> usize {
    let lines = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(word)).count()
}

#[test]
fn p13_a_run_tells_how_it_ended_and_its_output_is_bounded() {
    let env = repository();
    grow(&env, "a", "sealed");
    let mut client = McpClient::open(&env);
    let mut run = |command: &str| {
        let limit = if command.starts_with("sleep") { 2 } else { 60 };
        client.call(
            "worktree_run",
            json!({"name": "a", "command": command, "timeout_seconds": limit}),
        )
    };
    let failed = run("echo out; echo err >&2; exit 7");
    assert_eq!(
        (&failed["exit"], &failed["output"]),
        (&json!(7), &json!("out\nerr\n"))
    );
    let long = run("seq 1 100000");
    let output = long["output"].as_str().unwrap();
    assert_eq!(long["truncated"], true);
    assert!(output.starts_with("1\n2\n") && output.ends_with("100000\n"));
    assert!(output.len() < 140 << 10, "{}", output.len());
    let slow = run("sleep 60");
    assert_eq!(
        (&slow["exit"], &slow["timed_out"]),
        (&json!(124), &json!(true))
    );
    let own = run("exit 124");
    assert_eq!(
        (&own["exit"], &own["timed_out"]),
        (&json!(124), &json!(false))
    );
    client.refused(
        "worktree_run",
        json!({"name": "b", "command": "true"}),
        "tree_not_found",
    );
}

#[test]
fn p13_a_long_call_tells_how_far_it_is() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let mut client = McpClient::open(&env);
    let command = "echo one; until [ -e first ]; do sleep 0.02; done; \
                   echo two; until [ -e second ]; do sleep 0.02; done";
    let params = json!({"name": "worktree_run", "arguments": {"name": "a", "command": command}, "_meta": {"progressToken": "t1"}});
    let id = client.ask("tools/call", params);
    let mut before = 0.0;
    for (message, go_on) in [("one", "first"), ("two", "second")] {
        loop {
            let told = client.line()["params"].clone();
            assert_eq!(told["progressToken"], "t1", "{told}");
            let progress = told["progress"].as_f64().unwrap();
            assert!(progress > before, "{told}");
            before = progress;
            // One that takes long on a busy machine says that, too.
            if told["message"] == message {
                break;
            }
        }
        fs::write(tree.join(go_on), "").unwrap();
    }
    assert_eq!(client.answer(id)["result"]["isError"], false);
}

#[test]
fn p13_a_call_that_is_taken_back_ends_with_everything_in_it() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let mut client = McpClient::open(&env);
    let word = format!("60.{}", std::process::id());
    let command = format!("echo $$ > started.log; sleep {word}");
    let id = client.ask(
        "tools/call",
        json!({"name": "worktree_run", "arguments": {"name": "a", "command": command}}),
    );
    pid_in(&tree);
    assert!(running(&word) > 0);
    let began = Instant::now();
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}}));
    wait_until(|| running(&word) == 0);
    assert!(began.elapsed() < Duration::from_secs(30));
    // It is in nobody's way, and the server goes on.
    client.call("worktree_remove", json!({"name": "a", "force": true}));
}

#[test]
fn p13_a_server_that_is_told_to_end_ends_its_calls_first() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let mut client = McpClient::open(&env);
    let word = format!("61.{}", std::process::id());
    let command = format!("echo $$ > started.log; sleep {word}");
    client.ask(
        "tools/call",
        json!({"name": "worktree_run", "arguments": {"name": "a", "command": command}}),
    );
    pid_in(&tree);
    let pid = Pid::from_raw(client.child.id() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(client.child.wait().unwrap().success());
    wait_until(|| running(&word) == 0);
    env.ok(&["rm", "a", "--discard"]);
}

#[test]
fn p13_a_client_that_leaves_in_a_landing_leaves_nothing_half_done() {
    let env = repository();
    env.ok(&["config", "set", "gate.command", "sleep 600"]);
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "mine", "m\n");
    let before = rev(&env, "main");
    let mut client = McpClient::open(&env);
    client.ask(
        "tools/call",
        json!({"name": "land", "arguments": {"name": "a"}}),
    );
    let log = env.private().join("landings/1-1.log");
    wait_until(|| fs::read_to_string(&log).is_ok_and(|text| text.contains("$ sleep 600")));
    // Both streams close at once, as when a client is killed.
    let mut server = client.vanish();
    assert!(server.wait().unwrap().success());
    let queue = env.ok(&["queue", "status", "--all"]);
    assert_eq!(queue["queue"][0]["outcome"], "dropped");
    assert_eq!(queue["holder"], Value::Null);
    assert_eq!(rev(&env, "main"), before);
    assert!(tree.join("mine").exists());
}
