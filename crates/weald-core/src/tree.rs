//! Trees: one managed git worktree each, bound to at most one task.
//!
//! The record; what may happen to it is decided in [`crate::tree_rules`]. An operation on disk is bracketed: `*.before`
//! goes into the log first, and `*.after` or `*.failed` (with the error) only once git has spoken, because only the
//! matching input produces them.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::choice::words;
use crate::id::{TaskId, TreeId};
use crate::name::{SessionName, TreeName};
use crate::ports::PortBlock;
use crate::session::ProcessIdentity;
use crate::setup::SetupRecord;
use crate::task::Closeout;

words! {
    /// How a tree is made.
    #[derive(Default, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TreeKind {
        /// Its own inner repository that borrows objects.
        #[default]
        Sealed = "sealed",
        /// A plain linked worktree.
        Linked = "linked",
    }

    /// Where a tree stands.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TreeStatus {
        /// Announced, not there yet.
        Creating = "creating",
        Active = "active",
        /// Set aside by a person; no clean-up takes it.
        Kept = "kept",
        /// Its work is on the target.
        Landed = "landed",
        /// In the trash, can be restored.
        Trashed = "trashed",
        Removed = "removed",
        /// Something is wrong with it.
        Broken = "broken",
    }
}

/// The commit a tree started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// How it was named.
    #[serde(rename = "ref")]
    pub reference: String,
    pub commit: String,
}

/// Why nobody may remove a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLock {
    pub owner: String,
    pub reason: String,
}

/// What a sweep saw before it takes a lock away: the next one has to see the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlockMark {
    /// When the tree's task was closed, as it was known then.
    pub closed_at: Timestamp,
    /// When it was seen.
    pub at: Timestamp,
}

/// A directory that can't be mistaken for a later one at the same path.
///
/// Two are equal if number and birth time are: device numbers change when a machine starts or a disk is mounted again, so
/// they count only where the file system has no birth times. The id of a file system, which stands here for btrfs and is
/// larger than any device number, always counts: snapshots share numbers and birth times.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct DirectoryIdentity {
    pub device: u64,
    pub inode: u64,
    /// When it was made, in nanoseconds: numbers are given again. `None` where the file system does not say.
    pub born: Option<u64>,
}

impl DirectoryIdentity {
    fn key(&self) -> (u64, Option<u64>, Option<u64>) {
        let is_lasting = self.device > u64::from(u32::MAX);
        let device = (is_lasting || self.born.is_none()).then_some(self.device);
        (self.inode, self.born, device)
    }
}

impl PartialEq for DirectoryIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for DirectoryIdentity {}

impl std::hash::Hash for DirectoryIdentity {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// A command that runs, or ran, in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub session: Option<SessionName>,
    /// The process that watches it; nothing in it outlives that one.
    pub process: ProcessIdentity,
    /// The sandbox's level: `full`, `landlock` or `off`.
    pub level: String,
    pub program: String,
    pub started_at: Timestamp,
}

/// Where a removed tree waits, and what it held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trash {
    pub path: PathBuf,
    /// When it came here.
    pub at: Timestamp,
    /// The last commit of its HEAD, if that could be read.
    pub tip: Option<String>,
    /// What main's branch held then; `None` if it had none.
    pub branch_tip: Option<String>,
    /// The commit that holds what was not committed, if a snapshot was taken.
    pub snapshot: Option<String>,
    /// The task it was bound to.
    pub task: Option<TaskId>,
    /// What the HEAD of a linked tree said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The ports it had; they are others' to take by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortBlock>,
    /// Where it stood before; written by the decision that puts it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TreeStatus>,
}

/// A person's word that exactly this head may land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub head: String,
    pub target: String,
    pub at: Timestamp,
    /// Who, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionName>,
    /// Made with a secret that no agent can read.
    pub seal: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Its number; a name is used again after a removal, a number is not.
    pub id: TreeId,
    /// What it is called.
    pub name: TreeName,
    /// How it is made.
    pub kind: TreeKind,
    pub path: PathBuf,
    /// Its branch in the main repository.
    pub branch: String,
    pub base: Base,
    pub target: String,
    /// Whose tree it is.
    pub task: Option<TaskId>,
    pub status: TreeStatus,
    /// Set while somebody locked it.
    pub locked: Option<TreeLock>,
    /// Set by a sweep that found the lock stale; a new lock begins without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlock_marked: Option<UnlockMark>,
    /// Set between the announcement of a removal and its end.
    #[serde(default)]
    pub removing: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When anybody last worked in it.
    pub last_used_at: Timestamp,
    /// The directory itself, to know it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<DirectoryIdentity>,
    /// The name of its registration in main's `worktrees/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<String>,
    /// What its HEAD held at the last import, and main's branch with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// True while main's branch was moved by somebody else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diverged: bool,
    /// The process that is making or removing it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<ProcessIdentity>,
    /// What runs in it now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
    /// The sandbox's level of the last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// True for a worktree that somebody else made: its branch is theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// True for a branch that was there before its worktree: it is the user's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign_branch: bool,
    /// The tree whose branch this short-lived one lands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch_for: Option<TreeName>,
    /// When somebody last went in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_entered_at: Option<Timestamp>,
    /// From where that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered_from: Option<PathBuf>,
    /// When it was set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_at: Option<Timestamp>,
    /// Where it waits after a removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trash: Option<Trash>,
    /// How it was dealt with at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closeout: Option<Closeout>,
    /// The ports that are its own while it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortBlock>,
    /// How its set-up ended, if there was anything to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetupRecord>,
    /// What a person approved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

impl Tree {
    /// A tree that is about to be made.
    pub fn new(id: TreeId, name: TreeName, path: PathBuf, base: Base, now: Timestamp) -> Self {
        Self {
            id,
            branch: format!("wt/{name}"),
            name,
            kind: TreeKind::Sealed,
            path,
            target: base.reference.clone(),
            base,
            task: None,
            status: TreeStatus::Creating,
            locked: None,
            unlock_marked: None,
            removing: false,
            created_at: now,
            last_used_at: now,
            identity: None,
            registration: None,
            head: None,
            diverged: false,
            worker: None,
            runs: Vec::new(),
            sandbox: None,
            adopted: false,
            foreign_branch: false,
            scratch_for: None,
            last_entered_at: None,
            entered_from: None,
            kept_at: None,
            trash: None,
            closeout: None,
            ports: None,
            setup: None,
            approval: None,
        }
    }

    /// What its entry in main's `worktrees/` is called.
    pub fn registration_name(&self) -> &str {
        self.registration.as_deref().unwrap_or(self.name.as_str())
    }

    /// What its HEAD held when it was last imported.
    pub fn tip(&self) -> &str {
        self.head.as_deref().unwrap_or(&self.base.commit)
    }

    /// True while nobody else can have its name and its place: it is there, or is being made.
    pub fn is_wanted(&self) -> bool {
        self.is_live() || self.status == TreeStatus::Creating
    }

    /// True while its directory should be there.
    pub fn is_live(&self) -> bool {
        use TreeStatus::*;
        matches!(self.status, Active | Kept | Landed | Broken)
    }
}
