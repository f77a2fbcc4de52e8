//! Why something did not happen to an agent's record.

use weald_core::Timestamp;
use weald_core::agent::AgentId;
use weald_core::agent_rules::AgentRefusal;
use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::session::SessionTaken;
use weald_core::store::StoreError;
use weald_core::task_rules::TaskRefusal;

use crate::sessions::SessionError;
use crate::tasks::TaskError;

/// Why something did not happen to an agent's record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
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
    #[error("there is no agent {name}")]
    NotFound { name: String },
    /// Somebody works on the task.
    #[error("{owner} has been working on task {task} since {}{}", .since.strftime("%Y-%m-%d %H:%M:%SZ"), as_agent(.agent))]
    Working {
        task: TaskId,
        owner: SessionName,
        since: Timestamp,
        agent: Option<AgentId>,
    },
    /// Another agent works in the main checkout.
    #[error("agent {agent} is working in the main checkout, on task {task}")]
    MainTaken { agent: AgentId, task: TaskId },
    /// Another agent works under the name.
    #[error("agent {agent} already has the name {name}")]
    NameTaken { name: SessionName, agent: AgentId },
}

fn as_agent(agent: &Option<AgentId>) -> String {
    agent.map_or(String::new(), |id| format!(" (agent {id})"))
}

impl From<TaskRefusal> for RecordError {
    fn from(refusal: TaskRefusal) -> Self {
        Self::Task(refusal.into())
    }
}

impl From<SessionTaken> for RecordError {
    fn from(taken: SessionTaken) -> Self {
        Self::Session(taken.into())
    }
}
