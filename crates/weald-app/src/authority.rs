//! For whom a run speaks, and what is its own. Decided from the host's own records and from the person's command alone.
//!
//! A command under `weald run` speaks for nobody: it reads the board and its own worktree. Landing needs a mandate, which
//! only a command that lands by itself gives.

use std::path::PathBuf;

use weald_core::agent::{Agent, AgentId, Goal};
use weald_core::id::{TaskId, Token};
use weald_core::meant::{Own, Word};
use weald_core::name::{SessionName, TreeName};

use crate::Failure;
use crate::exit;

/// For whom a run speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Its session. A run without one is nobody's: it reads, and changes nothing.
    pub session: Option<SessionName>,
    /// Its task, if its tree has one.
    pub task: Option<TaskId>,
    /// The token of the claim that its session has on that task.
    pub token: Option<Token>,
    /// The worktree that it runs in.
    pub tree: TreeName,
    /// Its branch, as it is registered.
    pub branch: String,
    /// Its directory.
    pub path: PathBuf,
    /// The agent it is the run of.
    pub agent: Option<AgentId>,
    /// Whether it may ask to land.
    pub mandate: Mandate,
}

/// Whether the command that began a run lets the run land, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mandate {
    /// The person's command lands at its end, so its agent may ask for that earlier.
    Land,
    /// A shell that a person opened: what it asks for is a wish, and the person is asked when it has ended.
    Wish,
    /// `weald run` lands nothing.
    Run,
    /// `--no-land`, or `work.land = false`.
    Keep,
    /// An interactive agent: the person who sat with it decides when it has ended.
    Person,
    /// A phase: the work lands after the last PASS.
    Phase,
    /// An entry of a race: the work lands when it is picked.
    Race,
}

impl Mandate {
    /// What the person's command said of landing, as the agent's record has it.
    pub fn of(agent: &Agent) -> Self {
        match agent.goal {
            _ if agent.interactive => Self::Person,
            Goal::Land => Self::Land,
            Goal::Finish => Self::Keep,
            Goal::Stay if agent.entry().is_some() => Self::Race,
            Goal::Stay => Self::Phase,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Land | Self::Wish => "it has ended",
            Self::Run => "`weald run` lands nothing",
            Self::Keep => "it was started with --no-land or work.land = false",
            Self::Person => "it is interactive, and the person with it decides when it ends",
            Self::Phase => "it is a phase, and the work lands after the last PASS",
            Self::Race => "it is a race entry that has not been picked yet",
        }
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// It names a session that is not its own.
    #[error("this run acts as {}, not as {given}", .own.as_ref().map_or("no session", SessionName::as_str))]
    OtherSession {
        /// For whom it speaks.
        own: Option<SessionName>,
        /// As whom it asked.
        given: SessionName,
    },
    /// The token is not its own.
    #[error("token {given} is not this run's token")]
    OtherToken {
        /// What it gave.
        given: Token,
    },
    /// The task is not its own.
    #[error("task {given} is not this run's own{}", .own.as_ref().map_or_else(String::new, |own| format!(", {own} is")))]
    OtherTask {
        /// What it has.
        own: Option<TaskId>,
        /// What it asked for.
        given: Word,
    },
    /// It has no task.
    #[error(
        "this run has no task: its worktree is not bound to one, or its session does not hold it"
    )]
    NoTask,
    /// The tree is not its own.
    #[error("{given} is not this run's own worktree, {own} is")]
    OtherTree {
        /// Where it runs.
        own: TreeName,
        /// What it asked for.
        given: String,
    },
    /// Nobody is ended from inside a tree.
    #[error("a sandboxed run can't ask other agents to stop")]
    Shutdown,
    /// It speaks for nobody.
    #[error(
        "a command in `weald run` or `weald shell` has no session: it can read the board and its own worktree, but change nothing"
    )]
    Nobody,
    /// It may not land.
    #[error("this run has no mandate to land: {}; its work is kept in worktree {tree}", .mandate.reason())]
    NoMandate {
        /// Why not.
        mandate: Mandate,
        /// Where the work is.
        tree: TreeName,
        /// What it is for.
        task: Option<TaskId>,
    },
}

impl NotAllowed {
    /// What the person types on the host instead, where one command does it.
    pub fn hint(&self) -> Option<String> {
        let Self::NoMandate {
            mandate,
            tree,
            task,
        } = self
        else {
            return None;
        };
        let command = match (mandate, task) {
            (Mandate::Phase, Some(task)) => format!("weald phase {task}"),
            (Mandate::Race, Some(task)) => format!("weald race pick {task} {tree}"),
            _ => format!("weald land {tree}"),
        };
        Some(format!("a person has to run this on the host: {command}"))
    }
}

impl Authority {
    /// Refused to a run that neither may land nor has a person who is asked for it.
    pub fn permits_landing(&self) -> Result<(), NotAllowed> {
        match self.mandate {
            Mandate::Land | Mandate::Wish => Ok(()),
            _ => Err(self.no_mandate()),
        }
    }

    /// That it may not land, or not any more.
    pub fn no_mandate(&self) -> NotAllowed {
        NotAllowed::NoMandate {
            mandate: self.mandate,
            tree: self.tree.clone(),
            task: self.task.clone(),
        }
    }

    /// Whether a word names what is the run's own: nothing else is looked up.
    fn is_own(&self, word: &Word) -> bool {
        let own = Own {
            tree: &self.tree,
            branch: &self.branch,
            path: &self.path,
            task: self.task.as_ref(),
            agent: self.agent,
        };
        own.is_named(word)
    }

    /// The task that a word means: the own one, or one that is named by its id.
    pub fn task_meant(&self, word: &Word) -> Option<TaskId> {
        let own = || self.task.clone().filter(|_| self.is_own(word));
        own().or_else(|| word.task_id())
    }

    /// The own task, with the claim on it. Without one there is nothing to act on.
    pub fn permits_task(&self, given: Option<&Word>) -> Result<(), NotAllowed> {
        match (given, &self.task) {
            (Some(given), own) if own.is_none() || !self.is_own(given) => {
                Err(NotAllowed::OtherTask {
                    own: own.clone(),
                    given: given.clone(),
                })
            }
            (_, Some(_)) if self.token.is_some() => Ok(()),
            _ => Err(NotAllowed::NoTask),
        }
    }

    /// The own tree, by everything that it is called.
    pub fn permits_tree(&self, given: Option<&str>) -> Result<(), NotAllowed> {
        let Some(given) = given else { return Ok(()) };
        match given.parse::<Word>().is_ok_and(|word| self.is_own(&word)) {
            true => Ok(()),
            false => Err(NotAllowed::OtherTree {
                own: self.tree.clone(),
                given: given.to_owned(),
            }),
        }
    }
}

impl From<NotAllowed> for Failure {
    fn from(refusal: NotAllowed) -> Self {
        let message = refusal.to_string();
        match refusal.hint() {
            Some(hint) => Self::new("no_mandate", exit::REFUSED, message).hint(hint),
            None => Self {
                message,
                ..Self::not_allowed_inside()
            },
        }
    }
}
