//! What clients can read beside calling tools: the board, the log, and what changed in a tree.
//!
//! Each is a command that only reads, so whoever may not run it may not read it either.

use rmcp::ErrorData;
use rmcp::model::{JsonObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use weald_app::DiffStyle;
use weald_app::operations::events::ListEvents;
use weald_app::operations::looking::{DiffTree, ListTrees};
use weald_app::operations::tasks::{ListTasks, ReadyTasks};
use weald_core::git_diff::DiffOptions;
use weald_core::id::Seq;

use super::hints;
use super::tool::Entry;
use super::weald::Call;
use crate::broker::Fault;

const TASKS: &str = "weald://tasks";
const EVENTS: &str = "weald://events";
const SINCE: &str = "weald://events{?since}";
const DIFF: &str = "weald://tree/{name}/diff";

const JSON: &str = "application/json";
const PATCH: &str = "text/x-diff";

/// The most tasks, and bytes of a patch, that are told at once.
const MOST_TASKS: u64 = 500;
/// The most ready tasks that are offered as completions.
const MOST_READY: u64 = 1000;
const MOST_PATCH: usize = 1 << 20;

/// The exit code of what is not there.
const NOT_FOUND: u8 = 4;

/// Those with a fixed address.
pub fn fixed() -> Vec<Resource> {
    vec![
        Resource::new(TASKS, "tasks")
            .with_title("The board")
            .with_description("Tasks with status, owner, dependencies and worktree.")
            .with_mime_type(JSON),
        Resource::new(EVENTS, "events")
            .with_title("The log")
            .with_description("The newest events, as CloudEvents objects.")
            .with_mime_type(JSON),
    ]
}

/// Those with a part to fill in.
pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(DIFF, "diff")
            .with_title("What changed in a worktree")
            .with_description("A patch of everything since the worktree began.")
            .with_mime_type(PATCH),
        ResourceTemplate::new(SINCE, "events-since")
            .with_title("The log after a place")
            .with_description("Events after the one with sequence `since`.")
            .with_mime_type(JSON),
    ]
}

/// What an address names.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Tasks,
    Events { since: Option<u64> },
    Diff { tree: String },
}

impl Named {
    fn of(uri: &str) -> Option<Self> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        match (path, query) {
            (TASKS, "") => Some(Self::Tasks),
            (EVENTS, "") => Some(Self::Events { since: None }),
            (EVENTS, query) => {
                let since = query.strip_prefix("since=")?.parse().ok()?;
                Some(Self::Events { since: Some(since) })
            }
            (path, "") => {
                let name = path.strip_prefix("weald://tree/")?.strip_suffix("/diff")?;
                let tree = decoded(name)?;
                (!tree.is_empty()).then_some(Self::Diff { tree })
            }
            _ => None,
        }
    }
}

/// A part of an address without its escapes.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        match (first, after) {
            (b'%', [high, low, ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &after[2..];
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

pub async fn read(
    uri: &str,
    call: &Call<'_>,
    tools: &[Entry],
) -> Result<ReadResourceResult, ErrorData> {
    let named = Named::of(uri).ok_or_else(|| refused(uri, &no_such(uri)))?;
    let told = match named {
        Named::Tasks => {
            let limit = Some(MOST_TASKS);
            let list = ListTasks {
                limit,
                ..ListTasks::default()
            };
            let answer = call.perform(list).await;
            answer.map(|answer| (as_text(answer), JSON))
        }
        Named::Events { since } => {
            let list = ListEvents {
                since: since.map(Seq),
                task: None,
                tree: None,
                limit: ListEvents::MOST,
            };
            let events = call.perform(list).await;
            events.map(|answer| (as_text(answer), JSON))
        }
        Named::Diff { tree } => {
            let diff = DiffTree {
                tree: Some(tree),
                against_target: false,
                style: DiffStyle::Patch,
                options: DiffOptions::default(),
                reader: None,
            };
            let patch = call.patch(diff, MOST_PATCH).await;
            patch.map(|(text, _)| (text, PATCH))
        }
    };
    let told = told.map_err(|fault| hints::for_tools(fault, tools, None));
    let (text, kind) = told.map_err(|fault| refused(uri, &fault))?;
    let content = ResourceContents::text(text, uri).with_mime_type(kind);
    Ok(ReadResourceResult::new(vec![content]))
}

/// Names of trees that begin so, for whoever fills in the address of a diff.
pub async fn trees(beginning: &str, call: &Call<'_>) -> Vec<String> {
    let answer = call.perform(ListTrees::default()).await.unwrap_or_default();
    named(&answer, "trees", "name", beginning)
}

/// Ids of tasks that can be claimed and begin so.
pub async fn tasks(beginning: &str, call: &Call<'_>) -> Vec<String> {
    let limit = Some(MOST_READY);
    let answer = call.perform(ReadyTasks { limit }).await.unwrap_or_default();
    named(&answer, "tasks", "id", beginning)
}

fn named(answer: &JsonObject, list: &str, field: &str, beginning: &str) -> Vec<String> {
    let list = answer.get(list).and_then(Value::as_array);
    let names = list.into_iter().flatten().map(|item| match &item[field] {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    });
    let fitting = names.filter(|name| name.starts_with(beginning));
    fitting.take(100).collect()
}

fn as_text(answer: JsonObject) -> String {
    Value::from(answer).to_string()
}

fn no_such(uri: &str) -> Fault {
    let message = format!("there is no such resource: {uri:.200}");
    Fault::new("resource_not_found", NOT_FOUND, message)
        .hint("resources/list and resources/templates/list list what there is")
}

/// A command's refusal as the protocol has it: reading has no errors of its own as tools have. Many clients show the
/// message alone, so it says what to do, too.
fn refused(uri: &str, fault: &Fault) -> ErrorData {
    let Fault {
        code,
        message,
        hint,
        ..
    } = fault;
    let words = match hint {
        Some(hint) => format!("{message}\nhint: {hint}"),
        None => message.clone(),
    };
    let told = json!({"uri": uri, "code": code, "message": message, "hint": hint});
    match fault.exit {
        NOT_FOUND => ErrorData::resource_not_found(words, Some(told)),
        _ => ErrorData::internal_error(words, Some(told)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_thing_or_nothing() {
        let diff = |tree: &str| Some(Named::Diff { tree: tree.into() });
        for (uri, named) in [
            ("weald://tasks", Some(Named::Tasks)),
            ("weald://events", Some(Named::Events { since: None })),
            (
                "weald://events?since=12",
                Some(Named::Events { since: Some(12) }),
            ),
            ("weald://tree/fix/diff", diff("fix")),
            ("weald://tree/a%2Bb/diff", diff("a+b")),
            // Refused by the command: no flag comes out of it.
            ("weald://tree/--all/diff", diff("--all")),
            ("weald://tree//diff", None),
            ("weald://tree/a%2/diff", None),
            ("weald://tree/a%ff/diff", None),
            ("weald://tree/fix", None),
            ("weald://tree/fix/diff?x=1", None),
            ("weald://tasks?x", None),
            ("weald://events?since=-1", None),
            ("weald://events?until=1", None),
            ("file:///etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(Named::of(uri), named, "{uri}");
        }
    }
}
