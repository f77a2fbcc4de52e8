//! What keeps a worktree and what takes it away: clean-up, locks and the trash.

use serde::{Deserialize, Serialize};
use weald_core::task::Task;
use weald_core::tree::TreeLock;

use super::Operation;
use crate::{BranchOutcome, Call, Failure, RemoveRequest, TreeView};

entries!(KeepTree, LockTree, UnlockTree, RemoveTree);

/// A worktree as it is now.
#[derive(Debug, Serialize)]
pub struct OneTree {
    /// As it is now.
    pub tree: TreeView,
}

/// Exempts a worktree from clean-up. Without a name it is the one that the caller stands in, as everywhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepTree {
    /// The caller's own unless given.
    pub tree: Option<String>,
    /// Allow clean-up again.
    pub undo: bool,
}

/// A worktree that clean-up leaves alone, or no longer does.
#[derive(Debug, Serialize)]
pub struct TreeKept {
    /// As it is now.
    pub tree: TreeView,
    /// Which of both.
    pub outcome: KeepOutcome,
}

/// Whether clean-up leaves it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepOutcome {
    /// It does.
    Kept,
    /// It may remove it.
    NotKept,
}

impl Operation for KeepTree {
    const NAME: &'static str = "tree_keep";
    type Output = TreeKept;

    fn run(self, call: &Call<'_>) -> Result<TreeKept, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let name = name.as_deref();
        let (tree, outcome) = match self.undo {
            true => (trees.unkeep(name)?, KeepOutcome::NotKept),
            false => (trees.keep(name)?, KeepOutcome::Kept),
        };
        call.tell(&ground.engine);
        Ok(TreeKept { tree, outcome })
    }
}

/// Locks a worktree against removal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockTree {
    /// The one that the caller stands in unless given.
    pub tree: Option<String>,
    /// Shown to everybody who tries.
    pub reason: String,
    /// Replace the lock of another session.
    pub force: bool,
}

impl Operation for LockTree {
    const NAME: &'static str = "tree_lock";
    type Output = OneTree;

    fn run(self, call: &Call<'_>) -> Result<OneTree, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let tree = trees.lock(name.as_deref(), &self.reason, self.force)?;
        call.tell(&ground.engine);
        let tree = trees.view(tree);
        Ok(OneTree { tree })
    }
}

/// Lets a worktree be removed again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnlockTree {
    /// The one that the caller stands in unless given.
    pub tree: Option<String>,
    /// Remove the lock of another session.
    pub force: bool,
}

/// A worktree without a lock.
#[derive(Debug, Serialize)]
pub struct UnlockedTree {
    /// As it is now.
    pub tree: TreeView,
    /// The lock that it had.
    pub was: Option<TreeLock>,
}

impl Operation for UnlockTree {
    const NAME: &'static str = "tree_unlock";
    type Output = UnlockedTree;

    fn run(self, call: &Call<'_>) -> Result<UnlockedTree, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let (tree, was) = trees.unlock(name.as_deref(), self.force)?;
        call.tell(&ground.engine);
        let tree = trees.view(tree);
        Ok(UnlockedTree { tree, was })
    }
}

/// Moves a worktree to the trash.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveTree {
    /// Which one; nothing near to its name is taken for it.
    pub tree: String,
    /// Even with uncommitted changes or unlanded commits.
    pub discard: bool,
    /// Once: even if it is referenced. Twice: even if it is locked.
    pub force: u8,
    /// Also complete its task, under the caller's token.
    pub complete_task: bool,
    /// Part of the record.
    pub reason: Option<String>,
}

/// A worktree that is in the trash.
#[derive(Debug, Serialize)]
pub struct RemovedTree {
    /// Its last record.
    pub tree: TreeView,
    /// `trashed`, or `already_gone`.
    pub outcome: String,
    /// What became of main's branch.
    pub branch: BranchOutcome,
    /// Whether its directory was gone before.
    pub stale_path: bool,
    /// Ignored files and folders that went to the trash with it.
    pub ignored: u64,
    /// The command that brings it back.
    pub restore: Option<String>,
    /// Its task, if that was completed.
    pub task: Option<Task>,
}

impl Operation for RemoveTree {
    const NAME: &'static str = "tree_remove";
    type Output = RemovedTree;

    fn run(self, call: &Call<'_>) -> Result<RemovedTree, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let tree = ground.tree(call, &self.tree)?;
        trees.require_own(&tree)?;
        let request = RemoveRequest {
            discard: self.discard,
            force: self.force,
            complete_task: self.complete_task,
            token: tree.task.as_ref().and_then(|task| call.token(task)),
            reason: self.reason,
            ..RemoveRequest::default()
        };
        let progress = call.stage("looking");
        let removed = trees.remove(Some(tree.name.as_str()), &request)?;
        drop(progress);
        call.tell(&ground.engine);
        Ok(RemovedTree {
            tree: trees.view(removed.tree),
            outcome: removed.outcome.to_owned(),
            branch: removed.branch,
            stale_path: removed.stale_path,
            ignored: removed.ignored,
            restore: removed.restore,
            task: removed.task,
        })
    }
}
