//! The user's files themselves, while git stashes their content.
//!
//! A stash holds content as git keeps it: line ends may be others afterwards, modes are, links to the same file are gone.
//! So each file that is stashed gets a second name first, and comes back as it was wherever the landing did not touch it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::stage::Stage;
use super::stash_limits::unstashable;
use crate::trees::{Trees, at};

impl Trees<'_> {
    /// Gives every changed file, and every untracked one if the stash takes those, a second name in the stage. One that can't
    /// get one refuses.
    pub(super) fn keep_originals(
        &self,
        checkout: &Checkout,
        stage: &Stage,
        untracked: bool,
    ) -> Result<(), LandError> {
        let folder = originals(stage);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let which = if untracked { "-uall" } else { "-uno" };
        let args = ["status", "--porcelain", "-z", "--no-renames", which];
        for (number, line) in self.paths_in_checkout(checkout, &args)?.iter().enumerate() {
            let path = Path::new(OsStr::from_bytes(line.get(3..).unwrap_or_default()));
            let place = checkout.path.join(path);
            // A deleted file has nothing that a stash would lose; a folder is a repository of its own, which git leaves alone.
            if place
                .symlink_metadata()
                .map_or(true, |found| found.is_dir())
            {
                continue;
            }
            if let Err(error) = fs::hard_link(&place, folder.join(number.to_string())) {
                let why = format!("{} can't be kept as it is: {error}", path.display());
                let paths = vec![path.as_os_str().as_bytes().to_vec()];
                return Err(unstashable(checkout, &why, "status", paths));
            }
            let name = folder.join(format!("{number}.path"));
            fs::write(&name, path.as_os_str().as_bytes()).map_err(at(&name))?;
        }
        Ok(())
    }

    /// Puts files back as they were, after a stash was put back, where a landing that `moved` did not touch them.
    pub(super) fn restore_originals(
        &self,
        moved: Option<&Move>,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<(), LandError> {
        let touched = match moved {
            Some(wanted) => self.touched_by(wanted)?,
            None => Vec::new(),
        };
        let touched: BTreeSet<&[u8]> = touched.iter().map(|one| one.path.as_slice()).collect();
        let folder = originals(stage);
        for entry in fs::read_dir(&folder).map_err(at(&folder))?.flatten() {
            let name = entry.path();
            if name.extension().is_none_or(|kind| kind != "path") {
                continue;
            }
            let bytes = fs::read(&name).map_err(at(&name))?;
            if touched.contains(bytes.as_slice()) {
                continue;
            }
            let (kept, path) = (
                name.with_extension(""),
                PathBuf::from(std::ffi::OsString::from_vec(bytes)),
            );
            let place = checkout.path.join(path);
            if !is_same(&kept, &place) {
                fs::rename(&kept, &place).map_err(at(&place))?;
            }
        }
        Ok(())
    }
}

fn originals(stage: &Stage) -> PathBuf {
    stage.path.join("originals")
}

/// Whether two names lead to the same file, or to files of which nothing differs.
fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(first), Ok(second)) = (one.symlink_metadata(), other.symlink_metadata()) else {
        return false;
    };
    if (first.dev(), first.ino()) == (second.dev(), second.ino()) {
        return true;
    }
    let alone = first.nlink() <= 2;
    alone
        && first.mode() == second.mode()
        && match first.is_symlink() {
            true => matches!((fs::read_link(one), fs::read_link(other)), (Ok(a), Ok(b)) if a == b),
            false => matches!((fs::read(one), fs::read(other)), (Ok(a), Ok(b)) if a == b),
        }
}
