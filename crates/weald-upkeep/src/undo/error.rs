//! Why something is not taken back.

use std::path::PathBuf;

use weald_core::id::{LandingId, Seq, TaskId, TreeId};
use weald_core::name::TreeName;
use weald_core::store::StoreError;
use weald_core::undo::{NotByItself, Operation, TrashedTree, Unasked, UndoRefusal, Way};
use weald_git::GitError;

use weald_landing::LandError;
use weald_trees::TreeError;

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Land(#[from] LandError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Refused(#[from] UndoRefusal),
    #[error("there is nothing here that weald can undo")]
    Nothing,
    /// A person may not have meant it: it is taken back only by its name.
    #[error("the last operation not yet undone is {}, and {}; nothing was changed", .0.last, why(.0))]
    Unnamed(Box<NotByItself>),
    #[error("landing {0} is undone by the queue")]
    OfQueue(LandingId),
    #[error("{}", in_vault(.0))]
    Gone(Vec<TrashedTree>),
    #[error("worktree {} is no longer in the trash: {}", .0, .1.display())]
    NotInTrash(TreeName, PathBuf),
    #[error("branch {2} of worktree {1} has moved since")]
    BranchMoved(TreeId, TreeName, String),
    #[error("task {2} of worktree {1} now has worktree {3}")]
    TaskTaken(TreeId, TreeName, TaskId, TreeName),
    #[error("there is now another worktree {}: {}", .1, .2.display())]
    NameTaken(Seq, TreeName, PathBuf),
    /// A restore that was killed has it there already.
    #[error("worktree {} is only partly restored: {}", .1, .2.display())]
    HalfRestored(Seq, TreeName, PathBuf),
    #[error("the path of worktree {} is taken: {}", .1, .2.display())]
    PathTaken(Seq, TreeName, PathBuf),
    #[error("worktree {0} is gone")]
    TreeGone(TreeName),
    #[error("the lock is now a different one, or its worktree is gone")]
    OtherLock,
}

fn why(refused: &NotByItself) -> String {
    match refused.why {
        Unasked::Gone => in_vault(parts_of(&refused.last)),
        Unasked::Others => "it is not your operation".to_owned(),
        Unasked::Older => "the operations after it were already undone".to_owned(),
    }
}

fn parts_of(operation: &Operation) -> &[TrashedTree] {
    match &operation.way {
        Way::Restore(trees) => trees,
        _ => &[],
    }
}

/// That trees are not in the trash any more.
pub(super) fn in_vault(gone: &[TrashedTree]) -> String {
    let names: Vec<_> = gone.iter().map(|tree| tree.name.as_str()).collect();
    let (noun, verb, whose) = match names.len() {
        1 => ("worktree", "is", "its"),
        _ => ("worktrees", "are", "their"),
    };
    format!(
        "{noun} {} {verb} no longer in the trash; the vault has {whose} imported commits",
        names.join(", ")
    )
}
