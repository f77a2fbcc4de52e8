//! How a task ends by MCP, as the server's instructions tell it: commit, then land with a report.

use std::fs;

use serde_json::json;
use weald_testkit::TestEnv;

use crate::mcp_client::McpClient;
use crate::trees_remove::repository;

/// Commits by way of the tool.
fn commit(client: &mut McpClient, script: &str) {
    let command = format!("{script} && git add -A && git commit -q -m work");
    let ran = client.call("worktree_run", json!({"command": command}));
    assert_eq!(ran["exit"], 0, "{ran}");
}

fn claim(env: &TestEnv) -> McpClient {
    env.ok(&["task", "add", "first"]);
    env.ok(&["task", "add", "second", "--after", "1"]);
    let mut client = McpClient::open(env);
    client.call("task_claim", json!({}));
    client
}

#[test]
fn p13_a_landing_completes_the_task_with_its_report() {
    let env = repository();
    let mut client = claim(&env);
    commit(&mut client, "echo one > one.py");
    let landed = client.call("land", json!({"report": "wrote one.py"}));
    assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed}");
    let task = client.call("task_get", json!({"task_id": 1}))["task"].clone();
    assert_eq!(
        (&task["status"], &task["report"]),
        (&json!("completed"), &json!("wrote one.py"))
    );
    assert_eq!(
        fs::read_to_string(env.repo().join("one.py")).unwrap(),
        "one\n"
    );
    // What waited for it begins with its work.
    let next = client.call("task_claim", json!({}));
    assert_eq!(next["task"]["id"], 2);
    let seen = client.call("worktree_run", json!({"command": "cat one.py"}));
    assert_eq!(seen["output"], "one\n");
}

#[test]
fn p13_after_a_conflict_the_task_is_claimed_again_and_lands() {
    let env = repository();
    let mut client = claim(&env);
    commit(&mut client, "echo theirs > config.py");
    fs::write(env.repo().join("config.py"), "ours\n").unwrap();
    env.git(&["commit", "-q", "-am", "ours"]);
    let refused = client.call("land", json!({"report": "first try"}));
    assert_eq!(refused["landings"][0]["outcome"], "conflict", "{refused}");
    let again = client.call("task_claim", json!({"task_id": 1}));
    assert_eq!(again["tree"]["name"], "first");
    commit(&mut client, "(git merge -q main || echo both > config.py)");
    let landed = client.call("land", json!({"report": "second try"}));
    assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed}");
    assert_eq!(
        fs::read_to_string(env.repo().join("config.py")).unwrap(),
        "both\n"
    );
    let task = client.call("task_get", json!({"task_id": 1}))["task"].clone();
    assert_eq!(task["report"], "second try");
}
