//! Trees: one managed git worktree each, bound to at most one task.
//!
//! The record and its states. An operation on disk is bracketed: `*.before` goes into the log first, and `*.after`
//! or `*.failed` (with the error) only once git has spoken, because only the matching input produces them.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Change, EventKind};
use crate::id::{TaskId, TreeId};
use crate::name::TreeName;

/// How a tree is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeKind {
    /// Its own inner repository that borrows objects.
    #[default]
    Sealed,
    /// A plain linked worktree.
    Linked,
}

/// Where a tree stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeStatus {
    /// Announced, not there yet.
    Creating,
    /// In use.
    Active,
    /// Set aside by a person; no clean-up takes it.
    Kept,
    /// Its work is on the target.
    Landed,
    /// In the trash, can be restored.
    Trashed,
    /// Gone.
    Removed,
    /// Something is wrong with it.
    Broken,
}

impl TreeStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Creating,
        Self::Active,
        Self::Kept,
        Self::Landed,
        Self::Trashed,
        Self::Removed,
        Self::Broken,
    ];

    /// The name in JSON and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Active => "active",
            Self::Kept => "kept",
            Self::Landed => "landed",
            Self::Trashed => "trashed",
            Self::Removed => "removed",
            Self::Broken => "broken",
        }
    }
}

/// The commit a tree started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// How it was named.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit.
    pub commit: String,
}

/// Why nobody may remove a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLock {
    /// Who locked it.
    pub owner: String,
    /// Why.
    pub reason: String,
}

/// One tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Its number; a name is used again after a removal, a number is not.
    pub id: TreeId,
    /// What it is called.
    pub name: TreeName,
    /// How it is made.
    pub kind: TreeKind,
    /// Where it is.
    pub path: PathBuf,
    /// Its branch in the main repository.
    pub branch: String,
    /// Where it started.
    pub base: Base,
    /// Where it lands.
    pub target: String,
    /// Whose tree it is.
    #[serde(default)]
    pub task: Option<TaskId>,
    /// Where it stands.
    pub status: TreeStatus,
    /// Set while somebody locked it.
    #[serde(default)]
    pub locked: Option<TreeLock>,
    /// Set between the announcement of a removal and its end.
    #[serde(default)]
    pub removing: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When anybody last worked in it.
    pub last_used_at: Timestamp,
}

/// What happens to a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeInput {
    /// git made it.
    Created,
    /// git did not make it.
    CreateFailed {
        /// What git said.
        error: String,
    },
    /// A person keeps it.
    Keep,
    /// Its work is on the target.
    Landed,
    /// A removal begins.
    RemoveBegins,
    /// It was renamed into the trash.
    Trashed,
    /// Its last traces are gone.
    Removed,
    /// The removal did not happen.
    RemoveFailed {
        /// Why.
        error: String,
    },
    /// It came back from the trash.
    Restored,
    /// It can't be used.
    Broke {
        /// Why.
        error: String,
    },
    /// It can be used again.
    Repaired,
}

/// A move that the states don't allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tree {name} is {}: it can't take {input:?}", .from.as_str())]
pub struct TreeRefusal {
    /// Which tree.
    pub name: TreeName,
    /// Its status.
    pub from: TreeStatus,
    /// What came.
    pub input: TreeInput,
}

/// Announces a tree: the intent that a crash leaves behind.
pub fn announce(tree: Tree) -> (Tree, Change) {
    let tree = Tree {
        status: TreeStatus::Creating,
        ..tree
    };
    (
        tree.clone(),
        Change::tree(EventKind::TREE_CREATE_BEFORE, tree),
    )
}

/// Decides one input.
pub fn decide(
    tree: &Tree,
    input: TreeInput,
    now: Timestamp,
) -> Result<(Tree, Change), TreeRefusal> {
    use TreeStatus::*;
    let refused = || TreeRefusal {
        name: tree.name.clone(),
        from: tree.status,
        input: input.clone(),
    };
    // The end of a removal comes only after its beginning.
    let ends_removal = matches!(
        input,
        TreeInput::Trashed | TreeInput::Removed | TreeInput::RemoveFailed { .. }
    );
    if ends_removal && !tree.removing {
        return Err(refused());
    }
    let (status, kind, error) = match (&input, tree.status) {
        (TreeInput::Created, Creating) => (Active, EventKind::TREE_CREATE_AFTER, None),
        (TreeInput::CreateFailed { error }, Creating) => {
            (Removed, EventKind::TREE_CREATE_FAILED, Some(error.clone()))
        }
        (TreeInput::Keep, Active | Kept | Landed) => (Kept, EventKind::TREE_KEPT, None),
        (TreeInput::Landed, Active | Kept | Landed) => (Landed, EventKind::TREE_LANDED, None),
        (TreeInput::RemoveBegins, Active | Kept | Landed | Broken | Trashed) => {
            (tree.status, EventKind::TREE_REMOVE_BEFORE, None)
        }
        (TreeInput::Trashed, Active | Kept | Landed | Broken) => {
            (Trashed, EventKind::TREE_TRASHED, None)
        }
        (TreeInput::Removed, Active | Kept | Landed | Broken | Trashed) => {
            (Removed, EventKind::TREE_REMOVE_AFTER, None)
        }
        (TreeInput::RemoveFailed { error }, Active | Kept | Landed | Broken | Trashed) => (
            tree.status,
            EventKind::TREE_REMOVE_FAILED,
            Some(error.clone()),
        ),
        (TreeInput::Restored, Trashed) => (Active, EventKind::TREE_RESTORED, None),
        (TreeInput::Broke { error }, Creating | Active | Kept | Landed) => {
            (Broken, EventKind::TREE_BROKEN, Some(error.clone()))
        }
        (TreeInput::Repaired, Broken) => (Active, EventKind::TREE_REPAIRED, None),
        _ => return Err(refused()),
    };
    let removing = matches!(input, TreeInput::RemoveBegins) || (tree.removing && !ends_removal);
    let next = Tree {
        status,
        removing,
        last_used_at: now,
        ..tree.clone()
    };
    Ok((next.clone(), Change::tree(kind, next).with_error(error)))
}
