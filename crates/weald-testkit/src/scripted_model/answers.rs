//! What conversations of both APIs hold, and answers as they have to look.

use serde_json::{Value, json};

use super::Turn;

/// Which API a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Messages,
    Responses,
}

impl Api {
    /// By its path; `None` for anything else.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        match path {
            _ if path.ends_with("/messages") => Some(Self::Messages),
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ => None,
        }
    }

    /// Whether the agent wants events.
    pub(super) fn is_streamed(self, body: &Value) -> bool {
        self == Self::Responses || body["stream"] == json!(true)
    }

    /// A turn as events.
    pub(super) fn answer(self, body: &Value, turn: &Turn) -> Vec<Value> {
        match self {
            Self::Messages => messages(body, turn),
            Self::Responses => responses(body, turn),
        }
    }
}

/// The messages or items of a conversation.
fn entries(body: &Value) -> impl Iterator<Item = &Value> {
    let entries = body.get("messages").or_else(|| body.get("input"));
    entries.and_then(Value::as_array).into_iter().flatten()
}

/// The parts of a message.
fn parts(entry: &Value) -> impl Iterator<Item = &Value> {
    entry["content"].as_array().into_iter().flatten()
}

/// The names of the tools that the agent has.
pub(super) fn tools(body: &Value) -> impl Iterator<Item = &str> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().or_else(|| tool["type"].as_str()))
}

/// What the user said.
pub(super) fn said(body: &Value) -> Vec<String> {
    let mut said = Vec::new();
    for entry in entries(body).filter(|entry| entry["role"] == "user") {
        said.extend(entry["content"].as_str().map(str::to_owned));
        let texts = parts(entry).filter_map(|part| part["text"].as_str());
        said.extend(texts.map(str::to_owned));
    }
    said
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let mut results = Vec::new();
    for entry in entries(body) {
        if entry["type"] == "function_call_output" {
            results.push(text_of(&entry["output"]));
        }
        let of_tools = parts(entry).filter(|part| part["type"] == "tool_result");
        results.extend(of_tools.map(|part| text_of(&part["content"])));
    }
    results
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

/// The tool that a turn uses, and what it gets; `None` for words.
fn call(body: &Value, turn: &Turn) -> Option<(String, Value)> {
    match turn {
        Turn::Tool { name, input } => Some((name.clone(), input.clone())),
        Turn::Shell(command) => tools(body).find_map(|tool| {
            let input = match tool {
                "Bash" => json!({"command": command, "description": "as the test says"}),
                "exec_command" => json!({"cmd": command}),
                "shell" => json!({"command": ["bash", "-lc", command]}),
                _ => return None,
            };
            Some((tool.to_owned(), input))
        }),
        Turn::Say(_) | Turn::Hold(..) | Turn::Refuse(..) => None,
    }
}

/// A tool that the agent has in a namespace, as Codex has those of MCP servers: `mcp__weald__land` is `land` in `mcp__weald`.
fn spaced<'a>(body: &'a Value, name: &'a str) -> Option<(&'a str, &'a str)> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let mut spaces = tools.filter(|tool| tool["type"] == "namespace");
    spaces.find_map(|space| {
        let space = space["name"].as_str()?;
        Some((space, name.strip_prefix(space)?.strip_prefix("__")?))
    })
}

fn words(turn: &Turn) -> &str {
    match turn {
        Turn::Say(text) => text,
        _ => "there is no such tool",
    }
}

fn message(body: &Value) -> Value {
    json!({
        "id": format!("msg_{}", results(body).len()), "type": "message", "role": "assistant",
        "model": body["model"], "stop_sequence": null, "stop_reason": null, "content": [],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    })
}

/// An answer of the Messages API in one object.
pub(super) fn whole(body: &Value, turn: &Turn) -> Value {
    let mut message = message(body);
    let number = results(body).len();
    let (content, reason) = match call(body, turn) {
        Some((name, input)) => (
            json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": input}),
            "tool_use",
        ),
        None => (json!({"type": "text", "text": words(turn)}), "end_turn"),
    };
    message["content"] = json!([content]);
    message["stop_reason"] = json!(reason);
    message
}

fn messages(body: &Value, turn: &Turn) -> Vec<Value> {
    let mut block = whole(body, turn)["content"][0].take();
    let (delta, reason) = match block["type"] == "tool_use" {
        true => {
            let input = block["input"].take().to_string();
            block["input"] = json!({});
            let delta = json!({"type": "input_json_delta", "partial_json": input});
            (delta, "tool_use")
        }
        false => {
            let text = block["text"].take();
            block["text"] = json!("");
            (json!({"type": "text_delta", "text": text}), "end_turn")
        }
    };
    vec![
        json!({"type": "message_start", "message": message(body)}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 2},
        }),
        json!({"type": "message_stop"}),
    ]
}

fn responses(body: &Value, turn: &Turn) -> Vec<Value> {
    let number = results(body).len();
    let id = format!("resp_{number}");
    let item = match call(body, turn) {
        Some((name, input)) => {
            let mut item = json!({
                "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                "name": name, "arguments": input.to_string(),
            });
            if let Some((space, name)) = spaced(body, &name) {
                item["namespace"] = json!(space);
                item["name"] = json!(name);
            }
            item
        }
        None => json!({
            "type": "message", "id": format!("msg_{number}"), "role": "assistant",
            "content": [{"type": "output_text", "text": words(turn)}],
        }),
    };
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": null, "output_tokens": 1,
        "output_tokens_details": null, "total_tokens": 2,
    });
    vec![
        json!({"type": "response.created", "response": {"id": id}}),
        json!({"type": "response.output_item.done", "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "usage": usage}}),
    ]
}
