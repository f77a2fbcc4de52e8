//! The task: a goal with a status, an owner and dependencies. The source of truth of the control plane.
//!
//! This module holds the record and the small types in it. What may happen to a task is decided in
//! [`crate::task_rules`]; who may work on it next is [`crate::dependencies`].

use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::choice::words;
use crate::id::{MessageId, TaskId, Token};
use crate::name::{SessionName, TreeName};

/// The longest subject, in characters: it has to fit a line of a table.
pub const MAX_SUBJECT: usize = 500;

words! {
    /// The status of a task, in the order in which a board shows them.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TaskStatus {
        Pending = "pending",
        /// Somebody works on it, or may.
        InProgress = "in_progress",
        /// Done, but its landing conflicts.
        NeedsMerge = "needs_merge",
        /// Waits for a person.
        Blocked = "blocked",
        /// Tried and given up.
        Failed = "failed",
        Completed = "completed",
        /// Not wanted any more.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// True for the states in which nobody works on the task any more.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// True for the states whose report is a reason, and not what was done.
    pub fn has_reason(self) -> bool {
        matches!(self, Self::Failed | Self::Blocked | Self::Cancelled)
    }
}

words! {
    /// How soon a task is wanted; P0 first.
    #[derive(Default, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Priority {
        P0 = "P0",
        P1 = "P1",
        #[default]
        P2 = "P2",
        /// When nothing else is left.
        P3 = "P3",
    }
}

impl FromStr for Priority {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|priority| priority.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| "a priority must be P0, P1, P2 or P3".to_owned())
    }
}

/// Who owns a task until when. The token decides; expiry only permits a takeover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The fencing token of this claim.
    pub token: Token,
    pub session: SessionName,
    pub acquired_at: Timestamp,
    /// From when on somebody else may take over.
    pub expires_at: Timestamp,
}

impl Lease {
    /// True when somebody else may take over. The holder may still go on until somebody does.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

/// Where the plan of a task that needs one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanApproval {
    /// A plan is wanted, none was sent.
    Required,
    Submitted,
    Approved,
    Rejected,
}

/// How a task's tree was dealt with at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closeout {
    pub action: String,
    pub reason: String,
    pub at: Timestamp,
}

/// One task, as stored and as printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// What it is called.
    pub id: TaskId,
    pub subject: String,
    #[serde(default)]
    pub description: String,
    pub status: TaskStatus,
    #[serde(default)]
    pub priority: Priority,
    /// Who works on it, or finished it.
    pub owner: Option<SessionName>,
    /// The tree bound to it.
    pub worktree: Option<TreeName>,
    /// The tree that was bound before.
    pub last_worktree: Option<TreeName>,
    /// What has to be completed before.
    #[serde(default)]
    pub blocked_by: Vec<TaskId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When anything in it changed.
    pub updated_at: Timestamp,
    /// When it was completed, failed or cancelled; absent while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// What has to hold for it to be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub acceptance: String,
    /// Free words to filter by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The board or epic it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Set when a plan has to be approved before the task can be completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_approval: Option<PlanApproval>,
    /// The message that holds its newest plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_message: Option<MessageId>,
    /// The report with which it was finished, failed, cancelled or blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// What its work waits for before it can land; nobody takes it meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<String>,
    /// How its tree ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closeout: Option<Closeout>,
    /// The last token given out for it.
    #[serde(default)]
    pub token: Token,
    /// Who holds it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// Fields that weald does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Task {
    /// Names the branch that its work starts from and lands on; the empty text takes it away.
    pub fn set_base_branch(&mut self, branch: String) {
        match branch.is_empty() {
            true => self.extra.remove("base_branch"),
            false => self.extra.insert("base_branch".to_owned(), branch.into()),
        };
    }

    /// A pending task without dependencies.
    pub fn new(id: TaskId, subject: impl Into<String>, now: Timestamp) -> Self {
        Self {
            id,
            subject: subject.into(),
            description: String::new(),
            status: TaskStatus::Pending,
            priority: Priority::default(),
            owner: None,
            worktree: None,
            last_worktree: None,
            blocked_by: Vec::new(),
            created_at: now,
            updated_at: now,
            closed_at: None,
            acceptance: String::new(),
            labels: Vec::new(),
            plan: None,
            plan_approval: None,
            plan_message: None,
            report: None,
            parked: None,
            closeout: None,
            token: Token(0),
            lease: None,
            extra: Map::new(),
        }
    }

    /// The part of "ready" that the task itself shows: pending and unowned. Its dependencies are the other part.
    pub fn is_open(&self) -> bool {
        self.status == TaskStatus::Pending && self.owner.is_none()
    }

    /// True for one in progress that nobody owns or holds, and that waits for nobody: a binding started it.
    pub fn is_nobodys(&self) -> bool {
        let is_free = self.owner.is_none() && self.lease.is_none() && self.parked.is_none();
        self.status == TaskStatus::InProgress && is_free
    }

    /// True when the lease has run out and a claim may take it over.
    pub fn is_abandoned(&self, now: Timestamp) -> bool {
        self.status == TaskStatus::InProgress
            && self
                .lease
                .as_ref()
                .is_some_and(|lease| lease.is_expired(now))
    }
}
