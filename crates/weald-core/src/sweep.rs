//! What a sweep may take away, and when the end of a session opens its lock.
//!
//! A lock goes only if all of it holds: every task of the tree has been closed for a day, an earlier cycle saw the same
//! closing, and everybody who could be at work there is proven dead. Whatever is not known keeps the lock.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::objections::Contents;
use crate::session::Liveness;
use crate::task::{Task, TaskStatus};
use crate::tree::{Tree, TreeLock, UnlockMark};

/// For how long a task must be closed.
pub const CLOSED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Who locks a tree that its profile locks.
pub const AUTOMATIC: &str = "weald";

/// Somebody who may be at work in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// In words: `session alice`.
    pub who: String,
    pub liveness: Liveness,
}

/// What is known about a tree that is locked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LockEvidence {
    /// The tasks that were worked on in it, or that its lock is for.
    pub tasks: Vec<Task>,
    /// The lock's owner, what refers to the tree, and what runs in it.
    pub witnesses: Vec<Witness>,
    /// A lock that git knows and weald does not.
    pub foreign_lock: Option<String>,
}

/// What becomes of a lock in this cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockVerdict {
    Unlock,
    /// It may go in the next cycle.
    Mark(UnlockMark),
    Keep(KeptLock),
}

/// Why a lock stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptLock {
    /// The tree is being removed.
    Removing,
    /// No task says when the work in it was over.
    NoTask,
    /// A task is open.
    Open(TaskId, TaskStatus),
    /// Nobody knows when a task was closed.
    ClosedUnknown(TaskId),
    /// A task was closed less than a day ago.
    ClosedLately(TaskId, Timestamp),
    Alive(String),
    Unknown(String),
    /// Somebody locked it with git.
    Foreign(String),
    /// An earlier cycle marked it, not long enough ago for this to be the next one.
    Marked(Timestamp),
}

impl KeptLock {
    /// A stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Removing => "removing",
            Self::NoTask => "no_task",
            Self::Open(..) => "task_open",
            Self::ClosedUnknown(_) => "closed_unknown",
            Self::ClosedLately(..) => "closed_lately",
            Self::Alive(_) => "alive",
            Self::Unknown(_) => "unknown",
            Self::Foreign(_) => "git_lock",
            Self::Marked(_) => "marked",
        }
    }
}

impl fmt::Display for KeptLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removing => write!(f, "it is being removed"),
            Self::NoTask => write!(f, "it has no closed task"),
            Self::Open(task, status) => write!(f, "task {task} is {status}"),
            Self::ClosedUnknown(task) => write!(f, "it is unknown when task {task} was closed"),
            Self::ClosedLately(task, at) => {
                write!(f, "task {task} was closed less than 24 h ago ({at})")
            }
            Self::Alive(who) => write!(f, "{who} is alive"),
            Self::Unknown(who) => write!(f, "{who} may be alive"),
            Self::Foreign(reason) => write!(f, "it is locked with git: {reason}"),
            Self::Marked(at) => write!(f, "it was marked at {at}; a later cycle confirms it"),
        }
    }
}

/// Decides on the lock of a tree. `cycle` is the least time between two cycles that count.
pub fn judge_lock(
    tree: &Tree,
    evidence: &LockEvidence,
    cycle: SignedDuration,
    now: Timestamp,
) -> LockVerdict {
    if let Some(why) = stands(tree, evidence, now) {
        return LockVerdict::Keep(why);
    }
    let closed_at = evidence.tasks.iter().filter_map(|task| task.closed_at);
    let Some(closed_at) = closed_at.max() else {
        return LockVerdict::Keep(KeptLock::NoTask);
    };
    match &tree.unlock_marked {
        Some(mark) if mark.closed_at == closed_at && now.duration_since(mark.at) >= cycle => {
            LockVerdict::Unlock
        }
        Some(mark) if mark.closed_at == closed_at && mark.at <= now => {
            LockVerdict::Keep(KeptLock::Marked(mark.at))
        }
        // Another closing than the one that was seen, or a time to come: it begins again.
        _ => LockVerdict::Mark(UnlockMark { closed_at, at: now }),
    }
}

