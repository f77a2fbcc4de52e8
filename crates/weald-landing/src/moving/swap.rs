//! The swap: new files into the checkout, old ones out of it, and back again.
//!
//! A file that is not what was seen when it was compared with the index belongs to the user, who wrote it meanwhile: it
//! is never overwritten, and the old one is kept beside it.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::folder::{Folder, Stamp, ancestors};
use super::plan::{Action, Entry, Plan};

/// The checkout, the new files, the deleted ones.
pub(super) struct Swap {
    pub checkout: Folder,
    pub files: Folder,
    pub old: Folder,
}

/// Why a swap did not go on.
#[derive(Debug)]
pub(super) enum SwapError {
    /// Somebody wrote this path meanwhile.
    Changed(Vec<u8>),
    /// The file system refused.
    File(Vec<u8>, io::Error),
}

/// An old file that could not go back, because something of the user's is at its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub path: Vec<u8>,
    /// In which folder of the stage it is, and by which name; `None` if nothing of it is left.
    pub kept: Option<(Side, Vec<u8>)>,
}

/// The folders of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Where the new files were.
    Files,
    /// Where deleted ones are.
    Old,
    /// Where the user's own are while git stashes.
    Originals,
}

fn name_of(place: usize) -> Vec<u8> {
    place.to_string().into_bytes()
}

impl Swap {
    pub(super) fn open(checkout: &Path, files: &Path, old: &Path) -> io::Result<Self> {
        Ok(Self {
            checkout: Folder::open(checkout)?,
            files: Folder::open(files)?,
            old: Folder::open(old)?,
        })
    }

    /// Swaps everything that is not swapped yet. `passed` is called after each path.
    pub(super) fn forward(&self, plan: &Plan, mut passed: impl FnMut()) -> Result<(), SwapError> {
        let mut entries = plan.entries.iter().peekable();
        let goes =
            |entry: &&Entry| matches!(entry.action, Action::Delete { .. } | Action::DropGitlink);
        while let Some(entry) = entries.next_if(goes) {
            self.forward_one(entry)?;
            passed();
        }
        for (folder, _) in plan.emptied.iter().rev() {
            let failed = |error| SwapError::File(folder.0.clone(), error);
            self.checkout.remove_empty(&folder.0).map_err(failed)?;
        }
        for folder in &plan.made {
            let failed = |error| SwapError::File(folder.0.clone(), error);
            self.checkout.make(&folder.0, None).map_err(failed)?;
        }
        for entry in entries {
            self.forward_one(entry)?;
            passed();
        }
        Ok(())
    }

