//! Where temporary files of a run go that has no private /tmp (level landlock): a folder of its own, which goes with it.
//!
//! Whoever made one holds a lock on it. What is not locked is left from a launcher that was killed, and goes when the next
//! one is made.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;

use crate::deletion::delete_folder;
use crate::error::SandboxError;
use crate::policy::Policy;

const PREFIX: &str = "weald-run-";

/// One this young may not be locked yet.
const FRESH: Duration = Duration::from_secs(60);

/// How many are made before a process that locks them all has won.
const ATTEMPTS: usize = 100;

/// A folder that is deleted with this.
pub(crate) struct Temporary {
    path: PathBuf,
    _lock: File,
}

impl Temporary {
    /// Makes one, but not in a directory that the run writes: an earlier run may have put a link there.
    pub(crate) fn new(policy: &Policy) -> Result<Self, SandboxError> {
        let revealed = policy.reveal.iter().filter(|it| it.writable);
        let written: Vec<_> = policy
            .write
            .iter()
            .chain(revealed.map(|it| &it.path))
            .collect();
        let places = [std::env::temp_dir(), PathBuf::from("/tmp")];
        let place = places
            .iter()
            .filter_map(|place| place.canonicalize().ok())
            .find(|place| !written.iter().any(|path| place.starts_with(path)));
        let place = place.ok_or_else(|| SandboxError::Directory {
            path: places[1].clone(),
            source: io::Error::other("temporary files need a directory that the run can't write"),
        })?;
        clear_left(&place);
        made_in(&place).map_err(|source| SandboxError::Directory {
            path: place.clone(),
            source,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = delete_folder(&self.path);
    }
}

/// Makes one, and waits for nobody: other runs can open it and be quicker with a lock, so that one is left to them.
fn made_in(place: &Path) -> io::Result<Temporary> {
    for _ in 0..ATTEMPTS {
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(place)?;
        let lock = File::open(folder.path())?;
        if lock.try_lock().is_ok() {
            return Ok(Temporary {
                path: folder.keep(),
                _lock: lock,
            });
        }
    }
    Err(io::Error::other("other processes lock every new folder"))
}

/// Deletes what launchers of this user left that were killed.
fn clear_left(place: &Path) {
    let is_ours = |entry: &fs::DirEntry| {
        let found = entry.metadata().ok()?;
        let age = found.modified().ok()?.elapsed().ok()?;
        let named = entry.file_name().to_str()?.starts_with(PREFIX);
        Some(named && found.is_dir() && found.uid() == geteuid().as_raw() && age > FRESH)
    };
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_ours(entry) == Some(true)) {
        let path = entry.path();
        if File::open(&path).is_ok_and(|folder| folder.try_lock().is_ok()) {
            let _ = delete_folder(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_it_lies_outside_of_what_is_written_and_goes_whatever_is_in_it() {
        let tree = tempfile::tempdir().unwrap();
        let made = Temporary::new(&Policy::new(tree.path())).unwrap();
        let path = made.path().to_owned();
        fs::create_dir_all(path.join("closed/deep")).unwrap();
        fs::set_permissions(path.join("closed"), Permissions::from_mode(0o500)).unwrap();
        drop(made);
        assert!(!path.exists());
        let everywhere = Policy::new(Path::new("/"));
        assert!(Temporary::new(&everywhere).is_err());
    }

    #[test]
    fn x4_what_a_killed_launcher_left_goes_and_what_is_used_stays() {
        let place = tempfile::tempdir().unwrap();
        let old = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            let folder = File::open(&path).unwrap();
            let then = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            folder.set_modified(then).unwrap();
            (path, folder)
        };
        let (left, _) = old("weald-run-left");
        let (used, folder) = old("weald-run-used");
        folder.lock().unwrap();
        let (foreign, _) = old("other-run");
        let fresh = place.path().join("weald-run-fresh");
        fs::create_dir(&fresh).unwrap();
        clear_left(place.path());
        let there = [&left, &used, &foreign, &fresh].map(|path| path.exists());
        assert_eq!(there, [false, true, true, true]);
    }
}
