//! Sessions: an agent or a person as the registry sees it, and whether it still lives.
//!
//! Liveness has three values. Dead needs proof; whatever can't be proven is unknown, and everything that removes or
//! unlocks treats unknown as alive. The process table and the clock are handed in.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::choice::words;
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

words! {
    /// Whether a session lives.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Liveness {
        Alive = "alive",
        /// No, and there is proof.
        Dead = "dead",
        /// Unknown; treated as alive.
        Unknown = "unknown",
    }
}

/// What a session left for the next one.
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
    pub process: Option<ProcessIdentity>,
    /// What it works on.
    pub task: Option<TaskId>,
    pub tree: Option<TreeName>,
    /// Where it came from when it went into that tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<PathBuf>,
    pub note: Option<Note>,
    pub started_at: Timestamp,
    /// The last heartbeat. Heartbeats alone make no event.
    pub last_seen: Timestamp,
    /// When a sweep said that nobody has heard of it; one that was seen since is not silent any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_at: Option<Timestamp>,
    /// When it said goodbye.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_rules::{ended, register};

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
