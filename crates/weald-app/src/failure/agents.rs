//! Errors about agents.

use crate::{AgentError, RecordError};
use serde_json::json;
use weald_core::Timestamp;
use weald_core::agent::{Agent, AgentId};
use weald_core::agent_rules::AgentRefusal;
use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::races::RaceRefusal;

use super::Failure;
use crate::exit;

impl Failure {
    /// An agent's own interface, where there is nobody to see it.
    pub fn no_terminal() -> Self {
        Self::new(
            "no_terminal",
            exit::USAGE,
            "an interactive agent needs a terminal on stdin and stdout",
        )
        .hint(
            "weald agent spawn TASK -i starts it detached; then, in a terminal: weald attach TASK",
        )
    }

    /// A shell is for a person.
    pub fn shell_without_terminal() -> Self {
        let message = "a shell needs a terminal on stdin and stdout";
        Self::new("no_terminal", exit::USAGE, message).hint("weald run NAME -- CMD")
    }

    /// Its record says that it runs, and nobody answers.
    pub fn terminal_out_of_reach(id: AgentId) -> Self {
        let message = format!("the terminal of {id} can't be reached");
        Self::new("terminal_out_of_reach", exit::BUSY, message)
            .hint(format!("weald agent pulse {id}; weald doctor"))
    }

    /// Nothing to attach to any more.
    pub fn interface_ended(agent: &Agent) -> Self {
        let id = agent.id;
        let message = format!("the interface of {id} has ended");
        Self::new("agent_over", exit::REFUSED, message).hint(format!(
            "open it again: weald resume {} -i; what was on it: weald agent logs {id}",
            agent.task
        ))
    }

    /// It has an interface already.
    pub fn already_interactive(id: AgentId) -> Self {
        let message = format!("{id} runs in its own interface already");
        Self::new("agent_interactive", exit::REFUSED, message).hint(format!("weald attach {id}"))
    }

    /// A command has no conversation that could be opened.
    pub fn no_interface(agent: &Agent) -> Self {
        let message = format!(
            "{} runs a command, which has no interface to open",
            agent.id
        );
        Self::new("not_interactive", exit::REFUSED, message)
            .hint(format!("follow its output: weald attach {}", agent.id))
    }

    /// Phases are run one after the other, by weald.
    pub fn phases_alone(task: &TaskId) -> Self {
        let message = format!("task {task} is worked on in phases, which are not interactive");
        Self::new("phases_not_interactive", exit::USAGE, message)
            .hint(format!("weald phase {task}"))
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        let message = error.to_string();
        match error {
            AgentError::Record(error) => error.into(),
            AgentError::Tree(error) => error.into(),
            AgentError::Land(error) => error.into(),
            AgentError::Sandbox(error) => {
                Failure::from(error).accepting_by("--set sandbox.level=landlock")
            }
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
