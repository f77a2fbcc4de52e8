//! Landings: one attempt each to bring a tree's commits to the target.
//!
//! A landing goes `queued -> testing -> moving` and ends as one of the final states. `moving` is the intent: from then on
//! the target's ref, its index and its files may be half-way, and the next process compares the ref with the recorded
//! (old, new) before anything else.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::choice::{choice, words};
use crate::error_code::ErrorCode;
use crate::id::{LandingId, TaskId, Token, TreeId};
use crate::kept_change::KeptChange;
use crate::name::{SessionName, TreeName};
use crate::session::ProcessIdentity;
use crate::signature::Signature;
use crate::tree::Tree;

words! {
    /// Where a landing stands.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LandingStatus {
        Queued = "queued",
        Testing = "testing",
        /// The target is being moved to its candidate.
        Moving = "moving",
        Landed = "landed",
        /// The target has it all already.
        NothingToLand = "nothing_to_land",
        Conflict = "conflict",
        /// The gate said no.
        Red = "red",
        /// Something has to be done first; the reason says what.
        Refused = "refused",
        /// Taken out of the queue.
        Dropped = "dropped",
    }
}

impl Strategy {
    /// True if one new commit lands, which needs a message; otherwise commits land with their own.
    pub fn makes_one_commit(self) -> bool {
        matches!(self, Self::Squash | Self::Merge)
    }
}

impl LandingStatus {
    /// True until it has ended.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Testing | Self::Moving)
    }
}

choice! {
    /// How commits reach the target.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Strategy {
        /// One new commit with everything.
        #[default]
        Squash = "squash",
        /// A merge commit, always.
        Merge = "merge",
        /// Each commit on top of the target.
        Rebase = "rebase",
        /// The commits as they are, or not at all.
        Ff = "ff",
    }
}

/// What moving the target may leave behind if it is cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveIntent {
    pub worker: ProcessIdentity,
    /// The checkout that moves with it, if the target is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<PathBuf>,
    /// The git directory that the ref is moved through: the checkout's own, or the common one.
    pub git_dir: PathBuf,
    /// Where the new files wait, and later the old ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<PathBuf>,
    /// Lock files that a killed git may leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<PathBuf>,
}

/// A gate that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReceipt {
    /// What it was run for: a fingerprint of git tree, command and environment.
    pub key: String,
    /// The git tree that was tested.
    pub tree: String,
    pub command: String,
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// How often it was run; more than one means that it was red first.
    pub attempts: u32,
    /// True when an earlier run's word was taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}

/// Why a landing did not happen, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub code: ErrorCode,
    pub message: String,
    /// The command that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Paths that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

