//! What a run may ask, and for whom it speaks. Decided from the host's own records alone; nothing in a request counts but
//! as something to be compared.

use weald_core::agent::AgentId;
use weald_core::id::{TaskId, Token};
use weald_core::message::MessageType;
use weald_core::name::{SessionName, TreeName};

use super::protocol::{Ask, LandWish, Request};

/// For whom a run speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Its session.
    pub session: SessionName,
    /// Its task, if its tree has one.
    pub task: Option<TaskId>,
    /// The token of the claim that its session has on that task.
    pub token: Option<Token>,
    /// Its tree.
    pub tree: TreeName,
    /// The agent it is the run of.
    pub agent: Option<AgentId>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// It speaks for somebody else.
    #[error("this run speaks for {own}, not for {given}")]
    OtherSession {
        /// For whom it speaks.
        own: SessionName,
        /// What it said.
        given: SessionName,
    },
    /// The token is not its own.
    #[error("token {given} is not the one that this run works under")]
    OtherToken {
        /// What it said.
        given: Token,
    },
    /// The task is not its own.
    #[error("task {given} is not this run's own{}", .own.as_ref().map_or_else(String::new, |own| format!(", {own} is")))]
    OtherTask {
        /// Its own.
        own: Option<TaskId>,
        /// What it asked for.
        given: TaskId,
    },
    /// It has no task.
    #[error("this run has no task: its tree is bound to none, or its session does not hold it")]
    NoTask,
    /// The tree is not its own.
    #[error("{given} is not this run's own tree, {own} is")]
    OtherTree {
        /// Its own.
        own: TreeName,
        /// What it asked for.
        given: String,
    },
    /// Nobody is ended from inside a tree.
    #[error("a run in a tree can't ask others to stop")]
    Shutdown,
}

impl Authority {
    /// Whether a request is this run's to make.
    pub fn permits(&self, request: &Request) -> Result<(), NotAllowed> {
        if let Some(given) = request
            .session
            .as_ref()
            .filter(|given| **given != self.session)
        {
            return Err(NotAllowed::OtherSession {
                own: self.session.clone(),
                given: given.clone(),
            });
        }
        if let Some(given) = request.token.filter(|given| Some(*given) != self.token) {
            return Err(NotAllowed::OtherToken { given });
        }
        match &request.ask {
            Ask::TaskClaim { id }
            | Ask::TaskRenew { id }
            | Ask::TaskDone { id, .. }
            | Ask::TaskFail { id, .. } => self.permits_task(id.as_ref()),
            Ask::Status { tree }
            | Ask::Path { tree, .. }
            | Ask::Diff { tree, .. }
            | Ask::SnapshotCreate { tree, .. }
            | Ask::SnapshotList { tree }
            | Ask::Land(LandWish { tree, .. }) => self.permits_tree(tree.as_deref()),
            Ask::MsgSend {
                kind: MessageType::Shutdown,
                ..
            } => Err(NotAllowed::Shutdown),
            Ask::TaskShow { id: None } if self.task.is_none() => Err(NotAllowed::NoTask),
            Ask::TaskShow { .. }
            | Ask::Overview {}
            | Ask::TaskList { .. }
            | Ask::TaskReady { .. }
            | Ask::MsgSend { .. }
            | Ask::MsgReply { .. }
            | Ask::MsgAnswer { .. }
            | Ask::MsgInbox { .. }
            | Ask::SessionList { .. }
            | Ask::SessionNote { .. }
            | Ask::Beside { .. }
            | Ask::Events { .. } => Ok(()),
        }
    }

    /// The own task, with the claim on it. Without one there is nothing to act on.
    fn permits_task(&self, given: Option<&TaskId>) -> Result<(), NotAllowed> {
        match (given, &self.task) {
            (Some(given), own) if own.as_ref() != Some(given) => Err(NotAllowed::OtherTask {
                own: own.clone(),
                given: given.clone(),
            }),
            (_, Some(_)) if self.token.is_some() => Ok(()),
            _ => Err(NotAllowed::NoTask),
        }
    }

    /// The own tree, by its name or by the own task's.
    fn permits_tree(&self, given: Option<&str>) -> Result<(), NotAllowed> {
        let Some(given) = given else { return Ok(()) };
        let is_task = || {
            let own = self.task.as_ref();
            given
                .parse::<TaskId>()
                .is_ok_and(|given| own == Some(&given))
        };
        match given == self.tree.as_str() || is_task() {
            true => Ok(()),
            false => Err(NotAllowed::OtherTree {
                own: self.tree.clone(),
                given: given.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
