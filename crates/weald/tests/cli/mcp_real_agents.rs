//! Claude Code and Codex in a tree, with weald's MCP server that weald gave them.

use std::process::Stdio;

use serde_json::json;
use weald_testkit::{Answer, Scenario, ScriptedModel, Turn};

use crate::real_agents::{add_task, weald, with_agents};

/// What the model does: it tells the host something by a tool, and ends.
fn scenario(name: &str) -> Scenario {
    let turns = [
        Turn::Tool {
            name: "mcp__weald__message_send".to_owned(),
            input: json!({"to": "lead", "text": format!("{name} is here")}),
        },
        Turn::say("done"),
    ];
    Scenario::new(&format!("tools of {name}"), turns)
}

#[test]
fn x12_real_agents_have_weald_s_tools_in_their_tree_and_a_call_arrives() {
    let model = ScriptedModel::start(["claude", "codex"].map(scenario));
    let Some(env) = with_agents(&model) else {
        return;
    };
    // They send a message, and change nothing.
    env.ok(&["config", "set", "work.on_empty", "complete"]);
    // A server of that name in the user's settings is not in the way.
    let own = json!({"mcpServers": {"weald": {"command": "/no/such/program"}}});
    std::fs::write(env.home().join(".claude.json"), own.to_string()).unwrap();
    for name in ["claude", "codex"] {
        let about = format!("tools of {name}");
        let task = add_task(&env, &about);
        let args = ["work", &task, "--driver", name, "--no-land", "--json"];
        let mut command = weald(&env, &model, &args);
        let answer = Answer::of(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(answer.code, 0, "{name}: {answer:#?}");
        // The model saw what a confined agent may do, and nothing else.
        let requests = model.requests(&about);
        let tools = requests[0].body["tools"].to_string();
        for tool in ["task_complete", "message_send", "land"] {
            assert!(tools.contains(tool), "{name}: {tool} in {tools}");
        }
        assert!(!tools.contains("agent_spawn"), "{name}: {tools}");
        let inbox = env.ok(&["msg", "inbox", "--consume", "--session", "lead"]);
        let got = &inbox["messages"][0];
        assert_eq!(got["text"], format!("{name} is here"), "{name}: {inbox:#}");
        assert_eq!(got["from"], answer.json()["agent"]["session"], "{name}");
    }
}
