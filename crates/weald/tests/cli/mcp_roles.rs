//! Who gets which tools of `weald mcp`, and what resources and prompts say.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::broker::{agent_field, begin_alice, field, weald};
use crate::in_agent::ended;
use crate::mcp_client::McpClient;
use crate::trees_remove::repository;

const GUIDE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md"));

/// The tables of tools in the guide: for each role, the names.
fn documented(heading: &str) -> BTreeMap<&'static str, Vec<&'static str>> {
    let (_, section) = GUIDE.split_once(heading).expect("a heading of the guide");
    let section = section.split("\n## ").next().unwrap();
    let mut roles: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        for (role, cell) in ["lead", "teammate", "confined"].iter().zip(&cells[2..]) {
            let names = roles.entry(*role).or_default();
            if *cell == "yes" {
                names.push(name);
            }
        }
    }
    roles
}

/// The names that a server lists, in order of the alphabet.
fn listed(client: &mut McpClient) -> Vec<String> {
    let answer = client.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    let mut names: Vec<_> = tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a &'static str>) -> Vec<String> {
    let mut names: Vec<_> = names.into_iter().map(|name| (*name).to_owned()).collect();
    names.sort();
    names
}

/// A server of an agent inside tree `fix`.
fn inside(env: &TestEnv, level: &str) -> McpClient {
    let agent = env.agent_that_is("claude", "/usr/bin/env");
    let mut command = env.weald_command(&["run", "fix", "--sandbox", level, "--"]);
    command
        .arg(agent)
        .arg(weald(env))
        .arg("mcp")
        .env("WEALD_SESSION", "alice");
    let mut client = McpClient::of(&mut command);
    client.initialize();
    client
}

#[test]
fn p13_each_role_has_the_tools_of_the_guide() {
    let env = repository();
    let (own, there) = (
        documented("\n## Tools"),
        documented("\n## Names of the classroom"),
    );
    assert_eq!(own["lead"].len(), 42, "the guide has so many");
    for classroom in [false, true] {
        if classroom {
            env.ok(&["init", "--profile", "classroom"]);
        }
        for role in ["lead", "teammate"] {
            let mut client = McpClient::start(&env, &["--role", role]);
            client.initialize();
            let also = there[role].iter().filter(|_| classroom);
            let expected = sorted(own[role].iter().chain(also));
            assert_eq!(listed(&mut client), expected, "{role} {classroom}");
            let prompts = client.request("prompts/list", json!({}))["result"]["prompts"].clone();
            assert_eq!(
                prompts.as_array().unwrap().len(),
                if role == "lead" { 2 } else { 1 }
            );
        }
    }
}

#[test]
fn x12_inside_a_tree_the_server_has_the_confined_tools_and_the_own_authority() {
    let own = documented("\n## Tools");
    for level in ["full", "landlock"] {
        let env = field();
        let mut client = inside(&env, level);
        assert_eq!(listed(&mut client), sorted(&own["confined"]), "{level}");
        // The own task and tree, without naming them.
        assert_eq!(
            client.call("task_get", json!({}))["task"]["id"],
            1,
            "{level}"
        );
        assert_eq!(
            client.call("worktree_status", json!({}))["tree"]["name"],
            "fix"
        );
        // alice holds it, and this is not alice.
        client.refused("task_claim", json!({}), "not_allowed_inside");
        client.call("message_send", json!({"to": "bob", "text": "--consume"}));
        let got = env.ok(&["msg", "inbox", "--session", "bob", "--consume"]);
        assert_eq!(got["messages"][0]["from"], "claude-fix-1");
        assert_eq!(got["messages"][0]["text"], "--consume", "text is no flag");
        let asked = client.call(
            "ask",
            json!({"to": "bob", "text": "which?", "timeout_seconds": 0}),
        );
        assert_eq!(asked["answered"], false, "{asked:#}");
        assert!(asked["next"].as_str().unwrap().contains("message_inbox"));
        // What is somebody else's.
        client.refused("task_complete", json!({"task_id": 2}), "not_allowed_inside");
        client.refused("task_claim", json!({"task_id": 2}), "not_allowed_inside");
        client.refused(
            "worktree_diff",
            json!({"name": "other"}),
            "not_allowed_inside",
        );
        client.refused("land", json!({"name": "other"}), "not_allowed_inside");
        let shutdown = json!({"to": "bob", "text": "stop", "type": "shutdown"});
        client.refused("message_send", shutdown, "not_allowed_inside");
        for tool in [
            "agent_spawn",
            "worktree_remove",
            "task_create",
            "check_agents",
        ] {
            let answer = client.request("tools/call", json!({"name": tool, "arguments": {}}));
            assert_eq!(answer["error"]["code"], -32602, "{level} {tool}: {answer}");
        }
        let read = |client: &mut McpClient, uri: &str| {
            client.request("resources/read", json!({"uri": uri}))
        };
        let board = read(&mut client, "weald://tasks");
        assert!(
            board["result"]["contents"][0]["text"]
                .as_str()
                .unwrap()
                .contains("fix it")
        );
        let other = read(&mut client, "weald://tree/other/diff");
        assert!(other["error"].is_object(), "{level}: {other}");
        client.refused("task_complete", json!({}), "not_allowed_inside");
        assert_eq!(env.ok(&["task", "show", "2"])["task"]["owner"], "bob");
    }
}

