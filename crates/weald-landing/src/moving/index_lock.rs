//! The lock of a checkout's index: git's own `index.lock`, with a text by which it is known as weald's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use weald_core::id::LandingId;

use super::super::LandError;
use crate::refusal::Refusal;
use weald_control::files::read_small;
use weald_trees::at;

/// How often somebody else's lock is looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// What the lock of any landing begins with.
const TEXT: &str = "weald landing ";

/// The index's lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct IndexLock {
    path: PathBuf,
    text: String,
}

/// Where a lock is written before it counts.
pub(super) fn building(git_dir: &Path, landing: LandingId) -> PathBuf {
    git_dir.join(format!("weald-landing-{landing}.lock"))
}

/// The landing that holds the index of a git directory.
pub(super) fn holder(git_dir: &Path) -> Option<LandingId> {
    let text = read_small(&git_dir.join("index.lock"), 4096)
        .ok()
        .flatten()?;
    let number = text.strip_prefix(TEXT)?.split_whitespace().next()?;
    number.parse().ok().map(LandingId)
}

/// What a lock of this process says: one that wakes up late must not take another's away.
fn text_of(landing: LandingId) -> String {
    format!("{TEXT}{landing} {}\n", std::process::id())
}

/// Whether this process holds it, for this landing.
pub(super) fn is_own(git_dir: &Path, landing: LandingId) -> bool {
    let own = text_of(landing);
    let found = read_small(&git_dir.join("index.lock"), 4096).ok().flatten();
    found.is_some_and(|found| found == own)
}

impl IndexLock {
    /// Takes the lock; waits for a git that holds it, but not longer than `wait`. One of this very process is taken over.
    pub(super) fn take(
        git_dir: &Path,
        landing: LandingId,
        wait: Duration,
    ) -> Result<Self, LandError> {
        let building = building(git_dir, landing);
        let lock = Self {
            path: git_dir.join("index.lock"),
            text: text_of(landing),
        };
        if lock.is_held() {
            return Ok(lock);
        }
        let deadline = Instant::now() + wait;
        // Whole or not at all: nobody has to wonder whose an empty lock is.
        fs::write(&building, &lock.text).map_err(at(&building))?;
        loop {
            match renameat_with(CWD, &building, CWD, &lock.path, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(lock),
                Err(rustix::io::Errno::EXIST) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(error) => {
                    let _ = fs::remove_file(&building);
                    return Err(refusal(&lock.path, error.into()));
                }
            }
        }
    }

    /// Takes the lock that a process which is gone, or has lost the queue, made for a landing. It is never not there.
    pub(super) fn take_over(git_dir: &Path, landing: LandingId) -> Result<Self, LandError> {
        let building = building(git_dir, landing);
        let lock = Self {
            path: git_dir.join("index.lock"),
            text: text_of(landing),
        };
        fs::write(&building, &lock.text).map_err(at(&building))?;
        fs::rename(&building, &lock.path).map_err(at(&lock.path))?;
        Ok(lock)
    }

    /// Whether it is still there, and still this one.
    pub(super) fn is_held(&self) -> bool {
        let text = read_small(&self.path, 4096).ok().flatten();
        text.is_some_and(|text| text == self.text)
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if self.is_held() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn refusal(path: &Path, error: io::Error) -> LandError {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return at(path)(error).into();
    }
    Refusal::IndexLocked(path.display().to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m7_a_lock_of_somebody_else_is_waited_for_and_never_taken_away() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("index.lock");
        let take = |id| IndexLock::take(home.path(), LandingId(id), Duration::from_millis(30));
        let lock = take(7).unwrap();
        assert_eq!(holder(home.path()), Some(LandingId(7)));
        let refused = take(8).unwrap_err();
        assert!(
            matches!(refused, LandError::Refused(it) if matches!(*it, Refusal::IndexLocked(..)))
        );
        drop(lock);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        // Somebody deleted it and took their own.
        let lock = take(7).unwrap();
        fs::write(&file, "DIRC").unwrap();
        assert!(!lock.is_held());
        drop(lock);
        assert_eq!(fs::read(&file).unwrap(), b"DIRC");
        assert!(take(7).is_err());
    }
}
