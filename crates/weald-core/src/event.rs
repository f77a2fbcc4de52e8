//! Events: one fact each, written in the same transaction as the change it describes.
//!
//! A [`Change`] is what a decision hands to the store; the store stamps it into an [`Event`]. The after-image in it is
//! the whole new record, so replaying the log from the start gives the tables again. That is also how the store writes
//! the tables: it applies the images of a change and nothing else, so state and log can't disagree.
//!
//! Kinds are text and not an enum: an older weald must be able to carry what a newer one wrote.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::id::{Seq, TaskId, Token};
use crate::landing::Landing;
use crate::message::Message;
use crate::name::{SessionName, TreeName};
use crate::queue::Queue;
use crate::session::Session;
use crate::task::Task;
use crate::tree::Tree;

/// What happened, as a dotted name. Names of newer versions are kept as they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventKind(Cow<'static, str>);

macro_rules! event_kinds {
    ($($constant:ident = $name:literal),* $(,)?) => {
        impl EventKind {
            $(
                #[doc = concat!("`", $name, "`")]
                pub const $constant: Self = Self(Cow::Borrowed($name));
            )*

            /// Every kind of this version.
            pub const ALL: &'static [Self] = &[$(Self::$constant),*];
        }
    };
}

event_kinds! {
    TASK_CREATED = "task.created",
    TASK_IMPORTED = "task.imported",
    TASK_EDITED = "task.edited",
    TASK_PLAN = "task.plan",
    TASK_CLAIMED = "task.claimed",
    TASK_TAKEN_OVER = "task.taken_over",
    TASK_RENEWED = "task.renewed",
    TASK_RELEASED = "task.released",
    TASK_STARTED = "task.started",
    TASK_COMPLETED = "task.completed",
    TASK_FAILED = "task.failed",
    TASK_CANCELLED = "task.cancelled",
    TASK_BLOCKED = "task.blocked",
    TASK_PARKED = "task.parked",
    TASK_NEEDS_MERGE = "task.needs_merge",
    TASK_REOPENED = "task.reopened",
    TASK_BOUND = "task.bound",
    TASK_UNBOUND = "task.unbound",
    TASK_CLOSEOUT = "task.closeout",
    TREE_CREATE_BEFORE = "tree.create.before",
    TREE_CREATE_AFTER = "tree.create.after",
    TREE_CREATE_FAILED = "tree.create.failed",
    TREE_ADOPTED = "tree.adopted",
    TREE_KEPT = "tree.kept",
    TREE_UNKEPT = "tree.unkept",
    TREE_LANDED = "tree.landed",
    TREE_BROKEN = "tree.broken",
    TREE_REPAIRED = "tree.repaired",
    TREE_REMOVE_BEFORE = "tree.remove.before",
    TREE_REMOVE_AFTER = "tree.remove.after",
    TREE_REMOVE_FAILED = "tree.remove.failed",
    TREE_FORGOTTEN = "tree.forgotten",
    TREE_TRASHED = "tree.trashed",
    TREE_RESTORED = "tree.restored",
    TREE_LOCKED = "tree.locked",
    TREE_UNLOCKED = "tree.unlocked",
    TREE_UNLOCK_MARKED = "tree.unlock_marked",
    TREE_IMPORTED = "tree.imported",
    TREE_RUN_BEFORE = "tree.run.before",
    TREE_RUN_AFTER = "tree.run.after",
    TREE_RUN_TIMEOUT = "tree.run.timeout",
    TREE_ENTERED = "tree.entered",
    TREE_SYNCED = "tree.synced",
    TREE_RETARGETED = "tree.retargeted",
    TREE_CLOSEOUT = "tree.closeout",
    TREE_APPROVED = "tree.approved",
    TREE_PORTS = "tree.ports",
    TREE_EVICTED = "tree.evicted",
    TREE_SETUP_AFTER = "tree.setup.after",
    TREE_SETUP_FAILED = "tree.setup.failed",
    LANDING_QUEUED = "landing.queued",
    LANDING_TESTING = "landing.testing",
    LANDING_MOVING = "landing.moving",
    LANDING_LANDED = "landing.landed",
    LANDING_NOTHING = "landing.nothing_to_land",
    LANDING_CONFLICT = "landing.conflict",
    LANDING_RED = "landing.red",
    LANDING_REFUSED = "landing.refused",
    LANDING_DROPPED = "landing.dropped",
    LANDING_CLEANED = "landing.cleaned",
    LANDING_KEPT_CHANGES = "landing.kept_changes",
    LANDING_REVERTED = "landing.reverted",
    QUEUE_TAKEN = "queue.taken",
    QUEUE_RENEWED = "queue.renewed",
    QUEUE_RELEASED = "queue.released",
    QUEUE_PAUSED = "queue.paused",
    QUEUE_RESUMED = "queue.resumed",
    AGENT_SPAWNED = "agent.spawned",
    AGENT_PLACED = "agent.placed",
    AGENT_SUPERVISED = "agent.supervised",
    AGENT_STARTED = "agent.started",
    AGENT_OBSERVED = "agent.observed",
    AGENT_WANTED = "agent.wanted",
    AGENT_PAUSED = "agent.paused",
    AGENT_LIMITED = "agent.limited",
    AGENT_RESUMED = "agent.resumed",
    AGENT_SILENT = "agent.silent",
    AGENT_STALLED = "agent.stalled",
    AGENT_ACTIVE = "agent.active",
    AGENT_REPORTED = "agent.reported",
    AGENT_JUDGED = "agent.judged",
    AGENT_FINISHING = "agent.finishing",
    AGENT_EXITED = "agent.exited",
    AGENT_CRASHED = "agent.crashed",
    MESSAGE_SENT = "message.sent",
    MESSAGE_READ = "message.read",
    MESSAGE_ANSWERED = "message.answered",
    SESSION_STARTED = "session.started",
    SESSION_MOVED = "session.moved",
    SESSION_NOTED = "session.noted",
    SESSION_STALE = "session.stale",
    SESSION_ENDED = "session.ended",
    MAINTENANCE_TAKEN = "maintenance.taken",
    MAINTENANCE_RENEWED = "maintenance.renewed",
    MAINTENANCE_RELEASED = "maintenance.released",
    CLEAN_BEGUN = "clean.begun",
    ORPHAN_TRASHED = "orphan.trashed",
    OPERATION_UNDONE = "operation.undone",
    SOURCE_TOLD = "source.told",
    SOURCE_FAILED = "source.failed",
    LOG_LOST = "log.lost",
    REGISTRY_REBUILT = "registry.rebuilt",
    REGISTRY_RECOVERED = "registry.recovered",
}

