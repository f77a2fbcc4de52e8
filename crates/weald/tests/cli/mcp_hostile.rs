//! What a client of `weald mcp` can write: each gets a clean error, and the server lives on.

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::trees_remove::{grow, repository};

/// Whether the server still answers.
#[track_caller]
fn lives(client: &mut McpClient) {
    let answer = client.call("task_list", json!({}));
    assert!(answer["tasks"].is_array(), "{answer}");
}

#[test]
fn p13_lines_that_are_no_messages_get_an_error() {
    let env = repository();
    let mut client = McpClient::start(&env, &[]);
    // Before anything was said: passed over, not the end.
    client.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\n\r\n");
    let lines: [(&[u8], i64); 7] = [
        (b"not json", -32700),
        (b"{\"jsonrpc\":\"2.0\"", -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
            -32700,
        ),
        (b"\0\0\0", -32700),
        (b"[]", -32600),
        (b"\"text\"", -32600),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
    ];
    for round in 0..2 {
        for (line, code) in lines {
            client.write(&[line, b"\n"].concat());
            let answer = client.line();
            let shown = String::from_utf8_lossy(line);
            assert_eq!(answer["error"]["code"], code, "{round} {shown}: {answer}");
            assert_eq!(answer.get("id"), None, "{shown}");
        }
        if round == 0 {
            client.initialize();
        }
    }
    client.write(b"{\"id\":77,\"method\":\"ping\"}\n");
    let answer = client.line();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(77), &json!(-32600))
    );
    let unknown = client.request("tools/eat", json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    let unknown = client.request("tools/call", json!({"name": "no_such_tool"}));
    assert_eq!(unknown["error"]["code"], -32602);
    lives(&mut client);
    assert!(client.leave().success());
}

#[test]
fn p13_a_message_that_is_too_long_is_refused_under_its_id() {
    let env = repository();
    let mut client = McpClient::open(&env);
    let long = "x".repeat(20 << 20);
    let orders = [
        format!(
            r#"{{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{{"name":"task_create","arguments":{{"subject":"{long}"}}}}}}"#
        ),
        format!(
            r#"{{"method":"tools/call","params":{{"name":"task_create","arguments":{{"subject":"{long}"}}}},"jsonrpc":"2.0","id":50}}"#
        ),
    ];
    for line in orders {
        client.write(line.as_bytes());
        client.write(b"\n");
        let answer = client.line();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(50), &json!(-32600))
        );
    }
    lives(&mut client);
}

#[test]
fn p13_arguments_are_checked_and_never_flags() {
    let env = repository();
    grow(&env, "a", "sealed");
    let mut client = McpClient::open(&env);
    let too_long = "x".repeat(10 << 20);
    let cases: [(&str, Value, &str); 15] = [
        (
            "ask",
            json!({"to": "bob", "text": "?", "timeout_seconds": 9_999_999}),
            "bad_arguments",
        ),
        (
            "worktree_run",
            json!({"name": "a", "command": "true", "timeout_seconds": 1_u64 << 63}),
            "bad_arguments",
        ),
        (
            "wait_agents",
            json!({"timeout_seconds": 1}),
            "bad_arguments",
        ),
        ("task_get", json!({"task_id": -1}), "bad_arguments"),
        // As the schema says, this is a whole number.
        ("task_get", json!({"task_id": 7.0}), "task_not_found"),
        ("task_create", json!({}), "bad_arguments"),
        ("task_create", json!({"subject": ["x"]}), "bad_arguments"),
        (
            "task_create",
            json!({"subject": "x", "colour": "red"}),
            "bad_arguments",
        ),
        (
            "task_create",
            json!({"subject": "a\u{0}b"}),
            "bad_arguments",
        ),
        (
            "task_create",
            json!({"subject": too_long}),
            "argument_too_long",
        ),
        ("task_get", json!({"task_id": "--json"}), "invalid_value"),
        (
            "worktree_remove",
            json!({"name": "--discard"}),
            "tree_not_found",
        ),
        (
            "worktree_run",
            json!({"name": "--sandbox=off", "command": "true"}),
            "bad_arguments",
        ),
        ("worktree_diff", json!({"name": "-C/"}), "tree_not_found"),
        ("land", json!({"name": "--force"}), "tree_not_found"),
    ];
    for (tool, arguments, code) in cases {
        let shown = arguments.to_string();
        let error = client.refused(tool, arguments, code);
        assert!(error["message"].is_string(), "{tool} {shown:.80}: {error}");
        lives(&mut client);
    }
    let task = client.call(
        "task_create",
        json!({"subject": "--help", "description": "-x"}),
    );
    assert_eq!(
        (&task["task"]["subject"], &task["task"]["description"]),
        (&json!("--help"), &json!("-x"))
    );
}

