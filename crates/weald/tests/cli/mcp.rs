//! `weald mcp`: the protocol, the tools, and what a client can't do to it.

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing_gate::wait_until;
use crate::mcp_client::McpClient;
use crate::trees_remove::{commit, repository};

/// Every tool that agents are promised, in order.
pub const TOOLS: [&str; 42] = [
    "task_create",
    "task_list",
    "task_get",
    "task_update",
    "task_claim",
    "task_complete",
    "task_fail",
    "task_bind_worktree",
    "worktree_create",
    "worktree_list",
    "worktree_status",
    "worktree_run",
    "worktree_diff",
    "worktree_sync",
    "worktree_keep",
    "worktree_remove",
    "worktree_restore",
    "trash_list",
    "clean_preview",
    "worktree_events",
    "land",
    "land_status",
    "conflicts",
    "agent_spawn",
    "check_agents",
    "agent_pulse",
    "agent_diff",
    "agent_steer",
    "agent_pause",
    "agent_resume",
    "agent_stop",
    "agent_restart",
    "rescue",
    "race",
    "race_show",
    "race_pick",
    "race_drop",
    "wait_agents",
    "message_send",
    "message_inbox",
    "ask",
    "reply",
];

#[test]
fn p13_both_eras_are_served_by_raw_lines() {
    let env = repository();
    let mut old = McpClient::start(&env, &[]);
    let hello = old.initialize();
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    assert_eq!(hello["serverInfo"]["name"], "weald");
    assert!(hello["instructions"].is_string(), "{hello}");
    let tools = old.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(old.request("ping", json!({}))["result"], json!({}));
    assert!(old.leave().success());

    let mut new = McpClient::stateless(&env);
    let found = new.request("server/discover", json!({}))["result"].clone();
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    let listed = new.request("tools/list", json!({}))["result"].clone();
    assert_eq!(listed["tools"], tools);
    assert!(listed["ttlMs"].as_u64().unwrap() > 60_000, "{listed}");
    assert_eq!(listed["resultType"], "complete");
    new.call("task_create", json!({"subject": "without a handshake"}));
    assert!(new.leave().success());
}

#[test]
fn p13_every_tool_says_what_it_takes_and_does() {
    let env = repository();
    let mut client = McpClient::open(&env);
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, TOOLS);
    for name in TOOLS {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        let tool = tool.unwrap_or_else(|| panic!("{name} is not listed"));
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            assert!(tool["annotations"][hint].is_boolean(), "{name}: {hint}");
        }
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
    }
}

/// Two tasks on the board.
fn board(env: &TestEnv) {
    for subject in ["first", "second"] {
        env.ok(&["task", "add", subject]);
    }
}

#[test]
fn p13_a_claim_leads_to_its_tree_and_completion_back() {
    let env = repository();
    board(&env);
    let mut client = McpClient::open(&env);
    let error = client.refused("worktree_run", json!({"command": "pwd"}), "no_tree");
    assert!(error["hint"].as_str().unwrap().contains("task_claim"));

    let claimed = client.call("task_claim", json!({}));
    let path = env.root().join("app.weald/first");
    assert_eq!(claimed["tree"]["path"], json!(path));
    assert_eq!(claimed["tree"]["branch"], "wt/first");
    assert_eq!(claimed["task"]["worktree"], "first");
    let here = client.call("worktree_run", json!({"command": "pwd"}));
    assert_eq!(here["output"], json!(format!("{}\n", path.display())));
    assert_eq!(client.call("task_get", json!({}))["task"]["id"], 1);

    let again = client.call("task_claim", json!({"task_id": 1}));
    assert_eq!(again["lease"]["token"], claimed["lease"]["token"]);
    assert_eq!(again["outcome"], "reused");

    // By what, but not with what result: the command line refuses that, too.
    let half = json!({"report": "nothing to do", "verified_by": "eyes"});
    let refused = client.refused("task_complete", half, "bad_arguments");
    let hint = refused["hint"].as_str().unwrap();
    assert!(hint.contains("passed or failed"), "{refused}");
    assert_eq!(
        client.call("task_get", json!({}))["task"]["status"],
        "in_progress"
    );
    let done = client.call("task_complete", json!({"report": "nothing to do"}));
    assert_eq!(done["task"]["status"], "completed");
    assert_eq!(done["task"]["report"], "nothing to do");
    client.refused("worktree_status", json!({}), "no_tree");
    client.refused("land", json!({}), "no_tree");
    client.refused("task_complete", json!({}), "no_task");
}

