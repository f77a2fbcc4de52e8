//! One folder a run, which no other run sees, in a folder of the user's that no run sees.
//!
//! ```text
//! runs/5f0c…         the folder: what the run may read, and the broker's socket
//! runs/5f0c….owner   a link whose target names the process that has it; made first, taken away last
//! ```
//!
//! Nothing has to be taken back after a kill: the next run, or `doctor`, deletes what a gone process owned.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use weald_core::session::ProcessIdentity;

use super::{TreeError, Trees, at};

/// A folder of this process's, until it is dropped.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What can't be deleted now is found by the next run.
        let _ = clear(&self.path);
    }
}

impl Trees<'_> {
    /// Makes a folder for a run of this process, and deletes those of processes that are gone.
    pub fn make_run_folder(&self) -> Result<RunFolder, TreeError> {
        for path in self.abandoned_run_folders() {
            let _ = clear(&path);
        }
        let runs = self.place.runs();
        let process = self
            .me()
            .ok_or_else(|| TreeError::unreadable("/proc", "this process can't be identified"))?;
        let made = || -> io::Result<PathBuf> {
            let mut folders = DirBuilder::new();
            folders.mode(0o700);
            folders.recursive(true).create(&runs)?;
            let path = runs.join(random_name()?);
            symlink(serde_json::to_string(&process)?, owner_of(&path))?;
            folders.recursive(false).create(&path)?;
            Ok(path)
        };
        let path = made().map_err(at(&runs))?;
        Ok(RunFolder { path })
    }

    /// Those whose process is gone.
    pub fn abandoned_run_folders(&self) -> Vec<PathBuf> {
        let places = self.place.all_of("runs");
        let entries = places.iter().flat_map(fs::read_dir).flatten();
        let owners = entries.flatten().map(|entry| entry.path());
        let folders = owners.filter_map(|owner| {
            let text = fs::read_link(&owner).ok()?;
            let process: ProcessIdentity = serde_json::from_str(text.to_str()?).ok()?;
            (!self.may_live(&process)).then(|| owner.with_extension(""))
        });
        folders.collect()
    }

    /// Deletes one whose process is gone.
    pub fn clear_run_folder(&self, path: &Path) -> Result<(), TreeError> {
        clear(path).map_err(at(path))
    }
}

fn clear(path: &Path) -> io::Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    gone(fs::remove_dir_all(path))?;
    gone(fs::remove_file(owner_of(path)))
}

fn owner_of(path: &Path) -> PathBuf {
    path.with_added_extension("owner")
}

/// Short, because the path of a socket must be; nobody has to be unable to guess it.
fn random_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}
