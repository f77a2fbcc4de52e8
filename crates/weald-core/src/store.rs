//! The store: what a backend has to offer, and what it promises about races.
//!
//! Reads happen in a snapshot, changes in one exclusive transaction. The only way to change state is
//! [`Write::record`]: it stores the after-images of a change and appends its event, so the tables are at any moment
//! what replaying the log would give. (One exception, by name: [`Write::touch_session`].)
//!
//! One conformance suite in `weald-testkit` runs on every backend. It is the contract in executable form.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::{Agent, AgentId};
use crate::event::{After, Change, Event};
use crate::id::{LandingId, MessageId, Seq, TaskId, TreeId};
use crate::landing::Landing;
use crate::message::Message;
use crate::name::{SessionName, TreeName};
use crate::queue::Queue;
use crate::session::Session;
use crate::task::{Task, TaskStatus};
use crate::tree::Tree;

/// The process that holds a `flock` of a file, by the text of `/proc/locks`.
pub fn lock_holder(table: &str, inode: u64) -> Option<u32> {
    let mut lines = table.lines().filter(|line| !line.contains("->"));
    lines.find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let found = fields.get(5)?.rsplit(':').next()?;
        let is_it = fields[1] == "FLOCK" && found.parse() == Ok(inode);
        is_it.then(|| fields[4].parse().ok())?
    })
}

fn holder_text(holder: Option<u32>) -> String {
    let unseen = || "a process that can't be seen from here".to_owned();
    holder.map_or_else(unseen, |pid| format!("process {pid}"))
}

/// A result of the store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why the store did not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer held the store for longer than the limit. Nothing was changed.
    #[error("{} held the store for {}s", holder_text(*.holder), .waited.as_secs())]
    Busy {
        /// How long this one waited.
        waited: Duration,
        /// The process that held it, if it can be seen.
        holder: Option<u32>,
    },
    /// The database was written by a newer weald.
    #[error("the database has schema {found}, this weald supports up to {known}")]
    NewerSchema {
        /// What the database says.
        found: u32,
        /// What this binary knows.
        known: u32,
    },
    /// The database would lie on a file system that several machines share.
    #[error("{} is on {kind}, a network file system, where SQLite loses data", .path.display())]
    NetworkFileSystem {
        path: PathBuf,
        /// As the mount table calls it.
        kind: String,
    },
    /// The database can't be read.
    #[error("{} can't be used: {message}", .path.display())]
    Damaged {
        path: PathBuf,
        /// What the backend says.
        message: String,
    },
    /// The database is gone, and what else is there shows that there was one. An empty one would lose its trees.
    #[error("{} is missing, but this repository's worktrees and log are there", .path.display())]
    Lost { path: PathBuf },
    /// The journal goes on after the end of the database: it is an older copy, or lost its log.
    #[error("the database ends at event {has}, {} at {journal}: it is an older copy, or incomplete", .path.display())]
    Behind {
        path: PathBuf,
        /// The last event in the database.
        has: Seq,
        /// The last event in the journal.
        journal: Seq,
    },
    /// Another database took its place while this process had it open. Nothing was changed.
    #[error("{} was replaced while this process had it open", .path.display())]
    Replaced { path: PathBuf },
    /// The database is on a file system that can only be read. Nothing was changed.
    #[error("{} is on a read-only file system, so nothing can be changed", .path.display())]
    ReadOnly { path: PathBuf },
    /// The repository is a copy of another one. Nothing was changed.
    #[error("{0}")]
    Copy(String),
    /// A file could not be made, opened or written.
    #[error("{}: {source}", .path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The backend failed or its contents make no sense.
    #[error("the store failed: {0}")]
    Backend(String),
}

impl StoreError {
    /// What becomes of an error about a file.
    pub fn file(path: impl Into<PathBuf>) -> impl Fn(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            path: path.clone(),
            source,
        }
    }

    /// Whether there was no room on the disk.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Backend(why) if why.contains("disk is full"))
    }
}

/// How much a commit must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the process or of any other process, at any instruction.
    Process,
    /// Also a power cut: for landings, removals and completions.
    Power,
}

/// A set of tasks to choose from; a filter with several takes what is in any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskClass {
    /// Tasks with this status.
    Status(TaskStatus),
    /// Pending, unowned, every dependency completed.
    Ready,
    /// Pending with a dependency that is not completed, or missing.
    Waiting,
}