    fn forward_one(&self, entry: &Entry) -> Result<(), SwapError> {
        let path = entry.path.0.as_slice();
        let failed = |error| SwapError::File(path.to_vec(), error);
        let changed = || SwapError::Changed(path.to_vec());
        let here = || self.checkout.stamp(path).map_err(failed);
        match &entry.action {
            Action::Delete { old, place } => {
                let name = name_of(*place);
                if self.old.stamp(&name).map_err(failed)?.is_some() {
                    return Ok(());
                }
                if here()?.as_ref() != Some(old) {
                    return Err(changed());
                }
                self.checkout.give(path, &self.old, &name).map_err(failed)?;
                let moved = self.old.stamp(&name).map_err(failed)?;
                require_same(moved, old).ok_or_else(changed)
            }
            Action::Change { old, new } => {
                let found = here()?;
                if found.is_some_and(|found| found.is_same_file(new)) {
                    return Ok(());
                }
                if found.as_ref() != Some(old) {
                    return Err(changed());
                }
                self.checkout
                    .exchange(path, &self.files, path)
                    .map_err(failed)?;
                let moved = self.files.stamp(path).map_err(failed)?;
                require_same(moved, old).ok_or_else(changed)
            }
            Action::Add { new } => {
                if here()?.is_some_and(|found| found.is_same_file(new)) {
                    return Ok(());
                }
                match self.files.give(path, &self.checkout, path) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(changed()),
                    Err(error) => Err(failed(error)),
                }
            }
            // Both are folders, which the lists of folders take care of.
            Action::DropGitlink | Action::MakeGitlink => Ok(()),
        }
    }

    /// Puts back what was swapped, of those paths that are `wanted`. What the user wrote since stays; the old file is told.
    pub(super) fn back(
        &self,
        plan: &Plan,
        wanted: impl Fn(&Entry) -> bool,
    ) -> io::Result<Vec<Left>> {
        let mut left = Vec::new();
        let chosen: Vec<_> = plan
            .entries
            .iter()
            .rev()
            .filter(|one| wanted(one))
            .collect();
        let is_deletion = |entry: &Entry| matches!(entry.action, Action::Delete { .. });
        for entry in chosen.iter().filter(|entry| !is_deletion(entry)) {
            left.extend(self.back_one(entry)?);
        }
        for folder in plan.made.iter().rev() {
            self.checkout.remove_empty(&folder.0)?;
        }
        for (folder, mode) in &plan.emptied {
            // Something of the user's may be at its place; then what was in it is told below.
            let _ = self.checkout.make(&folder.0, Some(*mode));
        }
        for entry in chosen.iter().filter(|entry| is_deletion(entry)) {
            left.extend(self.back_one(entry)?);
        }
        Ok(left)
    }

    fn back_one(&self, entry: &Entry) -> io::Result<Option<Left>> {
        let path = entry.path.0.as_slice();
        let here = || self.checkout.stamp(path);
        let left = |kept| {
            Ok(Some(Left {
                path: path.to_vec(),
                kept,
            }))
        };
        match &entry.action {
            Action::Delete { place, .. } => {
                let name = name_of(*place);
                if self.old.stamp(&name)?.is_none() {
                    return Ok(None);
                }
                match self.old.give(&name, &self.checkout, path) {
                    Ok(true) => Ok(None),
                    _ => left(Some((Side::Old, name))),
                }
            }
            Action::Change { old, new } => match here()? {
                Some(found) if found.is_same_file(new) => {
                    self.checkout.exchange(path, &self.files, path)?;
                    Ok(None)
                }
                Some(found) if found.inode == old.inode => Ok(None),
                _ => {
                    // Swapped, and written since; or never swapped, and somebody's own anyway.
                    let moved = self.files.stamp(path)?;
                    match moved.is_some_and(|moved| moved.inode == old.inode) {
                        true => left(Some((Side::Files, path.to_vec()))),
                        false => Ok(None),
                    }
                }
            },
            Action::Add { new } => match here()? {
                Some(found) if found.is_same_file(new) => {
                    match self.checkout.give(path, &self.files, path)? {
                        true => Ok(None),
                        false => left(None),
                    }
                }
                Some(found) if found.inode == new.inode => left(None),
                _ => Ok(None),
            },
            Action::DropGitlink | Action::MakeGitlink => Ok(None),
        }
    }

    /// Old files that somebody wrote after they were swapped out, through a handle that was open.
    pub(super) fn written_late(&self, plan: &Plan) -> io::Result<Vec<Left>> {
        let mut late = Vec::new();
        for entry in &plan.entries {
            let path = &entry.path.0;
            let (old, side, name) = match &entry.action {
                Action::Delete { old, place } => (old, Side::Old, name_of(*place)),
                Action::Change { old, .. } => (old, Side::Files, path.clone()),
                _ => continue,
            };
            let found = match side {
                Side::Old => self.old.stamp(&name)?,
                _ => self.files.stamp(&name)?,
            };
            if found.is_some_and(|found| found.inode == old.inode && !found.is_same_file(old)) {
                late.push(Left {
                    path: path.clone(),
                    kept: Some((side, name)),
                });
            }
        }
        Ok(late)
    }

    /// Makes what was swapped survive a power cut.
    pub(super) fn sync(&self, plan: &Plan) -> io::Result<()> {
        let mut folders = BTreeSet::from([b".".to_vec()]);
        for entry in &plan.entries {
            let path = &entry.path.0;
            folders.extend(ancestors(path).last().map(<[u8]>::to_vec));
            if matches!(entry.action, Action::Add { .. } | Action::Change { .. }) {
                self.checkout.sync_file(path)?;
            }
        }
        folders
            .iter()
            .try_for_each(|folder| self.checkout.sync(folder))
    }
}

fn require_same(moved: Option<Stamp>, old: &Stamp) -> Option<()> {
    moved.filter(|moved| moved.is_same_file(old)).map(drop)
}
