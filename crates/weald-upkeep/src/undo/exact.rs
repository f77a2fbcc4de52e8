//! Whether something would come back as it was. Nothing is changed here; undoing asks the same before it begins.

use std::path::Path;

use weald_core::binding::{self, BindStart};
use weald_core::event::Change;
use weald_core::id::{Seq, TaskId, TreeId};
use weald_core::name::TreeName;
use weald_core::store::Read;
use weald_core::task::Task;
use weald_core::tree::{Trash, Tree, TreeLock};
use weald_core::undo::{Operation, TrashedTree, Way};

use super::{UndoError, in_vault};
use crate::Upkeep;
use weald_control::tasks::require_task;
use weald_trees::{TreeError, identity_of};

impl Upkeep<'_> {
    /// Refuses an operation that `undo` would refuse; answers what would not come back. Whether a landing can be merged
    /// back, and what the gate says to that, shows only when it is done.
    pub fn require_undoable(&self, operation: &Operation) -> Result<Vec<String>, UndoError> {
        match &operation.way {
            Way::Restore(parts) => return self.require_removals(operation, parts),
            Way::Revert { landing, .. } => {
                self.landings.require_revertible(*landing)?;
            }
            Way::Bind { task, tree, name } => {
                let again = |tx: &dyn Read| bound_again(tx, task, *tree, name);
                self.trees.engine.look(again)?;
            }
            Way::Lock { tree, now, .. } => {
                self.trees.engine.look(|tx| require_lock(tx, *tree, now))?;
            }
        }
        Ok(Vec::new())
    }

    /// Refuses trees that would not come back as they were; answers those of which nothing is left, if others are.
    pub(super) fn require_removals(
        &self,
        operation: &Operation,
        parts: &[TrashedTree],
    ) -> Result<Vec<String>, UndoError> {
        let gone = parts.iter().filter(|part| part.gone);
        let gone = gone.map(|part| in_vault(std::slice::from_ref(part)));
        let gone: Vec<_> = gone.collect();
        if operation.is_gone() {
            return Err(UndoError::Gone(parts.to_vec()));
        }
        for part in parts.iter().filter(|part| !part.gone) {
            self.require_exact(part, operation.event)?;
        }
        Ok(gone)
    }

    fn require_exact(&self, part: &TrashedTree, event: Seq) -> Result<(), UndoError> {
        let tree = self.trees.engine.look(|tx| tx.tree_by_id(part.id))?;
        let trash = tree.as_ref().and_then(|tree| tree.trash.as_ref());
        let (Some(tree), Some(trash)) = (&tree, trash) else {
            let id = format!("#{}", part.id);
            return Err(TreeError::NotInTrash { id }.into());
        };
        self.require_place(tree, trash, event)?;
        let full = format!("refs/heads/{}", tree.branch);
        let held = self.trees.place.repository().resolve(&full)?;
        let held = held.map(|tip| tip.as_str().to_owned());
        if held.is_some() && held != trash.branch_tip {
            let branch = tree.branch.clone();
            return Err(UndoError::BranchMoved(part.id, tree.name.clone(), branch));
        }
        let task = match &trash.task {
            Some(id) => self.trees.engine.look(|tx| tx.task(id))?,
            None => None,
        };
        match task.and_then(|task| Some((task.id, task.worktree?))) {
            Some((task, other)) => Err(UndoError::TaskTaken(
                part.id,
                tree.name.clone(),
                task,
                other,
            )),
            None => Ok(()),
        }
    }

    /// The name and the path must be free, and the directory in the trash.
    fn require_place(&self, tree: &Tree, trash: &Trash, event: Seq) -> Result<(), UndoError> {
        match self.trees.refuse_name_taken(tree) {
            Err(TreeError::Exists { name, path }) => {
                return Err(UndoError::NameTaken(event, name, path));
            }
            other => other?,
        }
        let is_it = |path: &Path| identity_of(path).ok() == tree.identity;
        let name = tree.name.clone();
        if tree.path.symlink_metadata().is_ok() {
            let path = tree.path.clone();
            return Err(match is_it(&path) {
                true => UndoError::HalfRestored(event, name, path),
                false => UndoError::PathTaken(event, name, path),
            });
        }
        if !is_it(&trash.path) {
            return Err(UndoError::NotInTrash(name, trash.path.clone()));
        }
        Ok(())
    }
}

/// A task with its tree again.
pub(super) fn bound_again(
    tx: &(impl Read + ?Sized),
    task: &TaskId,
    tree: TreeId,
    name: &TreeName,
) -> Result<(Task, Change), UndoError> {
    let current = require_task(tx, task).map_err(TreeError::from)?;
    let Some(free) = tx.tree_by_id(tree)?.filter(Tree::is_live) else {
        return Err(UndoError::TreeGone(name.clone()));
    };
    let (bound, _, change) =
        binding::bind(&current, &free, BindStart::Keep, tx.now()).map_err(TreeError::from)?;
    Ok((bound, change))
}

/// The tree, if its lock is still this one.
pub(super) fn require_lock(
    tx: &(impl Read + ?Sized),
    tree: TreeId,
    now: &Option<TreeLock>,
) -> Result<Tree, UndoError> {
    let current = tx.tree_by_id(tree)?.filter(Tree::is_live);
    current
        .filter(|tree| tree.locked == *now)
        .ok_or(UndoError::OtherLock)
}