words! {
    /// Why a landing takes another one back.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RevertCause {
        /// A person or an agent asked for it by name.
        Asked = "asked",
        /// It is a part of an undo.
        Undo = "undo",
        /// The check after the landing failed.
        Check = "check",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landing {
    pub id: LandingId,
    pub tree: TreeName,
    #[serde(default)]
    pub tree_id: TreeId,
    pub task: Option<TaskId>,
    /// The tree's head that it took; of a revert: the landing's commit.
    pub head: String,
    pub target: String,
    #[serde(default)]
    pub strategy: Strategy,
    /// The landing that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<LandingId>,
    /// Why it takes that one back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert_cause: Option<RevertCause>,
    /// The landing that took this one back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverted_by: Option<LandingId>,
    pub old_tip: Option<String>,
    /// What the candidate was made on top of: the target before, or what the remote had on top of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<String>,
    pub new_tip: Option<String>,
    pub status: LandingStatus,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When it was last touched.
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_by: Option<SessionName>,
    /// The process that waits for it and works the queue meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiter: Option<ProcessIdentity>,
    /// The token of the task's claim, for its completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_token: Option<Token>,
    /// The message of the commit that lands, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What is reported when its task is completed by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// True when the tree shall stay whatever the configuration says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// True when the work goes on after it: its task stays as it is, and so does its tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interim: bool,
    /// True when an agent asked for it, or its end did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_agent: bool,
    /// True when the supervisor of an agent queued it at the agent's end: what a conflict or failed tests mean for the task is
    /// decided there, so the claim stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supervised: bool,
    /// What spoke against it when somebody landed it all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
    /// Set while the target is being moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<MoveIntent>,
    /// The gate that passed for exactly what landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateReceipt>,
    /// Whether what landed is signed, where the user wants that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// Why it did not land.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The output of its last gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// What was cleaned up afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
    /// Changes of the user's that it took out of the checkout and could not put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_changes: Vec<KeptChange>,
}

impl Landing {
    /// A landing of `head` of a tree, about to be queued.
    pub fn new(id: LandingId, tree: &Tree, head: String, now: Timestamp) -> Self {
        Self {
            id,
            tree: tree.name.clone(),
            tree_id: tree.id,
            task: tree.task.clone(),
            head,
            target: tree.target.clone(),
            strategy: Strategy::default(),
            reverts: None,
            revert_cause: None,
            reverted_by: None,
            old_tip: None,
            onto: None,
            new_tip: None,
            status: LandingStatus::Queued,
            queued_at: now,
            updated_at: now,
            queued_by: None,
            waiter: None,
            task_token: None,
            message: None,
            report: None,
            keep: false,
            interim: false,
            by_agent: false,
            supervised: false,
            forced: None,
            intent: None,
            gate: None,
            signature: None,
            conflicts: Vec::new(),
            reason: None,
            log: None,
            cleanup: None,
            kept_changes: Vec::new(),
        }
    }

    /// True for one that landed, or had nothing to land, and whose process did not come to what follows from it.
    pub fn is_unsettled(&self) -> bool {
        use LandingStatus::{Landed, NothingToLand};
        matches!(self.status, Landed | NothingToLand) && self.cleanup.is_none()
    }
}

/// What a landing cleaned up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleanup {
    /// `trashed`, `already_gone`, `absent` or `kept`.
    pub directory: String,
    /// `deleted`, `kept_unmerged`, `kept_by_policy`, `absent` or `kept`.
    pub branch: String,
    /// `removed` (into the trash) or `kept`.
    pub record: String,
    /// `completed`, `reopened` (by a revert), `kept` or `none`.
    pub task: String,
    /// Why something was kept that would have gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many ignored files went with the directory.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ignored: u64,
    /// How to get the directory back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What happens to a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandingInput {
    /// A candidate was made on top of `old_tip`, and its gate runs.
    Test {
        old_tip: String,
        /// What the candidate was made on top of.
        onto: String,
        new_tip: String,
    },
    /// Everything agrees: the target is about to be moved from `old_tip` to `new_tip`.
    Move {
        old_tip: String,
        /// What the candidate was made on top of.
        onto: String,
        /// What becomes the tip.
        new_tip: String,
        /// What moving it may leave behind.
        intent: Box<MoveIntent>,
        /// The gate that passed for it.
        gate: Option<Box<GateReceipt>>,
        /// What became of its signature.
        signature: Option<Signature>,
    },
    /// The target moved to the candidate.
    Land,
    /// The target moved elsewhere, or one ahead was red: to the queue again.
    Requeue,
    /// The target has it all already.
    NothingToLand,
    /// It does not merge.
    Conflict { paths: Vec<String> },
    /// The gate said no.
    Red { error: String, log: Option<PathBuf> },
    /// Something has to be done first.
    Refuse(Reason),
    /// Somebody took it out.
    Drop,
    /// What was cleaned up, recorded afterwards.
    CleanedUp(Cleanup),
    /// A change of the user's was not put back.
    Kept(KeptChange),
    /// Another landing took it back.
    Reverted { by: LandingId },
}

/// A move that the states don't allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("landing {id} is {}: it can't take {input:?}", .from.as_str())]
pub struct LandingRefusal {
    pub id: LandingId,
    pub from: LandingStatus,
    pub input: Box<LandingInput>,
}
