//! The private home of an agent: made before it starts, without what its user logs in with after it ended.
//!
//! A supervised agent and one that a person runs may share a worktree's home, so everybody holds a lock beside it, and
//! the login goes with the last one. A new one waits for that, and copies it again.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use weald_control::files::open_lock;

use super::AgentError;
use super::drivers::Driver;
use super::error::at;

/// Whether an agent uses a home: its login stays.
pub fn is_home_in_use(home: &Path) -> bool {
    let place = home.with_extension("lock");
    place.exists() && open_lock(&place).is_ok_and(|lock| lock.try_lock().is_err())
}

/// A home in use.
pub struct AgentHome {
    path: PathBuf,
    lock: File,
}

impl AgentHome {
    /// Makes it if it is not there.
    pub(super) fn open(path: PathBuf) -> Result<Self, AgentError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&path).map_err(at(&path))?;
        let place = path.with_extension("lock");
        let lock = open_lock(&place).map_err(at(&place))?;
        // Held alone only while files are deleted.
        lock.lock_shared().map_err(at(&place))?;
        Ok(Self { path, lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Nothing that a user logs in with stays behind. Answers what could not be removed.
    pub(super) fn leave(self, driver: &dyn Driver) -> Vec<String> {
        if self.lock.try_lock().is_err() {
            return Vec::new();
        }
        driver.forget(&self.path)
    }
}