impl TaskClass {
    /// What a word means: a status, or what people call a set of them. Nothing for any other word.
    pub fn named(word: &str) -> Vec<Self> {
        match word {
            "ready" => vec![Self::Ready],
            "waiting" => vec![Self::Waiting],
            "blocked" => vec![Self::Status(TaskStatus::Blocked), Self::Waiting],
            "done" => vec![Self::Status(TaskStatus::Completed)],
            word => {
                let mut all = TaskStatus::ALL.into_iter();
                let status = all.find(|status| status.as_str() == word);
                status.map(Self::Status).into_iter().collect()
            }
        }
    }
}

/// In which order tasks come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskOrder {
    /// As they were made.
    #[default]
    Created,
    /// As they are to be claimed: by priority, then age.
    Claim,
}

/// Which tasks are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// In any of these; empty is all.
    pub classes: Vec<TaskClass>,
    /// Owned by this session.
    pub owner: Option<SessionName>,
    pub label: Option<String>,
    pub order: TaskOrder,
    /// At most so many.
    pub limit: Option<u64>,
}

impl TaskFilter {
    pub fn of(class: TaskClass) -> Self {
        Self {
            classes: vec![class],
            ..Self::default()
        }
    }
}

/// Which sessions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSet {
    /// Those that have not ended.
    Open,
    All,
}

/// Which messages are asked for; oldest first, the more urgent before the less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFilter {
    pub to: Option<SessionName>,
    /// Only those that nobody took yet.
    pub unread: bool,
    /// Only requests that nobody answered yet.
    pub pending: bool,
    /// Replies to this request.
    pub reply_to: Option<MessageId>,
    /// At most so many.
    pub limit: Option<u64>,
}

/// Which events are asked for; always in the order of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// The first ones after this place; without it, the last ones of the log.
    pub since: Option<Seq>,
    pub task: Option<TaskId>,
    pub tree: Option<TreeName>,
    /// At most so many.
    pub limit: Option<u64>,
}

impl EventFilter {
    /// The next events after a place, at most as many as `limit` says.
    pub fn after(since: Seq, limit: u64) -> Self {
        Self {
            since: Some(since),
            limit: Some(limit),
            ..Self::default()
        }
    }
}

/// Numbers that are given out once and never again, also after a crash or a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Of tasks. Ids that were brought along count: the next one is above all of them.
    Task,
    Message,
    Tree,
    Landing,
    Agent,
}

impl Counter {
    /// The numbers in a change that must not be given out again.
    pub fn seen_in(after: &After) -> impl Iterator<Item = (Self, u64)> {
        let task = after.task.as_ref().and_then(|task| task.id.counted());
        let message = after.message.as_ref().map(|message| message.id.0);
        let tree = after.tree.as_ref().map(|tree| tree.id.0);
        let landing = after.landing.as_ref().map(|landing| landing.id.0);
        let agent = after.agent.as_ref().map(|agent| agent.id.0);
        let all = [
            (Self::Task, task),
            (Self::Message, message),
            (Self::Tree, tree),
            (Self::Landing, landing),
            (Self::Agent, agent),
        ];
        all.into_iter()
            .filter_map(|(counter, number)| Some((counter, number?)))
    }
}

/// Which agents are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentFilter {
    /// Only those that are not over.
    pub open: bool,
    pub task: Option<TaskId>,
}

impl AgentFilter {
    /// All that are not over.
    pub const OPEN: Self = Self {
        open: true,
        task: None,
    };

    pub fn on(task: &TaskId) -> Self {
        Self {
            open: false,
            task: Some(task.clone()),
        }
    }

    pub fn open_on(task: &TaskId) -> Self {
        Self {
            open: true,
            ..Self::on(task)
        }
    }
}

pub trait TaskReader {
    /// One task. In a write transaction it is locked against others until the end.
    fn task(&self, id: &TaskId) -> Result<Option<Task>>;
    fn tasks(&self, filter: &TaskFilter) -> Result<Vec<Task>>;
    /// How many tasks the filter matches, whatever its limit.
    fn count_tasks(&self, filter: &TaskFilter) -> Result<u64>;
    /// The tasks that name `id` in `blocked_by`, in the order they were made.
    fn dependents(&self, id: &TaskId) -> Result<Vec<TaskId>>;
}

/// Reading sessions and messages.
pub trait SessionReader {
    /// One session, ended ones too.
    fn session(&self, name: &SessionName) -> Result<Option<Session>>;
    fn sessions(&self, which: SessionSet) -> Result<Vec<Session>>;
    fn message(&self, id: MessageId) -> Result<Option<Message>>;
    fn messages(&self, filter: &MessageFilter) -> Result<Vec<Message>>;
}

