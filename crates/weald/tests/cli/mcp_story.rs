//! Two teammates in their sandboxes, a lead outside, and nothing but MCP between them.

use serde_json::{Value, json};

use crate::landing::show;
use crate::mcp_client::McpClient;
use crate::trees_remove::repository;

/// A client of `weald mcp` in plain shell: `call TOOL ARGUMENTS` puts the answer into $answer.
const CLIENT: &str = r#"
set -e
mkfifo "$TMPDIR/in" "$TMPDIR/out"
weald mcp <"$TMPDIR/in" >"$TMPDIR/out" &
exec 3>"$TMPDIR/in" 4<"$TMPDIR/out"
id=0
ask() {
    id=$((id + 1))
    printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' "$id" "$1" "$2" >&3
    IFS= read -r answer <&4
}
call() {
    ask tools/call "{\"name\":\"$1\",\"arguments\":$2}"
    case $answer in *'"isError":true'*) echo "$answer"; exit 9;; esac
}
ask initialize '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"mate","version":"1"}}'
printf '{"jsonrpc":"2.0","method":"notifications/initialized"}\n' >&3
"#;

/// A teammate: it reads its task, asks the lead, does as it is told, and reports.
const TEAMMATE: &str = r#"
call task_get '{}'
case $answer in *"the colour of $WEALD_SESSION"*) ;; *) echo "$answer"; exit 8;; esac
call ask '{"to":"lead","text":"which colour?","timeout_seconds":60}'
colour=$(printf '%s' "$answer" | sed -n 's/.*"structuredContent".*"text":"take \([a-z]*\)".*/\1/p')
echo "$colour" > "colour-$WEALD_SESSION"
git add -A
git commit -qm "a colour"
call task_complete "{\"report\":\"took $colour\",\"verified\":\"passed\",\"verified_by\":\"eyes\"}"
"#;

/// It sends a plan to whoever started it, and goes on when that is approved.
const PLANNER: &str = r#"
call submit_plan '{"plan":"a file, then another"}'
call check_inbox '{"wait_seconds":60}'
case $answer in *'"state":"approved"'*) ;; *) echo "$answer"; exit 7;; esac
"#;

/// A client with something to do, that leaves in the end.
fn client(what: &str) -> String {
    format!("{CLIENT}{what}exec 3>&-\nwait\n")
}

#[test]
fn s6_classroom_two_teammates_and_a_lead_by_mcp_alone() {
    let env = repository();
    let mut lead = McpClient::start(&env, &["--session", "lead"]);
    lead.initialize();
    let mates = ["alice", "bob"];
    let mut trees = Vec::new();
    for mate in mates {
        let task = lead.call(
            "task_create",
            json!({"subject": format!("the colour of {mate}")}),
        );
        let task = &task["task"]["id"];
        let spawned = lead.call(
            "agent_spawn",
            json!({"task_id": task, "name": mate, "command": client(TEAMMATE), "land": false}),
        );
        assert_eq!(spawned["agents"][0]["session"], mate, "{spawned:#}");
        trees.push(spawned["agents"][0]["tree"].clone());
    }
    // Each gets another answer, and nobody's else.
    let mut answered = Vec::new();
    while answered.len() < mates.len() {
        let inbox = lead.call("message_inbox", json!({"wait_seconds": 60}));
        for message in inbox["messages"].as_array().unwrap() {
            assert_eq!(message["text"], "which colour?", "{message:#}");
            let from = message["from"].as_str().unwrap();
            let colour = if from == "alice" { "red" } else { "blue" };
            let reply = json!({"message_id": message["id"], "text": format!("take {colour}")});
            assert_eq!(lead.call("reply", reply)["outcome"], "sent");
            answered.push(from.to_owned());
        }
        assert!(
            !inbox["messages"].as_array().unwrap().is_empty(),
            "nobody asked"
        );
    }
    let waited = lead.call(
        "wait_agents",
        json!({"agents": mates, "timeout_seconds": 60}),
    );
    assert_eq!(waited["timed_out"], false, "{waited:#}");
    for agent in waited["agents"].as_array().unwrap() {
        assert_eq!(agent["condition"], "done", "{agent:#}");
        assert_eq!(agent["report"]["verification"], "passed", "{agent:#}");
    }
    let diff = lead.call("agent_diff", json!({"agent": "bob", "patch": true}));
    assert_eq!(diff["files"][0]["path"], "colour-bob", "{diff:#}");
    assert!(
        diff["patch"].as_str().unwrap().contains("+blue"),
        "{diff:#}"
    );
    for tree in trees {
        let landed = lead.call("land", json!({"name": tree}));
        assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed:#}");
    }
    assert_eq!(show(&env, "colour-alice"), "red\n");
    assert_eq!(show(&env, "colour-bob"), "blue\n");
    let board = lead.call("task_list", json!({}));
    let open = |task: &&Value| task["status"] != "completed";
    assert_eq!(board["tasks"].as_array().unwrap().iter().find(open), None);
    assert!(lead.leave().success());
}

#[test]
fn x12_a_plan_from_inside_finds_the_lead_under_the_classroom_s_names() {
    let env = repository();
    env.ok(&["init", "--profile", "classroom"]);
    env.ok(&["config", "set", "work.on_empty", "complete"]);
    let mut lead = McpClient::start(&env, &["--session", "teacher"]);
    lead.initialize();
    lead.call(
        "create_task",
        json!({"subject": "plan first", "needs_plan": true}),
    );
    let spawn = json!({"name": "alice", "task_id": 1, "command": client(PLANNER)});
    lead.call("spawn_teammate", spawn);
    let inbox = lead.call("check_inbox", json!({"wait_seconds": 60}));
    let plan = &inbox["messages"][0];
    assert_eq!(
        (&plan["from"], &plan["type"]),
        (&json!("alice"), &json!("plan")),
        "{inbox:#}"
    );
    assert_eq!(plan["task"], 1, "its own task: {plan:#}");
    lead.call(
        "review_plan",
        json!({"request_id": plan["id"], "approve": true}),
    );
    let waited = lead.call("wait_agents", json!({"timeout_seconds": 60}));
    let pulse = lead.call("agent_pulse", json!({"agent": "alice"}));
    assert_eq!(
        pulse["agents"][0]["condition"], "done",
        "{waited:#} {pulse:#}"
    );
}
