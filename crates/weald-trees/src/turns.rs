//! Turns at a tree's snapshots: two that looked at the same work at once would both keep it.
//!
//! A turn is a lock in the workshop. One process at most waits for it, which a second lock says: it has not looked yet, so it
//! will see whatever a later one would. And nobody waits for long, because a holder may be stopped, or run at the lowest
//! priority on a busy machine: the same snapshot twice does no harm.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use weald_core::tree::Tree;

use super::{TreeError, Trees, at};
use weald_control::files;

/// How long a turn is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often whoever waits looks.
const PAUSE: Duration = Duration::from_millis(50);

/// What came of waiting for a turn.
pub(super) enum Waited {
    Had(File),
    /// It was not had in time.
    Overdue,
    /// Another process waits for it, and begins to look later.
    Another,
}

/// The turns at the snapshots of one tree.
pub(super) struct SnapshotTurns {
    /// The lock.
    path: PathBuf,
}

impl Trees<'_> {
    pub(super) fn snapshot_turns(&self, tree: &Tree) -> SnapshotTurns {
        let path = self.workshop().join(format!("snapshot-{}", tree.id));
        SnapshotTurns { path }
    }
}

impl SnapshotTurns {
    /// Takes a turn; `None` while somebody else has it.
    pub(super) fn take(&self) -> Result<Option<File>, TreeError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder).map_err(at(&self.path))?;
        taken(&self.path)
    }

    /// Waits for a turn, unless another process does.
    pub(super) fn wait(&self) -> Result<Waited, TreeError> {
        if let Some(turn) = self.take()? {
            return Ok(Waited::Had(turn));
        }
        let next = self.path.with_extension("next");
        let Some(waiting) = taken(&next)? else {
            return Ok(match is_stuck(&next) {
                true => Waited::Overdue,
                false => Waited::Another,
            });
        };
        // Since when somebody waits.
        waiting.write_all_at(b"waits\n", 0).map_err(at(&next))?;
        let until = Instant::now() + PATIENCE;
        let waited = loop {
            match self.take()? {
                Some(turn) => break Waited::Had(turn),
                None if Instant::now() >= until => break Waited::Overdue,
                None => thread::sleep(PAUSE),
            }
        };
        let _ = fs::remove_file(&next);
        drop(waiting);
        Ok(waited)
    }

    /// Nothing is left of whoever took turns, unless another one has it now.
    pub(super) fn forget(&self) {
        if self.path.exists()
            && let Ok(Some(turn)) = self.take()
        {
            let _ = fs::remove_file(&self.path);
            drop(turn);
        }
    }
}

/// Takes a lock; `None` while somebody has it, or took it away: that excludes nobody.
fn taken(path: &Path) -> Result<Option<File>, TreeError> {
    let file = files::open_lock(path).map_err(at(path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file).filter(|file| is_at(file, path))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(at(path)(error)),
    }
}

/// Whether somebody waits for longer than anybody does: stopped, and of no use to others.
fn is_stuck(next: &Path) -> bool {
    let since = fs::symlink_metadata(next).and_then(|found| found.modified());
    let waits = since.ok().and_then(|since| since.elapsed().ok());
    waits.is_some_and(|waits| waits > 2 * PATIENCE)
}

/// Whether a file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: fs::Metadata| (found.dev(), found.ino());
    let here = file.metadata().map(number).ok();
    here.is_some() && fs::symlink_metadata(path).map(number).ok() == here
}
