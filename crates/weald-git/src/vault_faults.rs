//! What can be wrong with the vault, and how it is made whole again. Everything in it is weald's own.
//!
//! Nothing of it is thrown away for being broken: a pack that can't be read is put aside, and what main has is fed again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git_files::{durable, read_small};
use crate::object_stores::packs_of;
use crate::process::GitError;
use crate::ref_faults::{BrokenRef, survey_refs};
use crate::reference::MainRef;
use crate::refs::{Expected, RefChange, list_tips, update_refs};
use crate::vault::{Vault, VaultError};

/// After so long nobody writes a pack any more.
const PACK_STALE: Duration = Duration::from_secs(6 * 3600);

/// A pack smaller than its own head and checksum.
const SHORTEST_PACK: u64 = 32;

/// A file in the vault that can't be what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultFault {
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: &'static str,
}

impl Vault {
    /// Whether there is anything of it.
    pub fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// What keeps git from taking it for a repository.
    pub fn shape_faults(&self) -> Vec<VaultFault> {
        let mut faults = Vec::new();
        let mut note = |path: PathBuf, what| faults.push(VaultFault { path, what });
        for folder in ["objects", "objects/pack", "refs"] {
            let path = self.path.join(folder);
            if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                note(path, "is no directory");
            }
        }
        for (file, word) in [("HEAD", "ref: refs/"), ("config", "bare = true")] {
            let path = self.path.join(file);
            let is_link = path.is_symlink();
            match read_small(&path) {
                Err(_) if !is_link && path.symlink_metadata().is_err() => note(path, "is missing"),
                Ok(bytes) if bytes.is_empty() => note(path, "is empty"),
                Ok(bytes) if !is_link && String::from_utf8_lossy(&bytes).contains(word) => {}
                _ => note(path, "is not what weald wrote"),
            }
        }
        // There may be none; opening what is no file may wait for ever.
        let path = self.path.join("packed-refs");
        let found = path.symlink_metadata();
        if found.is_ok_and(|found| !found.is_file()) {
            note(path, "is no file");
        }
        faults
    }

    /// Writes again what [`Self::shape_faults`] found; what is in the way goes to `aside`.
    pub fn repair_shape(&self, aside: &Path) -> Result<(), VaultError> {
        self.locked(|| {
            for fault in self.shape_faults() {
                self.put_aside(&fault.path, aside)?;
                let written = match fault.path.file_name().and_then(OsStr::to_str) {
                    Some("HEAD") => durable(&fault.path, b"ref: refs/heads/none\n"),
                    Some("packed-refs") => Ok(()),
                    Some("config") => durable(&fault.path, self.config()?.as_bytes()),
                    _ => fs::create_dir_all(&fault.path),
                };
                written.map_err(VaultError::file(&fault.path))?;
            }
            Ok(())
        })
    }

    /// Packs and indexes that lack their other half, or hold nothing.
    pub fn broken_packs(&self) -> Vec<VaultFault> {
        let folder = self.objects().join("pack");
        let mut faults = Vec::new();
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let other = match path.extension().and_then(OsStr::to_str) {
                Some("pack") => "idx",
                Some("idx") => "pack",
                _ => continue,
            };
            let size = path.symlink_metadata().map_or(0, |found| found.len());
            let has_other = path.with_extension(other).symlink_metadata().is_ok();
            let what = match (size < SHORTEST_PACK, has_other, other) {
                (true, ..) => "holds nothing",
                (_, false, "pack") => "is the index of a pack that is gone",
                // The pack comes first, then its index.
                (_, false, _) if !is_older(&path, PACK_STALE) => continue,
                (_, false, _) => "has no index",
                _ => continue,
            };
            faults.push(VaultFault { path, what });
        }
        faults.sort_by(|one, other| one.path.cmp(&other.path));
        faults
    }

    /// Puts such packs aside, and brings everything that main has, again.
    pub fn repair_packs(&self, refs: &[MainRef], aside: &Path) -> Result<(), VaultError> {
        self.locked(|| {
            for fault in self.broken_packs() {
                self.put_aside(&fault.path, aside)?;
            }
            Ok(())
        })?;
        self.feed_again(refs)
    }

    /// Brings everything that main has, whatever was brought before; makes the vault if there is none.
    pub fn feed_again(&self, refs: &[MainRef]) -> Result<(), VaultError> {
        for stamp in ["fed", "covered"] {
            let _ = fs::remove_file(self.path.join(stamp));
        }
        self.require(refs, &[]).map(drop)
    }

    /// Packs in the making that nobody makes any more.
    pub fn stale_packs(&self) -> Vec<PathBuf> {
        let folders = [self.objects(), self.objects().join("pack")];
        let entries = folders
            .iter()
            .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let is_temporary = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name.starts_with("tmp_") || name.ends_with(".copy")
        };
        let paths = entries.map(|entry| entry.path()).filter(is_temporary);
        paths.filter(|path| is_older(path, PACK_STALE)).collect()
    }

    /// Refs of the vault that name nothing.
    pub fn broken_refs(&self) -> Vec<BrokenRef> {
        survey_refs(&self.path).broken
    }

    /// Refs whose object is not here.
    pub fn dangling_pins(&self) -> Result<Vec<MainRef>, VaultError> {
        let mut pins = list_tips(&self.path, &["refs/"])?;
        let ids: BTreeSet<String> = pins.iter().map(|pin| pin.commit.clone()).collect();
        let missing = self.missing(ids.into_iter().collect())?;
        let missing: BTreeSet<String> = missing.into_iter().collect();
        pins.retain(|pin| missing.contains(&pin.commit));
        Ok(pins)
    }

    /// Drops a ref whose object is not here.
    pub fn drop_pin(&self, pin: &MainRef) -> Result<(), GitError> {
        let gone = RefChange {
            name: pin.name.clone(),
            new: None,
            expected: Expected::Holds(pin.commit.clone()),
        };
        update_refs(&self.path, &[gone], "weald: doctor")
    }

    /// How many bytes its packs take, and how many main's.
    pub fn sizes(&self) -> (u64, u64) {
        let size = |store: PathBuf| -> u64 {
            let packs = packs_of(&[store]).into_iter();
            packs
                .filter_map(|pack| Some(pack.metadata().ok()?.len()))
                .sum()
        };
        (size(self.objects()), size(self.main.join("objects")))
    }

    fn put_aside(&self, path: &Path, aside: &Path) -> Result<(), VaultError> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        set_aside(path, aside)
            .map(drop)
            .map_err(VaultError::file(path))
    }
}

/// Moves something that is in the way into a folder on the same file system, under a name that is free there.
pub fn set_aside(path: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..10_000 {
        let free = folder.join(format!("{name}.{number}"));
        match renameat_with(CWD, path, CWD, &free, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(free),
            Err(rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(std::io::Error::other("no name is free there"))
}

pub(crate) fn is_older(path: &Path, age: Duration) -> bool {
    let changed = path.symlink_metadata().and_then(|found| found.modified());
    changed.is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed > age))
}