#[test]
fn x12_the_tools_of_an_agent_act_on_its_own_task() {
    for level in ["full", "landlock"] {
        let env = agent_field();
        let (child, mut alice) = begin_alice(&env, level);
        let claimed = alice.mcp("task_claim", json!({})).unwrap();
        assert_eq!(claimed["task"]["id"], 1, "{level}: {claimed:#}");
        alice
            .mcp("message_send", json!({"to": "bob", "text": "hi"}))
            .unwrap();
        let got = env.ok(&["msg", "inbox", "--session", "bob", "--consume"]);
        assert_eq!(got["messages"][0]["from"], "alice");
        alice
            .mcp("task_complete", json!({"report": "done"}))
            .unwrap();
        alice.exit(0);
        assert_eq!(ended(child).code, 0);
        let task = env.ok(&["task", "show", "1"])["task"].clone();
        assert_eq!(task["status"], "completed", "{level}: {task:#}");
        assert_eq!(task["report"], "done");
    }
}

#[test]
fn x12_in_a_sandbox_without_its_broker_there_are_the_confined_tools_alone() {
    let env = repository();
    let mut command = env.weald_command(&["mcp", "--role", "lead"]);
    let mut client = McpClient::of(command.env("WEALD_SANDBOX", "full"));
    client.initialize();
    assert_eq!(
        listed(&mut client),
        sorted(&documented("\n## Tools")["confined"])
    );
    client.refused("task_list", json!({}), "inside_sandbox");
}

#[test]
fn x12_a_server_whose_variables_are_gone_still_sees_that_it_is_inside() {
    let env = field();
    let without = "for name in $(env | sed -n 's/^\\(WEALD_[A-Z_]*\\)=.*/\\1/p'); do unset $name; done; exec \"$0\" mcp --role lead";
    for level in ["full", "landlock"] {
        let mut command =
            env.weald_command(&["run", "fix", "--sandbox", level, "--", "sh", "-c", without]);
        let mut client = McpClient::of(command.arg(weald(&env)));
        client.initialize();
        let confined = sorted(&documented("\n## Tools")["confined"]);
        assert_eq!(listed(&mut client), confined, "{level}");
        let params = json!({"name": "task_list", "arguments": {}});
        let answer = client.request("tools/call", params);
        assert_eq!(answer["result"]["isError"], true, "{level}: {answer}");
    }
}

#[test]
fn x12_a_flood_through_the_server_inside_hurts_nobody() {
    let env = field();
    let mut client = inside(&env, "full");
    let huge = "x".repeat(200 << 10);
    client.refused(
        "message_send",
        json!({"to": "bob", "text": huge}),
        "argument_too_long",
    );
    let asked: Vec<_> = (0..40)
        .map(|_| client.ask("tools/call", json!({"name": "task_list", "arguments": {}})))
        .collect();
    // Somebody outside is served meanwhile, and everybody inside gets an answer.
    assert_eq!(
        env.ok(&["task", "list"])["tasks"].as_array().unwrap().len(),
        2
    );
    let mut left: Vec<_> = asked.into_iter().collect();
    while !left.is_empty() {
        let line = client.line();
        assert_eq!(line["result"]["isError"], false, "{line}");
        left.retain(|id| line["id"] != *id);
    }
    assert_eq!(client.call("task_get", json!({}))["task"]["id"], 1);
}

