//! Operations on a tree that were cut short: each is finished or taken back.

use std::path::Path;

use weald_core::store::Durability;
use weald_core::tree::Tree;
use weald_core::tree_rules::TreeInput;

use super::leftovers::leftover;
use super::live::adoption;
use super::{Code, Finding, Round};
use weald_trees::building::building;
use weald_trees::delete;
use weald_trees::purging::{going, is_the_tree};
use weald_trees::{TreeError, Trees, at};

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
        let finding = Finding::new(Code::CreateUnfinished, what, would);
        self.note(finding.repair(|| trees.end_creation(tree).map(drop)));
    }

    /// A removal that was interrupted: finished if the directory is in the trash, else called off.
    pub(super) fn unfinished_removal(&mut self, tree: &Tree) {
        let trees = self.trees;
        let what = format!("the removal of worktree {} was interrupted", tree.name);
        match trees.in_trash(tree) {
            Some(path) if tree.path.symlink_metadata().is_err() => {
                let finding = Finding::new(Code::RemoveUnfinished, what, "finish it");
                self.note(finding.repair(|| trees.finish_removal(tree, path)));
            }
            _ => {
                let finding = Finding::new(Code::RemoveUnfinished, what, "cancel it");
                self.note(finding.repair(|| {
                    if let Some(identity) = tree.identity {
                        trees.reinstate_registration(tree, identity)?;
                    }
                    trees.reinstate_missing_branch(tree)?;
                    call_off(trees, tree)
                }));
            }
        }
    }

    pub(super) fn check_trashed(&mut self, tree: &Tree) {
        let trees = self.trees;
        let Some(trash) = tree.trash.clone() else {
            return;
        };
        if let Err(error) = trees.require_in_trash(tree, &trash.path) {
            let would = "check it; weald does not touch anything there";
            self.note(Finding::new(Code::TrashOutside, error.to_string(), would));
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
                let finding = Finding::new(Code::PurgeUnfinished, what, "keep it in the trash");
                self.note(finding.repair(|| call_off(trees, tree)));
            }
            return;
        }
        if is_tree(&tree.path) {
            let what = format!(
                "worktree {} is back from the trash, but not recorded",
                tree.name
            );
            let finding = Finding::new(Code::RestoreUnfinished, what, "restore it");
            self.note(finding.repair(|| trees.reinstate(tree, &trash).map(drop)));
        } else if tree.removing {
            self.unfinished_purge(tree, None);
        } else if trash.path.symlink_metadata().is_ok() {
            let (name, place) = (&tree.name, trash.path.display());
            let what = format!("another directory is where the trash had worktree {name}: {place}");
            let would = adoption(&trash.path);
            self.note(Finding::new(Code::TrashMissing, what, would));
        } else {
            let what = format!("{} is no longer in the trash", trash.path.display());
            let would = "its commits are in the vault; to remove its record: weald clean --trash";
            self.note(Finding::new(Code::TrashMissing, what, would));
        }
    }

    /// A purge that had begun to delete, and what is left of that.
    fn unfinished_purge(&mut self, tree: &Tree, left: Option<&Path>) {
        let trees = self.trees;
        let what = format!("the purge of worktree {} was interrupted", tree.name);
        let finding = Finding::new(Code::PurgeUnfinished, what, "finish it");
        self.note(finding.repair(|| {
            if let Some(left) = left {
                delete(left).map_err(at(left))?;
            }
            trees.unregister(tree)?;
            let input = TreeInput::Removed;
            trees.decide(tree, Durability::Process, input).map(drop)
        }));
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
            self.note(leftover(what).repair(|| trees.clear_creation(tree)));
            return;
        }
        let what = format!(
            "{} may be left over from creating a worktree",
            place.display()
        );
        let would = "check it; delete it if you don't need anything in it";
        self.note(Finding::new(Code::Leftover, what, would));
    }
}

fn call_off(trees: &Trees<'_>, tree: &Tree) -> Result<(), TreeError> {
    let input = TreeInput::RemoveFailed {
        error: "interrupted".to_owned(),
    };
    trees.decide(tree, Durability::Process, input).map(drop)
}
