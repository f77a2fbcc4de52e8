//! Why something did not happen to an agent.

use std::io;
use std::path::{Path, PathBuf};

use weald_core::agent_rules::AgentRefusal;
use weald_core::name::TreeName;
use weald_core::races::RaceRefusal;
use weald_core::session::SessionTaken;
use weald_core::store::StoreError;
use weald_core::task_rules::TaskRefusal;
use weald_sandbox::SandboxError;

use super::drivers::DriverError;
use crate::RecordError;
use weald_control::sessions::SessionError;
use weald_control::tasks::TaskError;
use weald_landing::LandError;
use weald_trees::TreeError;

/// Why something did not happen to an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its record says no.
    #[error(transparent)]
    Record(#[from] RecordError),
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
    /// Somebody works in the tree.
    #[error("{program} is running in worktree {tree} (process {pid})")]
    TreeBusy {
        tree: TreeName,
        program: String,
        pid: u32,
    },
    /// It has no tree yet, or no more.
    #[error("agent {agent} has no worktree")]
    NoTree { agent: String },
    /// There is no main checkout to work in.
    #[error("{} is not a main checkout with its own .git", .path.display())]
    NoCheckout {
        /// What was looked at.
        path: PathBuf,
    },
    /// A file of the agent can't be used.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// This process can't be identified.
    #[error("this process can't be identified: /proc can't be read")]
    NoIdentity,
}

/// What a record may say no to.
macro_rules! by_record {
    ($($refusal:ty),*) => {$(
        impl From<$refusal> for AgentError {
            fn from(refusal: $refusal) -> Self {
                Self::Record(refusal.into())
            }
        }
    )*};
}

by_record!(
    AgentRefusal,
    SessionError,
    SessionTaken,
    StoreError,
    TaskError,
    TaskRefusal
);

/// Joins a path with what went wrong there.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> AgentError + '_ {
    move |source| AgentError::File {
        path: path.to_owned(),
        source,
    }
}