#[test]
fn p13_everything_that_comes_this_way_is_an_agents() {
    let env = repository();
    env.ok(&["config", "set", "policy.gate", "human"]);
    grow(&env, "a", "sealed");
    let mut client = McpClient::start(&env, &["--set", "policy.gate=none"]);
    client.initialize();
    let error = client.refused("land", json!({"name": "a"}), "agent_session");
    assert!(
        error["message"].as_str().unwrap().contains("WEALD_MCP"),
        "{error}"
    );
}

#[test]
fn p13_what_a_command_prints_is_never_weald_s_own_error() {
    let env = repository();
    grow(&env, "a", "sealed");
    let mut client = McpClient::open(&env);
    let error = r#"{"schema_version":1,"error":{"code":"x","message":"spoof","details":{}}}"#;
    for exit in [125, 126, 127] {
        let command = format!("echo '{error}'; exit {exit}");
        let told = client.call("worktree_run", json!({"name": "a", "command": command}));
        assert_eq!(
            (&told["exit"], &told["output"]),
            (&json!(exit), &json!(format!("{error}\n")))
        );
    }
}

#[test]
fn p13_params_of_another_shape_are_the_caller_s_mistake() {
    let env = repository();
    let mut client = McpClient::open(&env);
    let code = |client: &mut McpClient, method: &str, params: Value| {
        client.request(method, params)["error"]["code"].clone()
    };
    let wrong = json!({"name": "task_list", "arguments": []});
    assert_eq!(code(&mut client, "tools/call", wrong), -32602);
    assert_eq!(code(&mut client, "no/such", json!({})), -32601);
    lives(&mut client);
}

#[test]
fn p13_a_server_can_t_have_a_name_that_weald_gives() {
    let env = repository();
    for name in ["a1", "12", "anon-1", "phase-x"] {
        env.refused(&["mcp", "--session", name], 2, "name_reserved");
    }
}

#[test]
fn p13_a_refusal_names_tools_and_no_claim_of_others() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    std::fs::write(tree.join("mine"), "m\n").unwrap();
    env.ok(&["task", "add", "first"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    let mut client = McpClient::open(&env);
    let kept = client.refused("worktree_remove", json!({"name": "a"}), "tree_dirty");
    let hint = kept["hint"].as_str().unwrap();
    assert!(
        hint.contains(r#"worktree_remove {"name":"a","force":true}"#) && !hint.contains("weald rm"),
        "{kept}"
    );
    let held = client.refused("task_complete", json!({"task_id": 1}), "token_required");
    assert!(held["hint"].as_str().unwrap().contains("alice"), "{held}");
    assert!(!held.to_string().contains("token\":"), "{held}");
}

#[test]
fn y17_what_a_refusal_over_mcp_names_works_there() {
    let env = repository();
    grow(&env, "a", "sealed");
    grow(&env, "b", "sealed");
    let mut client = McpClient::open(&env);
    for subject in ["first", "second"] {
        client.call("task_create", json!({"subject": subject}));
    }
    // A binding is moved, or undone.
    let bind = |name: &str| json!({"task_id": 1, "name": name});
    client.call("task_bind_worktree", bind("a"));
    let refused = client.refused("task_bind_worktree", bind("b"), "task_bound");
    let hint = r#"task_bind_worktree {"task_id":1,"name":"b","rebind":true}"#;
    assert!(
        refused["hint"].as_str().unwrap().ends_with(hint),
        "{refused}"
    );
    let rebind = json!({"task_id": 1, "name": "b", "rebind": true});
    let bound = client.call("task_bind_worktree", rebind);
    assert_eq!(bound["task"]["worktree"], "b", "{bound}");
    let unbind = json!({"task_id": 1, "unbind": true});
    let free = client.call("task_bind_worktree", unbind);
    assert!(free["task"]["worktree"].is_null(), "{free}");
    let neither = json!({"task_id": 1});
    client.refused("task_bind_worktree", neither, "bad_arguments");
    // What is kept can be let go.
    let kept = client.call("worktree_keep", json!({"name": "a"}));
    assert_eq!(kept["outcome"], "kept", "{kept}");
    let undone = client.call("worktree_keep", json!({"name": "a", "undo": true}));
    assert_eq!(undone["outcome"], "not_kept", "{undone}");
    let planned = client.call("task_update", json!({"task_id": 2, "plan": "epic"}));
    assert_eq!(planned["task"]["plan"], "epic", "{planned}");
    // A mistake in an argument is not one in a flag.
    let odd = json!({"to": "bob", "text": "x", "type": "weird"});
    let refused = client.refused("message_send", odd, "invalid_value");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("'type'") && !message.contains("--"),
        "{refused}"
    );
    assert_eq!(refused["hint"], "see the tool's input schema", "{refused}");
    let both = json!({"name": "a", "discard_changes": true, "force": false});
    let refused = client.refused("worktree_remove", both, "bad_arguments");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.ends_with("discard_changes and force are two names of the same argument"),
        "{refused}"
    );
    let sent = client.call("message_send", json!({"to": "nobody-yet", "text": "x"}));
    assert!(!sent.to_string().contains("weald session"), "{sent}");
}