impl EventKind {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for EventKind {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The whole new record of everything a change touched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct After {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<Landing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
}

/// A change before it is written: an event without place, time and actor.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub kind: EventKind,
    pub token: Option<Token>,
    /// Which task it is about.
    pub task: Option<TaskId>,
    /// Which tree it is about.
    pub tree: Option<TreeName>,
    pub after: After,
    /// What went wrong, for the `failed` kinds.
    pub error: Option<String>,
    /// What else a reader should know: paths, where no record has them.
    pub note: Option<String>,
    /// The event that began the operation of which this is a part, or which this takes back.
    pub operation: Option<Seq>,
}

impl Change {
    /// A fact that changes no record.
    pub fn fact(kind: EventKind) -> Self {
        Self {
            kind,
            token: None,
            task: None,
            tree: None,
            after: After::default(),
            error: None,
            note: None,
            operation: None,
        }
    }

    /// A change of a task.
    pub fn task(kind: EventKind, task: Task) -> Self {
        let mut change = Self::fact(kind);
        change.task = Some(task.id.clone());
        change.tree = task.worktree.clone();
        change.after.task = Some(task);
        change
    }

    /// A change of a tree.
    pub fn tree(kind: EventKind, tree: Tree) -> Self {
        let mut change = Self::fact(kind);
        change.tree = Some(tree.name.clone());
        change.task = tree.task.clone();
        change.after.tree = Some(tree);
        change
    }

    /// A change of a landing.
    pub fn landing(kind: EventKind, landing: Landing) -> Self {
        let mut change = Self::fact(kind);
        change.tree = Some(landing.tree.clone());
        change.task = landing.task.clone();
        change.after.landing = Some(landing);
        change
    }

    /// A change of the queue's lease.
    pub fn queue(kind: EventKind, queue: Queue) -> Self {
        let mut change = Self::fact(kind);
        change.after.queue = Some(queue);
        change
    }

    /// A change of a session.
    pub fn session(kind: EventKind, session: Session) -> Self {
        let mut change = Self::fact(kind);
        change.tree = session.tree.clone();
        change.task = session.task.clone();
        change.after.session = Some(session);
        change
    }

    /// A change of an agent.
    pub fn agent(kind: EventKind, agent: Agent) -> Self {
        let mut change = Self::fact(kind);
        change.tree = agent.tree.clone();
        change.task = Some(agent.task.clone());
        change.token = Some(agent.token);
        change.after.agent = Some(agent);
        change
    }

    /// A change of a message.
    pub fn message(kind: EventKind, message: Message) -> Self {
        let mut change = Self::fact(kind);
        change.task = message.task.clone();
        change.after.message = Some(message);
        change
    }

    /// The same with the task it also changed.
    pub fn and_task(mut self, task: Task) -> Self {
        self.task = Some(task.id.clone());
        self.after.task = Some(task);
        self
    }

    /// The same under a claim's token.
    pub fn with_token(mut self, token: Option<Token>) -> Self {
        self.token = token;
        self
    }

    /// The same as a part of a larger operation, or as what takes one back.
    pub fn part_of(mut self, operation: Option<Seq>) -> Self {
        self.operation = operation;
        self
    }

    /// The same with what no record says.
    pub fn with_note(mut self, note: String) -> Self {
        self.note = Some(note);
        self
    }

    /// The same with what went wrong.
    pub fn with_error(mut self, error: Option<String>) -> Self {
        self.error = error;
        self
    }
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub seq: Seq,
    /// When the transaction wrote it.
    pub time: Timestamp,
    /// Who did it; nobody for weald's own upkeep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<SessionName>,
    pub kind: EventKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeName>,
    #[serde(default)]
    pub after: After,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else a reader should know: paths, where no record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The event that began the operation of which this is a part, or which this takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Seq>,
}

impl Event {
    pub fn stamp(change: Change, seq: Seq, time: Timestamp, actor: Option<SessionName>) -> Self {
        Self {
            seq,
            time,
            actor,
            kind: change.kind,
            token: change.token,
            task: change.task,
            tree: change.tree,
            after: change.after,
            error: change.error,
            note: change.note,
            operation: change.operation,
        }
    }
}