/// What keeps a lock whatever earlier cycles saw.
fn stands(tree: &Tree, evidence: &LockEvidence, now: Timestamp) -> Option<KeptLock> {
    if tree.removing {
        return Some(KeptLock::Removing);
    }
    if evidence.tasks.is_empty() {
        return Some(KeptLock::NoTask);
    }
    for task in &evidence.tasks {
        let id = task.id.clone();
        match task.closed_at {
            _ if !task.status.is_closed() => return Some(KeptLock::Open(id, task.status)),
            None => return Some(KeptLock::ClosedUnknown(id)),
            Some(at) if now.duration_since(at) < CLOSED_FOR => {
                return Some(KeptLock::ClosedLately(id, at));
            }
            Some(_) => {}
        }
    }
    let of = |life| {
        let mut all = evidence.witnesses.iter();
        all.find(|witness| witness.liveness == life)
            .map(|witness| witness.who.clone())
    };
    of(Liveness::Alive)
        .map(KeptLock::Alive)
        .or_else(|| of(Liveness::Unknown).map(KeptLock::Unknown))
        .or_else(|| evidence.foreign_lock.clone().map(KeptLock::Foreign))
}

/// What is known of a locked tree when a session ends.
#[derive(Debug, Clone, PartialEq)]
pub struct EndFacts {
    /// Whether the lock is the session's, or nobody's in particular.
    pub is_own: bool,
    /// Whether the shell is in the tree.
    pub is_in_tree: bool,
    /// The tasks that were worked on in it.
    pub tasks: Vec<Task>,
    /// What it holds that the target does not have.
    pub contents: Contents,
}

/// Why a lock stays when a session ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockStays {
    /// It is somebody else's.
    NotOwn,
    /// The shell is elsewhere.
    Elsewhere,
    /// No task says that the work in it is over.
    NoTask,
    /// A task is neither completed nor cancelled.
    TaskOpen,
    /// It holds what the target does not have.
    Unlanded,
    /// What it holds is unknown.
    Unknown,
}

impl fmt::Display for LockStays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOwn => "the lock is not this session's",
            Self::Elsewhere => "the shell is not in it",
            Self::NoTask => "it has no task that is completed or cancelled",
            Self::TaskOpen => "its task is neither completed nor cancelled",
            Self::Unlanded => "it has work that the target lacks",
            Self::Unknown => "its content is unknown",
        })
    }
}

/// Everything that keeps a lock when its session ends; nothing means that it goes.
pub fn why_lock_stays(facts: &EndFacts) -> Vec<LockStays> {
    let is_over =
        |task: &Task| matches!(task.status, TaskStatus::Completed | TaskStatus::Cancelled);
    let mut found = Vec::new();
    if !facts.is_own {
        found.push(LockStays::NotOwn);
    }
    if !facts.is_in_tree {
        found.push(LockStays::Elsewhere);
    }
    if facts.tasks.is_empty() {
        found.push(LockStays::NoTask);
    }
    if !facts.tasks.iter().all(is_over) {
        found.push(LockStays::TaskOpen);
    }
    match facts.contents {
        Contents::Unknown(_) | Contents::Gone => found.push(LockStays::Unknown),
        Contents::Known {
            staged: 0,
            unstaged: 0,
            untracked: 0,
            commits: 0,
            ..
        } => {}
        Contents::Known { .. } => found.push(LockStays::Unlanded),
    }
    found
}

/// Whether a lock is this session's to open: its own, or one that nobody in particular made. A person without a session
/// owns what nobody in particular made.
pub fn is_own_lock(lock: &TreeLock, session: Option<&str>) -> bool {
    lock.owner == AUTOMATIC || session == Some(lock.owner.as_str())
}

#[cfg(test)]
mod tests;
