//! Landings: one attempt each to bring a tree's commits to the target.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Change, EventKind};
use crate::id::{LandingId, TaskId};
use crate::name::TreeName;

/// Where a landing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandingStatus {
    /// In the queue.
    Queued,
    /// Its gate runs.
    Testing,
    /// On the target.
    Landed,
    /// Does not merge.
    Conflict,
    /// The gate said no.
    Red,
    /// Taken out of the queue.
    Dropped,
}

impl LandingStatus {
    /// The name in JSON and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Testing => "testing",
            Self::Landed => "landed",
            Self::Conflict => "conflict",
            Self::Red => "red",
            Self::Dropped => "dropped",
        }
    }
}

/// One landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landing {
    /// Its number.
    pub id: LandingId,
    /// From which tree.
    pub tree: TreeName,
    /// For which task.
    #[serde(default)]
    pub task: Option<TaskId>,
    /// The tree's head that it took.
    pub head: String,
    /// Onto which branch.
    pub target: String,
    /// The target before.
    #[serde(default)]
    pub old_tip: Option<String>,
    /// The target after.
    #[serde(default)]
    pub new_tip: Option<String>,
    /// Where it stands.
    pub status: LandingStatus,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When it was last touched.
    pub updated_at: Timestamp,
}

/// What happens to a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandingInput {
    /// A candidate was made on top of `old_tip`, and its gate runs.
    Test {
        /// The target's tip.
        old_tip: String,
        /// The candidate.
        new_tip: String,
    },
    /// The target moved to the candidate.
    Land,
    /// The target moved elsewhere, or one ahead was red: to the queue again.
    Requeue,
    /// It does not merge.
    Conflict {
        /// Which paths.
        paths: Vec<String>,
    },
    /// The gate said no.
    Red {
        /// In short.
        error: String,
    },
    /// Somebody took it out.
    Drop,
}

/// A move that the states don't allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("landing {id} is {}: it can't take {input:?}", .from.as_str())]
pub struct LandingRefusal {
    /// Which landing.
    pub id: LandingId,
    /// Its status.
    pub from: LandingStatus,
    /// What came.
    pub input: LandingInput,
}

/// Decides one input. Nothing leaves a final state.
pub fn decide(
    landing: &Landing,
    input: LandingInput,
    now: Timestamp,
) -> Result<(Landing, Change), LandingRefusal> {
    use LandingStatus::*;
    let mut next = Landing {
        updated_at: now,
        ..landing.clone()
    };
    let refusal = LandingRefusal {
        id: landing.id,
        from: landing.status,
        input: input.clone(),
    };
    let (status, kind, error) = match (input, landing.status) {
        (LandingInput::Test { old_tip, new_tip }, Queued) => {
            (next.old_tip, next.new_tip) = (Some(old_tip), Some(new_tip));
            (Testing, EventKind::LANDING_TESTING, None)
        }
        (LandingInput::Land, Testing) => (Landed, EventKind::LANDING_LANDED, None),
        (LandingInput::Requeue, Testing) => (Queued, EventKind::LANDING_QUEUED, None),
        (LandingInput::Conflict { paths }, Queued | Testing) => (
            Conflict,
            EventKind::LANDING_CONFLICT,
            Some(paths.join("\n")),
        ),
        (LandingInput::Red { error }, Testing) => (Red, EventKind::LANDING_RED, Some(error)),
        (LandingInput::Drop, Queued | Testing) => (Dropped, EventKind::LANDING_DROPPED, None),
        _ => return Err(refusal),
    };
    next.status = status;
    Ok((next.clone(), Change::landing(kind, next).with_error(error)))
}
