//! Words that mean nothing, or not one thing.

use serde_json::json;
use weald_control::lookup::LookupError;
use weald_core::id::{LandingId, TaskId};
use weald_core::meant::{Choice, Unclear, Wanted};

use super::Failure;
use crate::exit;

impl From<LookupError> for Failure {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Store(error) => error.into(),
            LookupError::Unclear(unclear) => unclear.into(),
        }
    }
}

impl From<Unclear> for Failure {
    fn from(unclear: Unclear) -> Self {
        let message = unclear.to_string();
        match unclear {
            Unclear::Ambiguous { word, choices } => {
                let say: Vec<_> = choices.iter().map(|choice| choice.say.as_str()).collect();
                Self::new("ambiguous_name", exit::REFUSED, message)
                    .hint(format!("say which: {}", say.join(" or ")))
                    .details(json!({"name": word, "choices": choices}))
            }
            Unclear::Without { what, wanted } => without(&what, wanted, message),
            Unclear::InTrash { name, id } => Self::new("tree_not_found", exit::NOT_FOUND, message)
                .hint(format!("weald restore {id}"))
                .details(json!({"tree": name, "trash": id})),
            Unclear::Unknown {
                word,
                wanted,
                nearest,
                ..
            } => {
                let list = wanted.list();
                let (code, mut details) = match wanted {
                    Wanted::Worktree => ("tree_not_found", json!({"tree": word})),
                    Wanted::Task => {
                        let id = word.parse::<TaskId>().map(|id| json!(id));
                        let id = id.unwrap_or_else(|_| json!(word));
                        ("task_not_found", json!({"task": id}))
                    }
                    Wanted::Agent => ("agent_not_found", json!({"agent": word})),
                    Wanted::Landing => {
                        let id = word.parse::<LandingId>().map(|id| json!(id));
                        let id = id.unwrap_or_else(|_| json!(word));
                        ("landing_not_found", json!({"landing": id}))
                    }
                };
                if let Some(near) = &nearest {
                    details["nearest"] = json!(near);
                }
                Self::new(code, exit::NOT_FOUND, message)
                    .hint(match &nearest {
                        Some(near) => format!("did you mean {near}? to list them: {list}"),
                        None => list.to_owned(),
                    })
                    .details(details)
            }
        }
    }
}

/// Something that has none of what is wanted.
fn without(what: &Choice, wanted: Wanted, message: String) -> Failure {
    let task = what.say.strip_prefix("task:");
    let tree = what.say.strip_prefix("worktree:");
    let (code, exit, hint) = match (wanted, task, tree) {
        (Wanted::Worktree, Some(task), _) => (
            "task_without_tree",
            exit::REFUSED,
            format!("weald new --task {task}"),
        ),
        (Wanted::Task, _, Some(tree)) => (
            "tree_without_task",
            exit::REFUSED,
            format!("to give it one: weald task bind ID {tree}"),
        ),
        (Wanted::Worktree, ..) => ("tree_not_found", exit::NOT_FOUND, wanted.list().to_owned()),
        (Wanted::Task, ..) => ("task_not_found", exit::NOT_FOUND, wanted.list().to_owned()),
        (Wanted::Agent, ..) => ("agent_not_found", exit::NOT_FOUND, wanted.list().to_owned()),
        (Wanted::Landing, ..) => (
            "landing_not_found",
            exit::NOT_FOUND,
            wanted.list().to_owned(),
        ),
    };
    Failure::new(code, exit, message)
        .hint(hint)
        .details(json!({"name": what.say}))
}
