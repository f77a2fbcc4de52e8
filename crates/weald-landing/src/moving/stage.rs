//! The stage: where the new files wait, and the old ones after the swap.
//!
//! It lies on the checkout's own file system, because files get in and out by renames. The index waits beside the real
//! one for its last rename: as long as it is in either place, the index was not replaced. The plan lies in weald's own
//! folder, where neither an agent nor a commit can write one.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use weald_core::id::LandingId;
use weald_git::copy_index;

use super::checkout::Checkout;
use super::originals::Originals;
use super::plan::Plan;
use crate::refusal::STAGE_PREFIX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stage {
    pub path: PathBuf,
    pub index: PathBuf,
    /// Where the new index waits for the last rename.
    pub pending: PathBuf,
    plan: PathBuf,
}

/// Where plans are, in weald's own folder.
pub fn plans(private: &Path) -> PathBuf {
    private.join("moves")
}

/// Whether files can be renamed from one directory to the other.
fn share_a_mount(one: &Path, two: &Path) -> bool {
    let mount = |path: &Path| {
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        Some((found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor))
    };
    mount(one).is_some_and(|one| Some(one) == mount(two))
}

impl Stage {
    /// The stage of a landing in a checkout; nothing is made yet.
    pub(super) fn choose(private: &Path, checkout: &Checkout, landing: LandingId) -> Self {
        let name = format!("{STAGE_PREFIX}{landing}");
        let path = match share_a_mount(&checkout.git_dir, &checkout.path) {
            true => checkout.git_dir.join(name),
            false => checkout.path.join(format!(".{name}")),
        };
        Self::at(private, path, checkout, landing)
    }

    /// The stage at a known place.
    pub(super) fn at(
        private: &Path,
        path: PathBuf,
        checkout: &Checkout,
        landing: LandingId,
    ) -> Self {
        Self {
            plan: plans(private).join(format!("{landing}.plan")),
            path,
            index: checkout.git_dir.join("index"),
            pending: checkout
                .git_dir
                .join(format!("{STAGE_PREFIX}{landing}.index")),
        }
    }

    pub(super) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    pub(super) fn old(&self) -> PathBuf {
        self.path.join("old")
    }

    /// The index in the making.
    pub(super) fn new_index(&self) -> PathBuf {
        self.path.join("index.new")
    }

    /// The index as it was.
    pub(super) fn old_index(&self) -> PathBuf {
        self.path.join("index.old")
    }

    /// Where the plan is.
    pub(super) fn plan(&self) -> PathBuf {
        self.plan.clone()
    }

    /// Where the user's own files are while git stashes what they hold.
    pub(super) fn originals(&self) -> PathBuf {
        self.path.join("originals")
    }

    /// What is known of those, in weald's own folder as the plan is.
    pub(super) fn originals_note(&self) -> PathBuf {
        self.plan.with_extension("originals")
    }

    /// Makes it anew, with the index as it was and the one in the making.
    pub(super) fn begin(&self) -> io::Result<()> {
        for folder in [self.files(), self.old()] {
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.path)?;
        builder.create(self.old())?;
        // Folders in here become folders of the checkout.
        builder.mode(0o777).create(self.files())?;
        for left in [self.old_index(), self.new_index()] {
            match fs::remove_file(left) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        match copy_index(&self.index, &self.new_index()) {
            Ok(()) => self.keep_old_index(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// An index is never written in place, only replaced, so a second name keeps it.
    fn keep_old_index(&self) -> io::Result<()> {
        if fs::hard_link(&self.index, self.old_index()).is_ok() {
            return Ok(());
        }
        copy_index(&self.index, &self.old_index())?;
        File::open(self.old_index())?.sync_all()
    }

    /// Writes the plan down, so that it survives.
    pub(super) fn write_plan(&self, plan: &Plan) -> io::Result<()> {
        self.write_down(&self.plan(), &serde_json::to_vec(plan)?)
    }

    /// Writes down, in weald's own folder, what is known of the user's own files.
    pub(super) fn write_originals(&self, known: &Originals) -> io::Result<()> {
        self.write_down(&self.originals_note(), &serde_json::to_vec(known)?)
    }

    fn write_down(&self, place: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = self.plan.parent().unwrap_or(Path::new("/"));
        if !folder.is_dir() {
            DirBuilder::new().mode(0o700).create(folder)?;
            File::open(folder.parent().unwrap_or(folder))?.sync_all()?;
        }
        let building = self.plan.with_extension("new");
        let mut file = File::create(&building)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&building, place)?;
        File::open(folder)?.sync_all()
    }

    /// Whether it is a folder, and no link to one.
    pub(super) fn is_there(&self) -> bool {
        let found = self.path.symlink_metadata();
        found.is_ok_and(|found| found.is_dir())
    }

    /// Puts the new index in the place of the real one, by one rename.
    pub(super) fn replace_index(&self, new: &Path) -> io::Result<()> {
        if let Ok(known) = self.index.metadata() {
            fs::set_permissions(new, known.permissions())?;
        }
        File::open(new)?.sync_all()?;
        if fs::rename(new, &self.pending).is_err() {
            // On another file system.
            fs::copy(new, &self.pending)?;
            File::open(&self.pending)?.sync_all()?;
            fs::remove_file(new)?;
        }
        fs::rename(&self.pending, &self.index)?;
        let folder = self.index.parent().unwrap_or(Path::new("/"));
        File::open(folder)?.sync_all()
    }

    /// Whether the new index is not in place yet.
    pub(super) fn holds_index(&self) -> bool {
        self.new_index().exists() || self.pending.exists()
    }

    /// Takes it away. The plan goes first: without one there is nothing to put back.
    pub(super) fn remove(&self) -> io::Result<()> {
        for file in [self.plan(), self.originals_note(), self.pending.clone()] {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