/// The server is a copy of the binary that is gone once it runs: a call that needs a process fails.
#[test]
fn a_thousand_calls_that_need_the_store_alone_start_no_process() {
    let env = repository();
    board(&env);
    let program = env.root().join("weald-copy");
    std::fs::copy(env!("CARGO_BIN_EXE_weald"), &program).unwrap();
    let mut client = McpClient::of(env.command(&program).arg("mcp"));
    client.initialize();
    // The session is registered by a process; after that there is nothing left to start.
    client.call("task_list", json!({}));
    std::fs::remove_file(&program).unwrap();
    let refused = client.refused("worktree_list", json!({}), "not_started");
    assert!(refused["hint"].is_string(), "{refused}");
    for round in 0..125 {
        let made = client.call("task_create", json!({"subject": format!("task {round}")}));
        let id = made["task"]["id"].clone();
        let urgent = json!({"task_id": id, "priority": "P0"});
        assert_eq!(client.call("task_update", urgent)["task"]["priority"], "P0");
        let shown = client.call("task_get", json!({"task_id": id}));
        assert_eq!(shown["task"]["subject"], json!(format!("task {round}")));
        let listed = client.call("task_list", json!({"limit": 1}));
        assert_eq!(listed["total"], json!(round + 3));
        client.call("message_send", json!({"to": "bob", "text": "hello"}));
        client.call("message_inbox", json!({}));
        client.call("worktree_events", json!({"limit": 1}));
        client.call("check_agents", json!({}));
    }
    client.refused("task_get", json!({"task_id": 9999}), "task_not_found");
    assert_eq!(env.ok(&["task", "list"])["total"], 127);
}

#[test]
fn p13_a_session_ends_with_its_server() {
    let env = repository();
    board(&env);
    let mut client = McpClient::open(&env);
    let claimed = client.call("task_claim", json!({"task_id": "2"}));
    let session = claimed["lease"]["session"].as_str().unwrap().to_owned();
    let shown = |state: &str| {
        let shown = env.ok(&["session", "show", &session]);
        assert_eq!(shown["session"]["liveness"], state, "{shown}");
    };
    shown("alive");
    assert!(client.leave().success());
    shown("dead");

    let mut named = McpClient::start(&env, &["--session", "alice"]);
    named.initialize();
    let claimed = named.call("task_claim", json!({"task_id": 1}));
    assert_eq!(claimed["lease"]["session"], "alice");
}

#[test]
fn p13_a_claim_is_held_as_long_as_its_server_lives() {
    let env = repository();
    board(&env);
    env.ok(&["config", "set", "lease.ttl", "1s"]);
    let mut client = McpClient::start(&env, &["--beat", "200ms"]);
    client.initialize();
    let claimed = client.call("task_claim", json!({"task_id": 1}));
    let until = |answer: &Value| answer["expires_at"].as_str().unwrap().to_owned();
    let first = until(&claimed["lease"]);
    wait_until(|| until(&env.ok(&["task", "show", "1"])["task"]["lease"]) > first);
    assert!(client.leave().success());
}

#[test]
fn p13_outside_of_a_repository_the_server_answers_and_calls_say_what_is_wrong() {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    let mut client = McpClient::open(&env);
    let listed = client.request("tools/list", json!({}))["result"].clone();
    assert!(listed["tools"].as_array().unwrap().len() >= TOOLS.len());
    let error = client.refused("task_list", json!({}), "not_a_repository");
    assert!(error["message"].is_string(), "{error}");

    let other = repository();
    let path = other.repo().display().to_string();
    let mut there = McpClient::start(&env, &["-C", &path]);
    there.initialize();
    assert_eq!(there.call("task_list", json!({}))["tasks"], json!([]));
}

#[test]
fn p13_a_tree_goes_its_way_through_tools() {
    let env = repository();
    let mut client = McpClient::open(&env);
    let made = client.call("worktree_create", json!({"name": "a", "base_ref": "main"}));
    assert_eq!(made["outcome"], "created");
    commit(&env, &env.root().join("app.weald/a"), "new.py", "one\n");
    let names = |answer: &Value| -> Vec<Value> {
        let trees = answer["trees"].as_array().unwrap();
        trees.iter().map(|tree| tree["name"].clone()).collect()
    };
    assert_eq!(names(&client.call("worktree_list", json!({}))), ["a"]);
    let looked = client.call("worktree_status", json!({"name": "a"}));
    assert_eq!(looked["tree"]["ahead"], 1);
    let diff = client.call("worktree_diff", json!({"name": "a", "patch": true}));
    assert_eq!(diff["files"][0]["path"], "new.py");
    assert!(diff["patch"].as_str().unwrap().contains("+one"), "{diff}");
    client.call("worktree_keep", json!({"name": "a"}));

    client.refused("worktree_remove", json!({"name": "a"}), "tree_unlanded");
    let removed = client.call("worktree_remove", json!({"name": "a", "force": true}));
    assert_eq!(removed["outcome"], "trashed");
    client.call("worktree_restore", json!({"name": "a"}));
    let events = client.call("worktree_events", json!({"name": "a", "limit": 200}));
    let kinds = events["events"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|event| event["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"dev.weald.tree.restored"), "{kinds:?}");

    assert_eq!(client.call("conflicts", json!({}))["pairs"], json!([]));
    let landed = client.call("land", json!({"name": "a", "message": "From a tool"}));
    assert_eq!(landed["landings"][0]["outcome"], "landed");
    assert_eq!(env.git(&["log", "-1", "--format=%s"]), "From a tool\n");
    let queue = client.call("land_status", json!({"name": "a"}));
    assert_eq!(queue["queue"][0]["outcome"], "landed");
    assert!(env.repo().join("new.py").exists());
}
