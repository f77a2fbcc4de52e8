//! The queue's lease: who works it, until when, and whether it is paused.
//!
//! The token grows with every take and never falls. It is also written into git (the fence), so a holder that wakes up
//! late can't move the target: its transaction verifies a token that is not the newest any more.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::Token;
use crate::name::SessionName;
use crate::session::{ProcessIdentity, ProcessState};

/// Who works the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueHolder {
    pub process: ProcessIdentity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    pub acquired_at: Timestamp,
    /// Until when nobody may take over.
    pub expires_at: Timestamp,
}

impl QueueHolder {
    /// Whether its lease still excludes another process; `state` is what is known of its own.
    pub(crate) fn excludes(
        &self,
        taker: &ProcessIdentity,
        state: ProcessState,
        now: Timestamp,
    ) -> bool {
        self.process != *taker && state != ProcessState::Gone && now < self.expires_at
    }
}

/// The end of a lease that begins now.
pub(crate) fn until(now: Timestamp, ttl: SignedDuration) -> Timestamp {
    now.checked_add(ttl).unwrap_or(Timestamp::MAX)
}

/// Why nothing lands for the time being.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePause {
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionName>,
    pub at: Timestamp,
}

/// The queue as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    pub token: Token,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<QueueHolder>,
    /// Set while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<QueuePause>,
    /// Who keeps house beside it: a lease of its own, on the one record that a repository has one of.
    #[serde(default, skip_serializing_if = "Maintenance::is_unused")]
    pub maintenance: Maintenance,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    pub token: Token,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<QueueHolder>,
}

impl Maintenance {
    /// True before anybody ever took it.
    pub fn is_unused(&self) -> bool {
        *self == Self::default()
    }
}

/// What is asked of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueInput {
    Take {
        process: ProcessIdentity,
        session: Option<SessionName>,
        /// For how long before others may take over.
        ttl: SignedDuration,
        /// What is known of the holder's process.
        holder: ProcessState,
    },
    Renew {
        token: Token,
        ttl: SignedDuration,
    },
    Release {
        token: Token,
    },
    Pause(QueuePause),
    /// Let things land again.
    Resume,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueRefusal {
    #[error("process {} is running the queue", .holder.process.pid)]
    Held { holder: Box<QueueHolder> },
    /// Another one took over.
    #[error("another process took over the queue (token {current}, not {given})")]
    Stale {
        /// The token that came.
        given: Token,
        current: Token,
    },
}