/// Reading trees and landings.
pub trait TreeReader {
    /// The tree that has or last had this name.
    fn tree(&self, name: &TreeName) -> Result<Option<Tree>>;
    /// A tree by number.
    fn tree_by_id(&self, id: TreeId) -> Result<Option<Tree>>;
    /// All trees, removed ones too, by number.
    fn trees(&self) -> Result<Vec<Tree>>;
    fn landing(&self, id: LandingId) -> Result<Option<Landing>>;
    /// All landings, by number.
    fn landings(&self) -> Result<Vec<Landing>>;
    /// At most so many of them, the newest first.
    fn newest_landings(&self, limit: u64) -> Result<Vec<Landing>>;
    /// Those that have not ended, and those that landed without what follows from that, in the order of the queue.
    fn open_landings(&self) -> Result<Vec<Landing>>;
    /// Those from trees of this name, by number.
    fn landings_of(&self, tree: &TreeName) -> Result<Vec<Landing>>;
    /// The queue's lease. In a write transaction it is locked against others until the end.
    fn queue(&self) -> Result<Queue>;
}

pub trait AgentReader {
    fn agent(&self, id: AgentId) -> Result<Option<Agent>>;
    /// Agents by filter, by number.
    fn agents(&self, filter: &AgentFilter) -> Result<Vec<Agent>>;
}

pub trait EventReader {
    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>>;
    /// The place of the newest event; 0 for an empty log.
    fn last_seq(&self) -> Result<Seq>;
}

/// A consistent view of everything: what one transaction sees does not change under it.
pub trait Read: TaskReader + SessionReader + TreeReader + AgentReader + EventReader {
    /// The store's time. All leases are measured by it; in a fleet it is the server's.
    fn now(&self) -> Timestamp;
}

/// One exclusive transaction. Dropped without [`Write::commit`] it leaves no trace.
pub trait Write: Read {
    /// Applies the after-images of `change` and appends its event. The event's place is known at once, but counts
    /// only after the commit. Places have no gaps and follow the order of commits.
    fn record(&mut self, actor: Option<&SessionName>, change: Change) -> Result<Seq>;

    /// Writes down again what was recorded before, with its own place, time and actor, and raises the counters above the
    /// numbers in it. For a store that is made from a log. A place that is not the next one is refused.
    fn replay(&mut self, event: Event) -> Result<()>;

    /// Makes sure that a counter gives out only numbers above `number`.
    fn raise(&mut self, counter: Counter, number: u64) -> Result<()>;

    /// The first task that a claim may take: ready ones by priority and age, then those whose lease ran out, longest
    /// ago first. Of two transactions at once, each gets another task (or the second waits for the first).
    fn next_claimable(&mut self) -> Result<Option<Task>>;

    /// Takes the next number of a counter. A number taken in a transaction that is dropped may be given again.
    fn next_number(&mut self, counter: Counter) -> Result<u64>;

    /// Notes that a session was seen. Makes no event: a heartbeat is an observation, and replaying it helps nobody.
    /// A session that is not registered is left alone.
    fn touch_session(&mut self, name: &SessionName) -> Result<()>;

    /// Makes the transaction count. When it returns, the change survives what its [`Durability`] says. When it
    /// fails, nothing of it is there.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// A backend. Cheap to share between threads; safe to open from any number of processes.
pub trait Store: Send + Sync {
    fn read(&self) -> Result<Box<dyn Read + '_>>;

    /// Waits for its turn among all writers of all processes, then opens a transaction. Waiting is fair: nobody is
    /// passed over for ever. Gives up with [`StoreError::Busy`].
    fn write(&self, durability: Durability) -> Result<Box<dyn Write + '_>>;

    /// Returns when all that was committed so far outlives a power cut: once for many changes, instead of for each.
    fn sync(&self) -> Result<()>;

    /// Returns as soon as the log is longer than `after`, at the latest after `timeout`, with its length then.
    fn wait(&self, after: Seq, timeout: Duration) -> Result<Seq>;
}

/// A new database that takes the place of another one. Nothing is deleted by it.
pub trait Succession {
    /// Makes the new one whole and durable.
    fn seal(&self) -> Result<()>;

    /// Sets the one in place aside; answers where it, or what was left of it, is now. From here on there is none.
    fn set_aside(&self) -> Result<Option<PathBuf>>;

    /// Puts the new one in place.
    fn put_in_place(self: Box<Self>) -> Result<()>;
}

/// Where the time comes from. Tests turn it by hand.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}
