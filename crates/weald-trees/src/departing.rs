//! What weald takes along when it leaves a repository: see weald-upkeep's `deinit.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_core::objections::{Contents, Objection, RemovalConsent, RemovalFacts, objections};
use weald_core::tree::{Tree, TreeStatus};
use weald_git::delete_branch;

use super::purging::is_the_tree;
use super::{TreeError, Trees, at, delete};
use weald_control::confinement::{home_layer_of, home_layer_of_tree};
use weald_control::excludes;
use weald_control::marker::{MARKER, TreeNote};

/// A branch that weald made and that stays, with how many of its commits its target lacks.
pub type KeptBranch = (String, u64);

impl Trees<'_> {
    /// Everything that speaks against removing a worktree for good; `discard` lets its work go.
    pub fn objections_to_leaving(
        &self,
        tree: &Tree,
        discard: bool,
    ) -> Result<Vec<Objection>, TreeError> {
        let mut running = self.running(tree);
        let at_work = tree.worker.as_ref().filter(|worker| {
            let is_made = tree.status == TreeStatus::Creating || tree.removing;
            is_made && self.may_live(worker)
        });
        running.extend(at_work.map(|worker| format!("weald (process {})", worker.pid)));
        let contents = match tree.adopted || tree.status == TreeStatus::Creating || discard {
            true => Contents::Gone,
            false => self.contents_of(tree)?,
        };
        let facts = RemovalFacts {
            running,
            references: Vec::new(),
            foreign_lock: match tree.adopted {
                true => None,
                false => self.foreign_lock(tree),
            },
            contents,
        };
        let consent = RemovalConsent {
            discard,
            referenced: true,
            locked: tree.adopted,
        };
        Ok(objections(tree, facts, consent))
    }

    /// Forgets a worktree that somebody else made: it stays, as git knows it.
    pub fn disown(&self, tree: &Tree) -> Result<(), TreeError> {
        let registrations = self.registrations();
        let name = tree.registration_name();
        let is_ours = registrations
            .read(name)
            .and_then(|known| TreeNote::of(&known))
            .is_some_and(|note| note.tree == tree.id);
        if is_ours {
            registrations
                .forget_note(name)
                .map_err(at(&registrations.directory(name)))?;
        }
        Ok(())
    }

    /// Deletes the branches of removed worktrees whose work their target has, whatever `remove.branch` keeps for `rm`; answers
    /// those that stay.
    pub fn delete_own_branches(&self) -> Result<Vec<KeptBranch>, TreeError> {
        let mut kept = Vec::new();
        let mut seen = BTreeSet::new();
        for tree in self.records()?.iter().rev() {
            let is_ours = !tree.adopted && !tree.foreign_branch && !tree.is_wanted();
            let is_free = is_ours && self.fits_branch(&tree.branch)?;
            if !is_free || !seen.insert(tree.branch.clone()) {
                continue;
            }
            // The user made it again, and works on it.
            if self.user_of_branch(&tree.branch)?.is_some() {
                continue;
            }
            let Some(tip) = self.branch_tip(&tree.branch)? else {
                continue;
            };
            let unlanded = self.unlanded(tree, std::slice::from_ref(&tip))?;
            if unlanded > 0 {
                kept.push((tree.branch.clone(), unlanded));
                continue;
            }
            let (workshop, branch) = (self.workshop(), &tree.branch);
            self.change_main(|| {
                delete_branch(self.common_dir(), &workshop, branch, &tip, "weald: deinit")
            })?;
        }
        Ok(kept)
    }

    /// Removes what weald made around worktrees: folders that hold none any more, lines in `info/exclude`, and git's folder
    /// of registrations if it is empty.
    pub fn clear_surroundings(&self) -> Result<(), TreeError> {
        let trees = self.records()?;
        for root in self.roots(&trees)? {
            self.clear_root(&root);
        }
        if let Some(home) = self.host.home.as_deref() {
            let repository = self.common_dir();
            let of_trees = trees
                .iter()
                .map(|tree| home_layer_of_tree(home, repository, tree.id));
            let all = of_trees.chain([home_layer_of(home, &self.place.root())]);
            for layer in all.filter(|layer| layer.exists()) {
                delete(&layer).map_err(at(&layer))?;
            }
        }
        let common = self.common_dir();
        excludes::take_out(common, self.place.private())
            .map_err(at(&common.join("info/exclude")))?;
        self.registrations().remove_if_empty();
        // Of branches in folders, as git leaves them.
        for folder in ["refs/heads", "logs/refs/heads"] {
            for tree in trees.iter().filter(|tree| tree.branch.contains('/')) {
                let mut path = common.join(folder).join(&tree.branch);
                while path.pop() && path != common.join(folder) && fs::remove_dir(&path).is_ok() {}
            }
        }
        Ok(())
    }

    fn roots(&self, trees: &[Tree]) -> Result<BTreeSet<PathBuf>, TreeError> {
        let known = trees.iter().filter(|tree| !tree.adopted);
        let known = known.filter_map(|tree| tree.path.parent().map(PathBuf::from));
        Ok(known.chain(self.tree_roots()?).collect())
    }

    /// Only a folder with this repository's marker is weald's, and only an empty one goes.
    fn clear_root(&self, root: &Path) {
        let marker = root.join(MARKER);
        let text = fs::read(&marker).unwrap_or_default();
        if text.trim_ascii_end() != self.common_dir().as_os_str().as_bytes() {
            return;
        }
        for own in [".trash", ".pool"] {
            let _ = fs::remove_dir(root.join(own));
        }
        let holds_marker_alone = fs::read_dir(root).is_ok_and(|entries| entries.count() == 1);
        if holds_marker_alone && fs::remove_file(&marker).is_ok() {
            let _ = fs::remove_dir(root);
        }
    }

    /// Whether a removed worktree still lies in the trash.
    pub fn is_in_trash(&self, tree: &Tree) -> bool {
        let trash = tree.trash.as_ref();
        tree.status == TreeStatus::Trashed
            && trash.is_some_and(|trash| is_the_tree(tree, &trash.path))
    }
}
