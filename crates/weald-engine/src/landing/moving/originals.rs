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
use crate::trees::{Trees, at};

/// How many files are kept like that; with more, a stash is what it is.
const MOST: usize = 10_000;

impl Trees<'_> {
    /// Gives every changed or untracked file a second name in the stage.
    pub(super) fn keep_originals(
        &self,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<(), LandError> {
        let folder = originals(stage);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let args = ["status", "--porcelain", "-z", "--no-renames", "-uall"];
        let answer = self.git_in_checkout(checkout, &args)?;
        let changed = answer.stdout.split(|byte| *byte == 0);
        let paths = changed.filter_map(|line| line.get(3..));
        for (number, path) in paths.take(MOST).enumerate() {
            let path = Path::new(OsStr::from_bytes(path));
            let kept = folder.join(number.to_string());
            // One that is gone, or is no file, has nothing that a stash would lose.
            if fs::hard_link(checkout.path.join(path), &kept).is_ok() {
                let name = folder.join(format!("{number}.path"));
                fs::write(&name, path.as_os_str().as_bytes()).map_err(at(&name))?;
            }
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
