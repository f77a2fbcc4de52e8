//! Operations on a tree that were cut short: each is finished or taken back.

use std::path::Path;

use weald_core::store::Durability;
use weald_core::tree::Tree;
use weald_core::tree_rules::TreeInput;

use super::{Code, Round, Severity};
use weald_trees::at;
use weald_trees::building::building;
use weald_trees::delete;
use weald_trees::purging::{going, is_the_tree};

impl Round<'_, '_> {
    /// A creation that was interrupted: finished if everything is there, else taken back.
    pub(super) fn unfinished_creation(&mut self, tree: &Tree) {
        let trees = self.trees;
        let (what, would) = match trees.unrecorded(tree) {
            Some(_) => (
                format!("worktree {} was created but not recorded", tree.name),
                "record it",
            ),
            None => (
                format!("the creation of worktree {} was interrupted", tree.name),
                "undo it",
            ),
        };
        self.found(Code::CreateUnfinished, Severity::Warn, what, would, || {
            trees.end_creation(tree).map(drop)
        });
    }

    /// A removal that was interrupted: finished if the directory is in the trash, else called off.
    pub(super) fn unfinished_removal(&mut self, tree: &Tree) {
        let trees = self.trees;
        let what = format!("the removal of worktree {} was interrupted", tree.name);
        match trees.in_trash(tree) {
            Some(path) if tree.path.symlink_metadata().is_err() => {
                self.found(
                    Code::RemoveUnfinished,
                    Severity::Warn,
                    what,
                    "finish it",
                    || trees.finish_removal(tree, path),
                );
            }
            _ => self.found(
                Code::RemoveUnfinished,
                Severity::Warn,
                what,
                "cancel it",
                || {
                    if let Some(identity) = tree.identity {
                        trees.reinstate_registration(tree, identity)?;
                    }
                    trees.reinstate_missing_branch(tree)?;
                    let input = TreeInput::RemoveFailed {
                        error: "interrupted".to_owned(),
                    };
                    trees.decide(tree, Durability::Process, input).map(drop)
                },
            ),
        }
    }

    pub(super) fn check_trashed(&mut self, tree: &Tree) {
        let trees = self.trees;
        let Some(trash) = tree.trash.clone() else {
            return;
        };
        if let Err(error) = trees.require_in_trash(tree, &trash.path) {
            let would = "check it; weald does not touch anything there".to_owned();
            self.told(Code::TrashOutside, Severity::Warn, error.to_string(), would);
            return;
        }
        let going = going(tree, &trash.path);
        // Whatever else is called so is told as unknown.
        if is_the_tree(tree, &going) {
            self.unfinished_purge(tree, Some(&going));
            return;
        }
        let is_tree = |path: &Path| is_the_tree(tree, path);
        if is_tree(&trash.path) {
            if tree.removing {
                let what = format!("the purge of worktree {} was interrupted", tree.name);
                self.found(
                    Code::PurgeUnfinished,
                    Severity::Warn,
                    what,
                    "keep it in the trash",
                    || {
                        let input = TreeInput::RemoveFailed {
                            error: "interrupted".to_owned(),
                        };
                        trees.decide(tree, Durability::Process, input).map(drop)
                    },
                );
            }
            return;
        }
        if is_tree(&tree.path) {
            let what = format!(
                "worktree {} is back from the trash, but not recorded",
                tree.name
            );
            self.found(
                Code::RestoreUnfinished,
                Severity::Warn,
                what,
                "restore it",
                || trees.reinstate(tree, &trash).map(drop),
            );
        } else if tree.removing {
            self.unfinished_purge(tree, None);
        } else {
            let what = format!("{} is no longer in the trash", trash.path.display());
            self.told(
                Code::TrashMissing,
                Severity::Info,
                what,
                "its commits are in the vault; to remove its record: weald clean --trash"
                    .to_owned(),
            );
        }
    }

    /// A purge that had begun to delete, and what is left of that.
    fn unfinished_purge(&mut self, tree: &Tree, left: Option<&Path>) {
        let trees = self.trees;
        let what = format!("the purge of worktree {} was interrupted", tree.name);
        self.found(
            Code::PurgeUnfinished,
            Severity::Warn,
            what,
            "finish it",
            || {
                if let Some(left) = left {
                    delete(left).map_err(at(left))?;
                }
                trees.unregister(tree)?;
                let input = TreeInput::Removed;
                trees.decide(tree, Durability::Process, input).map(drop)
            },
        );
    }

    /// What a failed creation may have left when it could not clear it.
    pub(super) fn check_removed(&mut self, tree: &Tree) {
        let trees = self.trees;
        let place = building(tree);
        if place.symlink_metadata().is_err() {
            return;
        }
        // Its name proves nothing. A tree that was made was not left half-made, and what weald makes borrows from the vault.
        if tree.identity.is_none() && trees.is_left_from_here(&place) {
            let what = format!("{} is left over from creating a worktree", place.display());
            self.found(Code::Leftover, Severity::Info, what, "delete it", || {
                trees.clear_creation(tree)
            });
            return;
        }
        let what = format!(
            "{} may be left over from creating a worktree",
            place.display()
        );
        let would = "check it; delete it if you don't need anything in it".to_owned();
        self.told(Code::Leftover, Severity::Info, what, would);
    }
}
