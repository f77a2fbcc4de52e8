//! Why a task does not move: the facts, and words for them.

use jiff::Timestamp;

use crate::dependencies::Blockers;
use crate::id::{TaskId, Token};
use crate::name::SessionName;
use crate::task::{MAX_SUBJECT, PlanApproval, TaskStatus};

/// Why a task did not move.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TaskRefusal {
    /// The status does not allow it.
    #[error("task {task} is {}", if .from == .to { format!("already {from}") } else { format!("{from} and can't become {to}") })]
    IllegalMove {
        task: TaskId,
        from: TaskStatus,
        to: TaskStatus,
        /// What would be allowed.
        legal: Vec<TaskStatus>,
    },
    /// Another claim came later, or this one was given back.
    #[error("token {given} is not valid for task {task}: {}", newer(*.given, *.current))]
    StaleToken {
        task: TaskId,
        /// The token that came.
        given: Token,
        /// The newest one; kept out of messages, or the session that lost the claim would continue with it.
        current: Token,
        /// Who holds it, if anybody.
        holder: Option<SessionName>,
    },
    /// A held task needs its token.
    #[error("task {task} is held by {holder}; this needs the token of that claim")]
    TokenRequired { task: TaskId, holder: SessionName },
    #[error("task {task} is held by {holder} until {}", .until.strftime("%Y-%m-%d %H:%M:%SZ"))]
    Held {
        task: TaskId,
        holder: SessionName,
        /// Until when nobody may take over.
        until: Timestamp,
    },
    /// Somebody else works on it, and the caller's role leaves it that.
    #[error("task {task} is not yours: {holder} works on it")]
    NotYours { task: TaskId, holder: SessionName },
    /// Somebody works on it without a lease.
    #[error("{owner} is working on task {task}")]
    Owned { task: TaskId, owner: SessionName },
    /// Nobody holds it, so there is nothing to renew or to give back.
    #[error("task {task} is not claimed")]
    NotHeld { task: TaskId },
    /// Its dependencies are not done.
    #[error("task {task} is waiting for {}", .blockers)]
    Waiting { task: TaskId, blockers: Blockers },
    /// Its plan is not approved.
    #[error("task {task} needs an approved plan first")]
    PlanNotApproved {
        task: TaskId,
        /// Where the plan stands.
        plan: PlanApproval,
    },
    /// A subject that is empty, too long, more than a line, or reads as another one.
    #[error(
        "a task needs a one-line subject of 1 to {MAX_SUBJECT} characters, without control or bidi characters"
    )]
    BadSubject,
    /// A label that is empty or holds what can't be seen.
    #[error("a label needs 1 to 100 printable characters")]
    BadLabel,
}

/// Why a token is not valid any more, or never was.
pub fn newer(given: Token, current: Token) -> String {
    use std::cmp::Ordering::{Equal, Greater, Less};
    if given == Token(0) {
        return "there was no such claim".to_owned();
    }
    match given.cmp(&current) {
        Equal => "the task was released or closed".to_owned(),
        Less if given != Token(0) => "another claim came later".to_owned(),
        Less | Greater => "there was no such claim".to_owned(),
    }
}
