//! What may be deleted from the trash for good: a directory that lies in a trash of this repository, is the very one that
//! was put there, and whose commits are in the vault.
//!
//! Whoever stood in a tree while it was removed may have committed in it later, so it is looked into once more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use weald_core::tree::{Tree, TreeKind};
use weald_git::{Commit, Expected, Git, RefChange, update_refs};

use super::import::next_old;
use super::site::identity_of;
use super::{TreeError, Trees, at};

/// So many entries of the log of a HEAD are looked at.
const HEADS: usize = 1000;

/// What a tree in the trash is called while it is being deleted.
pub fn going(tree: &Tree, path: &Path) -> PathBuf {
    path.with_file_name(format!(".purging-{}", tree.id))
}

/// Whether a directory is the one that was the tree, whatever it is called now.
pub fn is_the_tree(tree: &Tree, path: &Path) -> bool {
    tree.identity.is_some() && identity_of(path).ok() == tree.identity
}

impl Trees<'_> {
    /// Refuses a place where no removed tree of this repository can be: a record may be broken, or forged.
    pub fn require_in_trash(&self, tree: &Tree, path: &Path) -> Result<(), TreeError> {
        let outside = |why: String| TreeError::OutsideTrash {
            name: tree.name.clone(),
            id: tree.id,
            path: path.to_owned(),
            why,
        };
        let root = tree.path.parent().unwrap_or(&tree.path);
        let folders = [self.trash_directory(&tree.path)?, root.join(".trash")];
        let folder = path.parent().filter(|_| path.file_name().is_some());
        let Some(folder) = folder.filter(|folder| folders.iter().any(|known| known == folder))
        else {
            return Err(outside(
                "that is not a trash folder of this repository".to_owned(),
            ));
        };
        match folder.is_symlink() {
            true => Err(outside(format!("{} is a symbolic link", folder.display()))),
            false => Ok(()),
        }
    }

    /// Refuses a trash that lies behind a link: what goes there would leave the folder of trees.
    pub fn require_own_trash(&self, directory: &Path) -> Result<(), TreeError> {
        match directory.is_symlink() {
            true => Err(at(directory)(std::io::Error::other(
                "the trash is a symbolic link; nothing was moved through it, find out what created it",
            ))),
            false => Ok(()),
        }
    }

    /// Takes everything into the vault that a tree in the trash holds, so that nothing but files goes with it.
    pub(super) fn take_in_from_trash(&self, tree: &Tree, path: &Path) -> Result<(), TreeError> {
        let there = Tree {
            path: path.to_owned(),
            ..tree.clone()
        };
        let taken = match tree.kind {
            TreeKind::Sealed => self.take_in_sealed(&there),
            TreeKind::Linked => self.take_in_linked(&there),
        };
        taken.map_err(|error| TreeError::NotTakenIn {
            name: tree.name.clone(),
            id: tree.id,
            why: error.to_string(),
        })
    }

    fn take_in_sealed(&self, there: &Tree) -> Result<(), TreeError> {
        let site = self.site(there)?;
        self.import(there, &site, None)?;
        self.import_submodules(there, &site).map(drop)
    }

    /// A linked tree's commits are main's; what a detached HEAD and its log hold goes with its registration.
    fn take_in_linked(&self, there: &Tree) -> Result<(), TreeError> {
        let known = self.known_refs(there)?;
        let mut lost = self.unreached_heads(there)?;
        lost.retain(|commit| !known.values().any(|held| held == commit));
        if lost.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = lost.iter().map(String::as_str).collect();
        self.vault().require(&self.main_refs()?, &wanted)?;
        let kept = lost.into_iter().zip(next_old(&known)..);
        let kept: Vec<_> = kept
            .map(|(commit, number)| {
                RefChange::set(
                    format!("refs/tree/{}/old/{number}", there.id),
                    commit,
                    Expected::Absent,
                )
            })
            .collect();
        Ok(update_refs(self.vault().path(), &kept, "weald: purge")?)
    }

    /// What a linked tree's HEAD holds and held that nothing else in main leads to, newest first.
    fn unreached_heads(&self, there: &Tree) -> Result<Vec<String>, TreeError> {
        let head = self.registered_head(there);
        let head = head.as_deref().map(str::trim_end).and_then(Commit::parse);
        let head = head.map(String::from);
        let mut heads: Vec<_> = head.iter().cloned().collect();
        let name = there.registration_name();
        let git_dir = self.registrations().directory(name);
        // A log that can't be read holds nothing that git could use.
        let walked = Git::new(&git_dir, "rev-list")
            .args(["--walk-reflogs", &format!("--max-count={HEADS}"), "HEAD"])
            .output()?;
        let walked = String::from_utf8_lossy(&walked.stdout).into_owned();
        heads.extend(
            walked
                .lines()
                .filter_map(|line| Some(Commit::parse(line)?.as_str().to_owned())),
        );
        let mut seen = BTreeSet::new();
        heads.retain(|head| seen.insert(head.clone()));
        if heads.is_empty() {
            return Ok(heads);
        }
        let common = self.common_dir();
        let asked = Git::new(common, "rev-list")
            .args(["--ignore-missing"])
            .args(&heads)
            .args(["--not", "--all"])
            .output()?;
        // Where git can't walk everything, nothing counts as reached.
        if asked.status.success() {
            let unreached = String::from_utf8_lossy(&asked.stdout).into_owned();
            let unreached: BTreeSet<_> = unreached.lines().collect();
            heads.retain(|one| Some(one) == head.as_ref() || unreached.contains(one.as_str()));
        }
        if heads.len() < 2 {
            return Ok(heads);
        }
        // What others of them lead to is kept with those.
        let tips = Git::new(common, "merge-base")
            .args(["--independent"])
            .args(&heads)
            .output()?;
        if tips.status.success() {
            let tips = String::from_utf8_lossy(&tips.stdout).into_owned();
            let tips: BTreeSet<_> = tips.lines().collect();
            heads.retain(|one| tips.contains(one.as_str()));
        }
        Ok(heads)
    }
}
