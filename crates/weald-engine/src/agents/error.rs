//! Why something did not happen to an agent.

use std::io;
use std::path::{Path, PathBuf};

use weald_core::Timestamp;
use weald_core::agent::AgentId;
use weald_core::agent_rules::AgentRefusal;
use weald_core::id::TaskId;
use weald_core::name::{SessionName, TreeName};
use weald_core::races::RaceRefusal;
use weald_core::session::SessionTaken;
use weald_core::store::StoreError;
use weald_core::task_rules::TaskRefusal;
use weald_sandbox::SandboxError;

use super::drivers::DriverError;
use crate::landing::LandError;
use crate::sessions::SessionError;
use crate::tasks::TaskError;
use crate::trees::TreeError;

/// Why something did not happen to an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] AgentRefusal),
    /// Its task says no.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Its session says no.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Its tree says no.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Its landing says no.
    #[error(transparent)]
    Land(#[from] LandError),
    /// Its driver says no.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The sandbox says no.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A race says no.
    #[error(transparent)]
    Race(#[from] RaceRefusal),
    #[error("there is no agent {name}")]
    NotFound { name: String },
    /// Somebody works in the tree.
    #[error("{program} runs in tree {tree} (process {pid})")]
    TreeBusy {
        tree: TreeName,
        program: String,
        pid: u32,
    },
    /// It has no tree yet, or no more.
    #[error("agent {agent} has no tree")]
    NoTree { agent: String },
    /// Somebody works on the task.
    #[error("task {task} is worked on by {owner} since {}{}", .since.strftime("%Y-%m-%d %H:%M:%SZ"), as_agent(.agent))]
    Working {
        task: TaskId,
        owner: SessionName,
        since: Timestamp,
        agent: Option<AgentId>,
    },
    /// There is no main checkout to work in.
    #[error("{} is no main checkout with a .git of its own", .path.display())]
    NoCheckout {
        /// What was looked at.
        path: PathBuf,
    },
    /// Another agent works in the main checkout.
    #[error("agent {agent} works in the main checkout, on task {task}")]
    MainTaken { agent: AgentId, task: TaskId },
    /// Another agent works under the name.
    #[error("agent {agent} works under the name {name} already")]
    NameTaken { name: SessionName, agent: AgentId },
    /// A file of the agent can't be used.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// This process can't be identified.
    #[error("this process can't be identified: /proc can't be read")]
    NoIdentity,
}

fn as_agent(agent: &Option<AgentId>) -> String {
    agent.map_or(String::new(), |id| format!(" (agent {id})"))
}

impl From<TaskRefusal> for AgentError {
    fn from(refusal: TaskRefusal) -> Self {
        Self::Task(refusal.into())
    }
}

impl From<SessionTaken> for AgentError {
    fn from(taken: SessionTaken) -> Self {
        Self::Session(taken.into())
    }
}

/// Joins a path with what went wrong there.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> AgentError + '_ {
    move |source| AgentError::File {
        path: path.to_owned(),
        source,
    }
}
