//! Sessions: an agent or a person as the registry sees it, and whether it still lives.
//!
//! Liveness has three values. Dead needs proof; whatever can't be proven is unknown, and everything that removes or
//! unlocks treats unknown as alive. The process table and the clock are handed in.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::event::{Change, EventKind};
use crate::id::TaskId;
use crate::name::{SessionName, TreeName};

/// A process that can't be mistaken for a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub host: String,
    /// Which start of the machine.
    pub boot_id: String,
    /// In which pid namespace the number counts.
    pub pid_namespace: String,
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub start_time: u64,
}

/// What a process table can say of a [`ProcessIdentity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// That very process runs (or is stopped, which may change any moment).
    Running,
    /// It is proven gone.
    Gone,
    /// Another host, another namespace, unreadable: nothing can be said.
    Unknown,
}

/// Where processes are looked up. Real: `/proc`. Tests forge one.
pub trait ProcessTable: Send + Sync {
    /// The state of exactly that process.
    fn state(&self, process: &ProcessIdentity) -> ProcessState;
    /// The identity of a running process, if it can be read.
    fn identify(&self, pid: u32) -> Option<ProcessIdentity>;
    /// The numbers of the calling process's ancestors, nearest first.
    fn ancestors(&self) -> Vec<u32>;
    /// What a process calls itself: its name, and the program or script that it runs.
    fn names(&self, _pid: u32) -> Vec<String> {
        Vec::new()
    }
}

/// Whether a session lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    Alive,
    /// No, and there is proof.
    Dead,
    /// Can't tell; treated as alive.
    Unknown,
}

impl Liveness {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }
}

/// What a session left for whoever comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What was done, what is next.
    pub text: String,
    /// When it was saved.
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// What it is called.
    pub name: SessionName,
    /// The process that is the session, if one was named.
    #[serde(default)]
    pub process: Option<ProcessIdentity>,
    /// What it works on.
    #[serde(default)]
    pub task: Option<TaskId>,
    #[serde(default)]
    pub tree: Option<TreeName>,
    /// Where it came from when it went into that tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<PathBuf>,
    #[serde(default)]
    pub note: Option<Note>,
    pub started_at: Timestamp,
    /// The last heartbeat. Heartbeats alone make no event.
    pub last_seen: Timestamp,
    /// When a sweep said that nobody has heard of it; one that was seen since is not silent any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_at: Option<Timestamp>,
    /// When it said goodbye.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
}

/// What is known about a session besides its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// What the process table says, if the session named a process.
    pub process: Option<ProcessState>,
    /// Whether the session holds leases, and whether all of them ran out.
    pub leases: LeaseEvidence,
}

/// What a session's leases say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEvidence {
    None,
    /// At least one is not expired.
    Current,
    Expired,
}

/// Whether the heartbeat is older than `stale_after`.
pub fn is_stale(session: &Session, stale_after: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(session.last_seen) > stale_after
}

/// Decides whether a session lives.
///
/// A named process decides when it can be seen. Without that, a fresh heartbeat is life; a stale one is death only if
/// the session held leases and let all of them run out.
pub fn liveness(
    session: &Session,
    evidence: Evidence,
    stale_after: SignedDuration,
    now: Timestamp,
) -> Liveness {
    if session.ended_at.is_some() {
        return Liveness::Dead;
    }
    let fresh = !is_stale(session, stale_after, now);
    match evidence.process {
        Some(ProcessState::Running) => Liveness::Alive,
        Some(ProcessState::Gone) => Liveness::Dead,
        _ if fresh => Liveness::Alive,
        None if evidence.leases == LeaseEvidence::Expired => Liveness::Dead,
        _ => Liveness::Unknown,
    }
}

/// Registering a name that a living process of another identity holds is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("session {name} is alive as process {pid}")]
pub struct SessionTaken {
    pub name: SessionName,
    pub pid: u32,
}

/// Registers a session, or registers it again: its note and its place stay.
pub fn register(
    before: Option<(&Session, Liveness)>,
    name: SessionName,
    process: Option<ProcessIdentity>,
    now: Timestamp,
) -> Result<(Session, Change), SessionTaken> {
    let mut session = Session {
        name,
        process,
        task: None,
        tree: None,
        back: None,
        note: None,
        started_at: now,
        last_seen: now,
        silent_at: None,
        ended_at: None,
    };
    if let Some((old, life)) = before {
        match (&old.process, &session.process) {
            (Some(theirs), ours) if life == Liveness::Alive && Some(theirs) != ours.as_ref() => {
                return Err(SessionTaken {
                    name: session.name,
                    pid: theirs.pid,
                });
            }
            _ => {}
        }
        session.note = old.note.clone();
        if old.ended_at.is_none() {
            session.task = old.task.clone();
            session.tree = old.tree.clone();
            session.back = old.back.clone();
        }
    }
    Ok((
        session.clone(),
        Change::session(EventKind::SESSION_STARTED, session),
    ))
}