#[test]
fn p13_resources_and_prompts_are_listed_read_and_completed() {
    let env = repository();
    env.ok(&["task", "add", "one"]);
    env.ok(&["new", "fix"]);
    fs::write(env.root().join("app.weald/fix/new.txt"), "text\n").unwrap();
    let mut client = McpClient::open(&env);
    let mut ask = |method: &str, params: Value| client.request(method, params);
    let listed = ask("resources/list", json!({}))["result"]["resources"].clone();
    let uris: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["uri"])
        .collect();
    assert_eq!(uris, ["weald://tasks", "weald://events"]);
    let templates = ask("resources/templates/list", json!({}))["result"].clone();
    let first = &templates["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(first, "weald://tree/{name}/diff");
    let mut text = |uri: &str| {
        let answer = ask("resources/read", json!({"uri": uri}));
        let content = answer["result"]["contents"][0].clone();
        assert_eq!(content["uri"], uri, "{answer}");
        content["text"].as_str().unwrap().to_owned()
    };
    let board: Value = serde_json::from_str(&text("weald://tasks")).unwrap();
    assert_eq!(board["tasks"][0]["subject"], "one");
    let log: Value = serde_json::from_str(&text("weald://events")).unwrap();
    let count = log["events"].as_array().unwrap().len();
    let after = log["events"][0]["sequence"].as_u64().unwrap();
    let later: Value =
        serde_json::from_str(&text(&format!("weald://events?since={after}"))).unwrap();
    assert_eq!(later["events"].as_array().unwrap().len(), count - 1);
    assert!(text("weald://tree/fix/diff").contains("+text"));
    for uri in [
        "weald://tree/none/diff",
        "weald://nothing",
        "file:///etc/passwd",
    ] {
        let answer = ask("resources/read", json!({"uri": uri}));
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
        assert_eq!(answer["error"]["data"]["uri"], uri);
    }
    let refused = ask("resources/read", json!({"uri": "weald://tree/none/diff"}));
    let (error, data) = (&refused["error"], &refused["error"]["data"]);
    assert_eq!(data["code"], "tree_not_found", "{refused}");
    assert_eq!(data["hint"], "worktree_list", "{refused}");
    assert_eq!(
        error["message"],
        "there is no worktree none\nhint: worktree_list"
    );
    let mut complete = |reference: Value, name: &str, value: &str| {
        let argument = json!({"name": name, "value": value});
        let params = json!({"ref": reference, "argument": argument});
        ask("completion/complete", params)["result"]["completion"]["values"].clone()
    };
    let tree = json!({"type": "ref/resource", "uri": "weald://tree/{name}/diff"});
    assert_eq!(complete(tree.clone(), "name", "f"), json!(["fix"]));
    assert_eq!(complete(tree, "name", "g"), json!([]));
    let prompt = json!({"type": "ref/prompt", "name": "teammate"});
    assert_eq!(complete(prompt, "task_id", ""), json!(["1"]));
    let lead = ask(
        "prompts/get",
        json!({"name": "lead", "arguments": {"goal": "port it"}}),
    );
    let said = &lead["result"]["messages"][0]["content"]["text"];
    assert!(said.as_str().unwrap().starts_with("port it"), "{lead}");
    let none = ask("prompts/get", json!({"name": "none"}));
    assert_eq!(none["error"]["code"], -32602, "{none}");
}

#[test]
fn p13_the_classroom_s_plan_and_shutdown_go_their_way() {
    let env = repository();
    env.ok(&["init", "--profile", "classroom"]);
    let mut lead = McpClient::start(&env, &["--session", "lead"]);
    lead.initialize();
    let mut mate = McpClient::start(&env, &["--session", "alice", "--role", "teammate"]);
    mate.initialize();
    let task = lead.call("create_task", json!({"subject": "build it"}));
    assert_eq!(task["task"]["id"], 1);
    lead.call("create_worktree", json!({"name": "lane", "task_id": 1}));
    let claimed = mate.call("claim_task", json!({"task_id": 1}));
    assert_eq!(claimed["task"]["owner"], "alice", "{claimed:#}");
    lead.call(
        "request_plan",
        json!({"teammate": "alice", "task": "the build"}),
    );
    let inbox = mate.call("check_inbox", json!({}));
    assert!(
        inbox["messages"][0]["text"]
            .as_str()
            .unwrap()
            .contains("the build")
    );
    mate.call("submit_plan", json!({"plan": "first this, then that"}));
    let plan = lead.call("check_inbox", json!({}))["messages"][0].clone();
    assert_eq!((&plan["type"], &plan["task"]), (&json!("plan"), &json!(1)));
    let verdict = json!({"request_id": plan["id"], "approve": false, "feedback": "that first"});
    assert_eq!(lead.call("review_plan", verdict.clone())["outcome"], "sent");
    assert_eq!(lead.call("review_plan", verdict)["outcome"], "duplicate");
    let told = mate.call("check_inbox", json!({}))["messages"][0].clone();
    assert_eq!(
        (&told["type"], &told["state"]),
        (&json!("plan_verdict"), &json!("rejected"))
    );
    lead.call("request_shutdown", json!({"teammate": "alice"}));
    let asked = mate.call("check_inbox", json!({}))["messages"][0].clone();
    assert_eq!(asked["type"], "shutdown");
    mate.call("reply", json!({"message_id": asked["id"], "approve": true}));
    assert_eq!(
        lead.call("check_inbox", json!({}))["messages"][0]["state"],
        "approved"
    );
    // Neither a name that nobody can have nor an agent that can't start leaves anything.
    let bad = |name: &str| json!({"name": name, "prompt": "Say hello", "driver": "none-such"});
    lead.refused("spawn_teammate", bad("a9"), "name_reserved");
    lead.refused("spawn_teammate", bad("no/name"), "invalid_name");
    lead.refused("spawn_teammate", bad("carol"), "driver_not_found");
    let taken = json!({"name": "alice", "prompt": "Say hello", "command": "true"});
    lead.refused("spawn_teammate", taken, "session_taken");
    let board = lead.call("list_tasks", json!({}));
    assert_eq!(board["tasks"].as_array().unwrap().len(), 1, "{board:#}");
}
