//! What a teammate's server leaves alone: what somebody else holds.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::mcp_client::McpClient;
use crate::trees_remove::repository;

fn server(env: &TestEnv, role: &str, session: &str) -> McpClient {
    let mut client = McpClient::start(env, &["--role", role, "--session", session]);
    client.initialize();
    client
}

/// A command as the server of teammate bob starts it.
fn as_bob(env: &TestEnv, args: &[&str]) -> Answer {
    let mut command = env.weald_command(&[&["--json"], args].concat());
    command
        .env("WEALD_MCP", "teammate")
        .env("WEALD_SESSION", "bob");
    Answer::of(command.output().unwrap())
}

/// Alice's claim on task 1, with something in its tree that is not committed: the name and the path of that.
fn claimed(alice: &mut McpClient) -> (String, String) {
    alice.call("task_create", json!({"subject": "hers"}));
    let tree = alice.call("task_claim", json!({"task_id": 1}))["tree"].clone();
    let text = |key: &str| tree[key].as_str().unwrap().to_owned();
    let (name, path) = (text("name"), text("path"));
    fs::write(format!("{path}/half"), "done\n").unwrap();
    (name, path)
}

#[test]
fn p13_a_teammate_leaves_alone_what_another_session_holds() {
    let env = repository();
    let mut alice = server(&env, "teammate", "alice");
    let mut bob = server(&env, "teammate", "bob");
    let (tree, path) = claimed(&mut alice);
    alice.call("task_create", json!({"subject": "nobody's"}));
    env.ok(&["new", "lane"]);
    env.ok(&["snapshot", "create", &tree]);
    let before = alice.call("task_get", json!({}))["task"].clone();
    for arguments in [
        json!({"subject": "hijacked"}),
        json!({"add_labels": ["x"]}),
        json!({"add_blocked_by": [2]}),
        json!({"action": "cancel"}),
        json!({"action": "reopen"}),
        json!({"action": "start"}),
        json!({"action": "release"}),
        json!({"action": "fail", "token": 1}),
        json!({"action": "renew", "token": 1}),
    ] {
        let mut arguments = arguments;
        arguments["task_id"] = json!(1);
        let error = bob.refused("task_update", arguments, "not_yours");
        assert_eq!(error["details"]["holder"], "alice", "{error:#}");
    }
    let done = json!({"task_id": 1, "token": 1, "report": "mine"});
    bob.refused("task_complete", done, "not_yours");
    assert_eq!(alice.call("task_get", json!({}))["task"], before);
    let reset = json!({"name": tree, "command": "rm half"});
    bob.refused("worktree_run", reset, "not_yours");
    bob.refused("worktree_keep", json!({"name": tree}), "not_yours");
    for name in [tree.as_str(), "1"] {
        bob.refused("land", json!({"name": name}), "not_yours");
    }
    // The commands themselves refuse it, whatever a tool passes on.
    for args in [
        vec!["run", &tree, "--", "rm", "half"],
        vec!["land", &tree],
        vec!["rm", &tree, "--discard", "--force"],
        vec!["sync", &tree],
        vec!["lock", &tree],
        vec!["snapshot", "restore", &tree],
        vec!["task", "bind", "1", "lane"],
        vec!["task", "bind", "2", &tree, "--rebind"],
        vec!["task", "unbind", "1"],
        vec!["task", "bind", "2", "lane"],
        vec!["task", "closeout", "1", "remove", "--reason", "x"],
        vec!["task", "closeout", "1", "keep", "--reason", "x"],
        vec!["setup", &tree],
        vec!["task", "cancel", "1"],
        vec!["task", "done", "1", "--token", "1"],
    ] {
        let answer = as_bob(&env, &args);
        assert_eq!(answer.error_code(), "not_yours", "{args:?}: {answer:#?}");
    }
    let mut leaving = env.weald_command(&["--json", "exit", "--remove", "--discard"]);
    leaving.env("WEALD_MCP", "teammate").current_dir(&path);
    let answer = Answer::of(leaving.env("WEALD_SESSION", "bob").output().unwrap());
    assert_eq!(answer.error_code(), "not_yours", "{answer:#?}");
    assert!(fs::exists(format!("{path}/half")).unwrap());
    // Looking is everybody's.
    bob.call("worktree_status", json!({"name": tree}));
    let diff = bob.call("worktree_diff", json!({"name": tree}));
    assert_eq!(diff["files"][0]["path"], "half", "{diff:#}");
    // What is the own, and what a lead may.
    let mine = alice.call("worktree_run", json!({"command": "cat half"}));
    assert_eq!(mine["output"], "done\n");
    alice.call("task_update", json!({"subject": "still hers"}));
    let mut lead = server(&env, "lead", "lead");
    lead.call("worktree_run", json!({"name": tree, "command": "true"}));
    let cancelled = lead.call("task_update", json!({"task_id": 1, "action": "cancel"}));
    assert_eq!(cancelled["task"]["status"], "cancelled");
}

#[test]
fn p13_a_teammate_lands_its_own_work_also_after_its_report() {
    let env = repository();
    let mut bob = server(&env, "teammate", "bob");
    bob.call("task_create", json!({"subject": "his"}));
    let mut lead = server(&env, "lead", "lead");
    let lane = json!({"name": "lane", "task_id": 1});
    lead.call("worktree_create", lane);
    // Nobody's yet, so not bob's.
    let look = json!({"name": "lane", "command": "true"});
    bob.refused("worktree_run", look, "not_yours");
    bob.call("task_claim", json!({"task_id": 1}));
    let work =
        "echo x > his; git add his; git -c user.name=b -c user.email=b@example.com commit -qm his";
    let ran = bob.call("worktree_run", json!({"command": work}));
    assert_eq!(ran["exit"], 0, "{ran:#}");
    bob.call("task_complete", json!({"report": "done"}));
    let landed = bob.call("land", json!({"name": "lane"}));
    assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed:#}");
}

#[test]
fn p13_no_refusal_tells_an_agent_somebody_s_token() {
    let env = repository();
    env.ok(&["task", "add", "hers"]);
    for token in 1..=7 {
        let claim = env.ok(&["task", "claim", "1", "--session", "alice"]);
        assert_eq!(claim["lease"]["token"], token);
        if token < 7 {
            let token = token.to_string();
            env.ok(&["task", "release", "1", "--token", &token]);
        }
    }
    let mut lead = server(&env, "lead", "lead");
    let done = |token: Option<u64>| json!({"task_id": 1, "report": "x", "token": token});
    for (token, code) in [(None, "token_required"), (Some(2), "stale_token")] {
        let error = lead.refused("task_complete", done(token), code);
        let told: Value = json!([error["message"], error["hint"], error["details"]]);
        assert!(!told.to_string().contains('7'), "{error:#}");
    }
}
