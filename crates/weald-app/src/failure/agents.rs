//! Errors about agents.

use crate::{AgentError, RecordError};
use serde_json::json;
use weald_core::Timestamp;
use weald_core::agent_rules::AgentRefusal;
use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::races::RaceRefusal;

use super::Failure;
use crate::exit;

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        let message = error.to_string();
        match error {
            AgentError::Record(error) => error.into(),
            AgentError::Tree(error) => error.into(),
            AgentError::Land(error) => error.into(),
            AgentError::Sandbox(error) => without_sandbox(error.into()),
            AgentError::Driver(error) => error.into(),
            AgentError::Race(refusal) => from_race(&refusal, message),
            AgentError::TreeBusy { tree, .. } => Self::new("tree_busy", exit::BUSY, message).hint(
                format!("wait until it ends; for details: weald show {tree}"),
            ),
            AgentError::NoTree { agent } => Self::new("no_tree", exit::REFUSED, message).hint(
                format!("weald agent list --all ({agent} never got a worktree)"),
            ),
            AgentError::NoCheckout { .. } => Self::new("no_checkout", exit::REFUSED, message)
                .hint("leave out --no-worktree to give the agent a worktree"),
            AgentError::File { .. } | AgentError::NoIdentity => {
                Self::new("agent_failed", exit::REFUSED, message)
            }
        }
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        let message = error.to_string();
        match error {
            RecordError::Store(error) => error.into(),
            RecordError::Task(error) => error.into(),
            RecordError::Session(error) => error.into(),
            RecordError::Refused(refusal) => from_refusal(&refusal, message),
            RecordError::NotFound { .. } => Self::new("agent_not_found", exit::NOT_FOUND, message)
                .hint("weald agent list --all"),
            RecordError::Working {
                task,
                owner,
                since,
                agent,
            } => Self::new("task_held", exit::BUSY, message)
                .hint(match agent {
                    Some(agent) => {
                        format!("weald agent attach {agent}, or weald agent stop {agent}")
                    }
                    None => {
                        format!("weald session check --task {task}; weald msg send {owner} TEXT")
                    }
                })
                .details(json!({"task": task, "owner": owner, "since": since, "agent": agent})),
            RecordError::MainTaken { agent, task } => Self::new("main_busy", exit::BUSY, message)
                .hint(format!(
                    "wait for it: weald agent wait {agent}; or leave out --no-worktree"
                ))
                .details(json!({"agent": agent, "task": task})),
            RecordError::NameTaken { agent, .. } => {
                Self::new("agent_name_taken", exit::BUSY, message).hint(format!(
                    "choose another --name, or stop that agent: weald agent stop {agent}"
                ))
            }
        }
    }
}

impl Failure {
    /// Another session, which may be alive, works on the task.
    pub fn contested(task: &TaskId, owner: &SessionName, since: Option<Timestamp>) -> Self {
        let message = match since {
            Some(since) => format!(
                "{owner} has been working on task {task} since {}",
                since.strftime("%Y-%m-%d %H:%M:%SZ")
            ),
            None => format!("{owner} is working on task {task}"),
        };
        Self::new("task_held", exit::BUSY, message)
            .hint(format!(
                "weald session check --task {task}; weald msg send {owner} TEXT"
            ))
            .details(json!({"task": task, "owner": owner, "since": since}))
    }
}

/// Agents have no flag for a weaker sandbox, but a setting.
fn without_sandbox(mut failure: Failure) -> Failure {
    let setting = "--set sandbox.level=landlock";
    let hint = failure.hint.take();
    failure.hint = hint.map(|hint| hint.replace("--level landlock", setting));
    failure
}

fn from_race(refusal: &RaceRefusal, message: String) -> Failure {
    match refusal {
        RaceRefusal::NoRace { task } => Failure::new("no_race", exit::NOT_FOUND, message)
            .hint(format!("weald race {task} -n 2")),
        RaceRefusal::NoEntry { task, .. } => Failure::new("no_entry", exit::NOT_FOUND, message)
            .hint(format!("weald race show {task}")),
        RaceRefusal::NotDone { agent, .. } => {
            Failure::new("entry_not_done", exit::REFUSED, message)
                .hint(format!("weald agent logs {agent}"))
        }
        RaceRefusal::Picked { tree, landed, .. } => {
            let failure = Failure::new("picked_already", exit::REFUSED, message);
            match landed {
                true => failure.hint("to see what landed: weald queue status --all"),
                false => failure.hint(format!("if it has not landed: weald land {tree}")),
            }
        }
    }
}

fn from_refusal(refusal: &AgentRefusal, message: String) -> Failure {
    match refusal {
        AgentRefusal::Over { agent, .. } => Failure::new("agent_over", exit::REFUSED, message)
            .hint(format!("weald agent restart {agent}")),
        AgentRefusal::Supervised { .. } => Failure::new("agent_supervised", exit::BUSY, message),
        AgentRefusal::Reported { .. } => Failure::new("already_reported", exit::REFUSED, message),
        AgentRefusal::StaleToken { .. } => Failure::new("stale_token", exit::REFUSED, message),
        AgentRefusal::NotNow { agent, .. } => Failure::new("agent_not_now", exit::REFUSED, message)
            .hint(format!("weald agent pulse {agent}")),
    }
}

impl Failure {
    /// All of it as one text, for a record.
    pub fn in_words(&self) -> String {
        let Some(hint) = &self.hint else {
            return self.message.clone();
        };
        // What a program said stays in its lines.
        let between = if self.message.contains('\n') {
            "\n"
        } else {
            " "
        };
        format!("{}{between}({hint})", self.message)
    }
}