/// A heartbeat that says something new about where the session works.
pub fn moved(
    session: &Session,
    task: Option<TaskId>,
    tree: Option<TreeName>,
    now: Timestamp,
) -> Option<(Session, Change)> {
    let task = task.or_else(|| session.task.clone());
    let tree = tree.or_else(|| session.tree.clone());
    if task == session.task && tree == session.tree {
        return None;
    }
    let next = Session {
        back: session.back.clone().filter(|_| tree == session.tree),
        task,
        tree,
        last_seen: now,
        ..session.clone()
    };
    Some((
        next.clone(),
        Change::session(EventKind::SESSION_MOVED, next),
    ))
}

/// Where a claim, or its end, leads the session: into the task's tree, or back to the main checkout.
pub fn led(
    session: &Session,
    task: Option<TaskId>,
    tree: Option<TreeName>,
    now: Timestamp,
) -> Option<(Session, Change)> {
    if (&task, &tree) == (&session.task, &session.tree) {
        return None;
    }
    let next = Session {
        back: session.back.clone().filter(|_| tree == session.tree),
        task,
        tree,
        last_seen: now,
        ..session.clone()
    };
    let change = Change::session(EventKind::SESSION_MOVED, next.clone());
    Some((next, change))
}

/// Goes into a tree, or leaves it: `place` is the tree and the way back.
pub fn entered(
    session: &Session,
    place: Option<(TreeName, PathBuf)>,
    now: Timestamp,
) -> Option<(Session, Change)> {
    let (tree, back) = place.unzip();
    if (&tree, &back) == (&session.tree, &session.back) {
        return None;
    }
    let next = Session {
        tree,
        back,
        last_seen: now,
        ..session.clone()
    };
    let change = Change::session(EventKind::SESSION_MOVED, next.clone());
    Some((next, change))
}

/// Saves a note with the session.
pub fn noted(session: &Session, text: String, now: Timestamp) -> (Session, Change) {
    let next = Session {
        note: Some(Note { text, at: now }),
        last_seen: now,
        ..session.clone()
    };
    (
        next.clone(),
        Change::session(EventKind::SESSION_NOTED, next),
    )
}

/// Says that nobody has heard of a session, once a silence.
pub fn silent(session: &Session, now: Timestamp) -> Option<(Session, Change)> {
    let is_told = session.silent_at.is_some_and(|at| at > session.last_seen);
    if is_told || session.ended_at.is_some() {
        return None;
    }
    let next = Session {
        silent_at: Some(now),
        ..session.clone()
    };
    let change = Change::session(EventKind::SESSION_STALE, next.clone());
    Some((next, change))
}

/// Says goodbye. Its leases are given back by the caller, in the same transaction.
pub fn ended(session: &Session, now: Timestamp) -> (Session, Change) {
    let next = Session {
        ended_at: Some(now),
        process: None,
        ..session.clone()
    };
    (
        next.clone(),
        Change::session(EventKind::SESSION_ENDED, next),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(seen: i64) -> Session {
        let seen = Timestamp::from_second(seen).unwrap();
        let (mut session, _) = register(None, "alice".parse().unwrap(), None, seen).unwrap();
        session.last_seen = seen;
        session
    }

    #[test]
    fn s1_liveness_has_three_values() {
        let now = Timestamp::from_second(10_000).unwrap();
        let stale_after = SignedDuration::from_mins(5);
        let (fresh, stale) = (session(9_701), session(9_699));
        let cases = [
            (&fresh, None, LeaseEvidence::None, Liveness::Alive),
            (&stale, None, LeaseEvidence::None, Liveness::Unknown),
            (&stale, None, LeaseEvidence::Current, Liveness::Unknown),
            (&stale, None, LeaseEvidence::Expired, Liveness::Dead),
            (&fresh, None, LeaseEvidence::Expired, Liveness::Alive),
            (
                &fresh,
                Some(ProcessState::Gone),
                LeaseEvidence::Current,
                Liveness::Dead,
            ),
            (
                &stale,
                Some(ProcessState::Running),
                LeaseEvidence::Expired,
                Liveness::Alive,
            ),
            (
                &stale,
                Some(ProcessState::Unknown),
                LeaseEvidence::Expired,
                Liveness::Unknown,
            ),
            (
                &fresh,
                Some(ProcessState::Unknown),
                LeaseEvidence::Expired,
                Liveness::Alive,
            ),
        ];
        for (session, process, leases, expected) in cases {
            let found = liveness(session, Evidence { process, leases }, stale_after, now);
            assert_eq!(found, expected, "{process:?} {leases:?}");
        }
        let (gone, _) = ended(&fresh, now);
        let evidence = Evidence {
            process: None,
            leases: LeaseEvidence::None,
        };
        assert_eq!(liveness(&gone, evidence, stale_after, now), Liveness::Dead);
    }
}
