//! Whether something would come back as it was. Nothing is changed here; undoing asks the same before it begins.

use weald_core::binding::{self, BindStart};
use weald_core::event::Change;
use weald_core::id::{Seq, TaskId, TreeId};
use weald_core::name::TreeName;
use weald_core::store::Read;
use weald_core::task::Task;
use weald_core::tree::{Trash, Tree, TreeLock};
use weald_core::undo::{Operation, TrashedTree, Way};

use super::in_vault;
use crate::Upkeep;
use weald_control::tasks::require_task;
use weald_landing::LandError;
use weald_trees::{TreeError, identity_of};

impl Upkeep<'_> {
    /// Refuses an operation that `undo` would refuse; answers what would not come back. Whether a landing can be merged
    /// back, and what the gate says to that, shows only when it is done.
    pub fn require_undoable(&self, operation: &Operation) -> Result<Vec<String>, LandError> {
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
    ) -> Result<Vec<String>, LandError> {
        let gone = parts.iter().filter(|part| part.gone);
        let gone = gone.map(|part| in_vault(std::slice::from_ref(part)));
        let gone: Vec<_> = gone.collect();
        if operation.is_gone() {
            let hint = "weald restore --purged; to see what can be undone: weald undo --list";
            return Err(LandError::refused("undo_gone", in_vault(parts)).hint(hint));
        }
        for part in parts.iter().filter(|part| !part.gone) {
            self.require_exact(part, operation.event)?;
        }
        Ok(gone)
    }

    fn require_exact(&self, part: &TrashedTree, event: Seq) -> Result<(), LandError> {
        let tree = self.trees.engine.look(|tx| tx.tree_by_id(part.id))?;
        let trash = tree.as_ref().and_then(|tree| tree.trash.as_ref());
        let (Some(tree), Some(trash)) = (&tree, trash) else {
            let id = format!("#{}", part.id);
            return Err(TreeError::NotInTrash { id }.into());
        };
        self.require_place(tree, trash, event)?;
        let inexact = |why: String| {
            LandError::refused("undo_inexact", why).hint(format!(
                "to restore what is left: weald restore {}",
                part.id
            ))
        };
        let full = format!("refs/heads/{}", tree.branch);
        let held = self.trees.place.repository().resolve(&full)?;
        let held = held.map(|tip| tip.as_str().to_owned());
        if held.is_some() && held != trash.branch_tip {
            return Err(inexact(format!(
                "branch {} of worktree {} has moved since",
                tree.branch, tree.name
            )));
        }
        let task = match &trash.task {
            Some(id) => self.trees.engine.look(|tx| tx.task(id))?,
            None => None,
        };
        match task.and_then(|task| Some((task.id, task.worktree?))) {
            Some((id, other)) => Err(inexact(format!(
                "task {id} of worktree {} now has worktree {other}",
                tree.name
            ))),
            None => Ok(()),
        }
    }

    /// The name and the path must be free, and the directory in the trash.
    fn require_place(&self, tree: &Tree, trash: &Trash, event: Seq) -> Result<(), LandError> {
        let inexact = |why: String, first: String| {
            LandError::refused("undo_inexact", why)
                .hint(format!("{first}, then weald undo {event}"))
        };
        match self.trees.refuse_name_taken(tree) {
            Err(TreeError::Exists { name, path }) => {
                let why = format!("there is now another worktree {name}: {}", path.display());
                return Err(inexact(why, format!("weald rm {name}")));
            }
            other => other?,
        }
        let is_it = |path| identity_of(path).ok() == tree.identity;
        if tree.path.symlink_metadata().is_ok() {
            let path = tree.path.display();
            // A restore that was killed has it there already.
            return Err(match is_it(&tree.path) {
                true => inexact(
                    format!("worktree {} is only partly restored: {path}", tree.name),
                    "weald doctor --fix".to_owned(),
                ),
                false => inexact(
                    format!("the path of worktree {} is taken: {path}", tree.name),
                    format!("move {path} out of the way"),
                ),
            });
        }
        if !is_it(&trash.path) {
            let path = trash.path.display();
            let why = format!("worktree {} is no longer in the trash: {path}", tree.name);
            return Err(LandError::refused("undo_gone", why).hint("weald doctor"));
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
) -> Result<(Task, Change), LandError> {
    let current = require_task(tx, task).map_err(TreeError::from)?;
    let Some(free) = tx.tree_by_id(tree)?.filter(Tree::is_live) else {
        let message = format!("worktree {name} is gone");
        return Err(LandError::refused("undo_inexact", message).hint("weald restore"));
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
) -> Result<Tree, LandError> {
    let current = tx.tree_by_id(tree)?.filter(Tree::is_live);
    current.filter(|tree| tree.locked == *now).ok_or_else(|| {
        let message = "the lock is now a different one, or its worktree is gone";
        LandError::refused("undo_inexact", message).hint("weald list")
    })
}
