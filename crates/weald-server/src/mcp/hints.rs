//! What a refusal says to do, for somebody who has tools and no command line.
//!
//! Commands hint at commands. Where a tool that the caller has does the same, the whole call stands instead, with its
//! arguments: `task_get {"task_id": 1}`. What no tool does stays a command for a terminal, and says so. Nothing in between:
//! a call with half of a command's flags would be refused again.

mod calls;

use rmcp::model::JsonObject;
use serde_json::Value;
use weald_core::error_code::ErrorCode;

use super::tool::{Audience, Entry};
use crate::broker::Fault;

/// Before a command that no tool does.
const TERMINAL: &str = "in a terminal: ";

/// The commands of weald. Anything else behind its name is a sentence about it.
const COMMANDS: &str = "--help -C adopt agent approve attach clean completions config conflicts cost deinit demo diff doctor ensure enter \
    events exit init install keep land list lock man mcp msg new path phase pool ports queue race rescue \
    restore resume revert rm run sandbox session setup shell shell-init show snapshot status sweep sync task trash \
    trust undo unlock usage vault verify work worker";

/// The same refusal in words for tools. Nobody is told to use the token of somebody else's claim.
pub fn for_tools(mut fault: Fault, tools: &[Entry], called: Option<&Entry>) -> Fault {
    if fault.code == ErrorCode::TokenRequired {
        let holder = fault.details["holder"]
            .as_str()
            .unwrap_or("another session");
        let hint = format!(
            "only {holder} can do that; ask with message_send, or take another task with task_claim"
        );
        fault.hint = Some(hint);
    }
    if fault.code == ErrorCode::PlanNotApproved
        && tools.iter().any(|tool| tool.audience == Audience::Lead)
    {
        let hint = "the agent that works on it sends the plan (message_send with type plan); it arrives in message_inbox, then judge it: reply with approve";
        fault.hint = Some(hint.to_owned());
    }
    // The command line's own mistakes are mistakes in arguments here.
    if matches!(fault.code, ErrorCode::Usage | ErrorCode::InvalidValue)
        && fault.hint.as_deref() == Some("weald --help")
    {
        fault.message = without_flags(&fault.message);
        fault.hint = Some("see the tool's input schema".to_owned());
    }
    // What only the person may do stays a command.
    if fault.code != ErrorCode::NoMandate {
        fault.hint = fault.hint.map(|hint| in_tools(&hint, tools, called));
    }
    fault
}

/// A message of the command line's about `'--type <TYPE>'`, with the name of the argument instead.
fn without_flags(message: &str) -> String {
    let mut told = String::new();
    let mut rest = message;
    while let Some((before, flag)) = rest.split_once("'--") {
        let Some((flag, after)) = flag.split_once('\'') else {
            break;
        };
        let name = flag.split([' ', '=']).next().unwrap_or(flag);
        told.push_str(&format!("{before}'{}'", name.replace('-', "_")));
        rest = after;
    }
    told + rest
}

/// An answer whose hints name tools, wherever they are in it.
pub fn in_answer(mut answer: JsonObject, tools: &[Entry]) -> JsonObject {
    fields(&mut answer, tools);
    answer
}

fn fields(object: &mut JsonObject, tools: &[Entry]) {
    for (name, value) in object.iter_mut() {
        match (name.as_str(), value) {
            ("hint" | "restore", Value::String(text)) => *text = in_tools(text, tools, None),
            // What a run's own command printed stays as it is: its notes are those of weald.
            ("choices" | "notes" | "notices" | "warnings", Value::Array(items)) => {
                items.iter_mut().for_each(|item| match item {
                    Value::Object(object) => fields(object, tools),
                    item => line(item, tools),
                });
            }
            ("alerts", Value::Array(items)) => {
                let alerts = items.iter_mut().filter_map(Value::as_object_mut);
                for command in alerts.filter_map(|alert| alert.get_mut("command")) {
                    line(command, tools);
                }
            }
            (_, Value::Object(object)) => fields(object, tools),
            (_, Value::Array(items)) => {
                let objects = items.iter_mut().filter_map(Value::as_object_mut);
                objects.for_each(|object| fields(object, tools));
            }
            _ => {}
        }
    }
}

fn line(value: &mut Value, tools: &[Entry]) {
    if let Value::String(text) = value {
        *text = in_tools(text, tools, None);
    }
}

/// A hint in words for tools. `called` is the tool that was refused: a flag alone is one of its arguments.
fn in_tools(hint: &str, tools: &[Entry], called: Option<&Entry>) -> String {
    let hint = committed(hint);
    let mut told = String::new();
    let mut rest = hint.as_str();
    while let Some(at) = next_command(rest) {
        told.push_str(&with_arguments(&rest[..at], called));
        let command = &rest[at..];
        match calls::of(&command["weald ".len()..], tools) {
            Some((call, length)) => {
                told.push_str(&call);
                rest = &command["weald ".len() + length..];
            }
            None => {
                if !told.ends_with(TERMINAL) {
                    told.push_str(TERMINAL);
                }
                let name = "weald ".len();
                let next = next_command(&command[name..]).map_or(command.len(), |next| name + next);
                let end = calls::length_of(command).min(next);
                told.push_str(&command[..end]);
                rest = &command[end..];
            }
        }
    }
    told + &with_arguments(rest, called)
}

/// A landing commits nothing over MCP, so that is a call of its own.
fn committed(hint: &str) -> String {
    let name = hint
        .strip_prefix("weald land ")
        .and_then(|rest| rest.strip_suffix(" --commit -m MESSAGE"));
    match name {
        Some(name) => {
            format!(
                "weald run {name} -- git add -A && git commit -m MESSAGE; then weald land {name}"
            )
        }
        None => hint.to_owned(),
    }
}

/// Where the next command of weald's begins.
fn next_command(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = text[from..].find("weald ") {
        let at = from + found;
        let is_word = !text[..at]
            .ends_with(|before: char| before.is_alphanumeric() || "-_/.".contains(before));
        let next = text[at + "weald ".len()..]
            .split([' ', ',', ';', ')', '`'])
            .next()
            .unwrap_or_default();
        if is_word && COMMANDS.split(' ').any(|command| command == next) {
            return Some(at);
        }
        from = at + "weald ".len();
    }
    None
}

/// A sentence in which flags are the arguments of the tool that was called, and others are for a terminal. What is git's
/// stays as it is.
fn with_arguments(text: &str, called: Option<&Entry>) -> String {
    let mut is_gits = false;
    let words = text.split(' ').map(|word| {
        let is_first = word.trim_start_matches('`') == "git";
        is_gits = (is_gits || is_first) && !word.ends_with([',', ';']);
        match word.strip_prefix("--") {
            Some(flag) if !is_gits && !flag.is_empty() => argument(flag, called),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn argument(flag: &str, called: Option<&Entry>) -> String {
    let end = flag
        .find(|next: char| !(next.is_alphanumeric() || next == '-'))
        .unwrap_or(flag.len());
    let (name, after) = flag.split_at(end);
    let name = name.replace('-', "_");
    // There the word stands for another flag.
    let is_known = |tool: &&Entry| tool.described.name != "worktree_remove" && tool.has(&name);
    match called.filter(is_known) {
        Some(tool) if tool.takes_switch(&name) => format!("\"{name}\":true{after}"),
        Some(_) => format!("{name}{after}"),
        None if name == "session" => format!("a server started with --{flag}"),
        None => format!("(in a terminal) --{flag}"),
    }
}

#[cfg(test)]
mod tests;
