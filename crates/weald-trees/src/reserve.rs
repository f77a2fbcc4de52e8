//! A little room on the disk, held back so that trees can be removed when there is none left: bytes in one file, and inodes
//! as empty files.
//!
//! Most of it is given up at once, for what a first removal may have to take in; the rest by slices, so that one removal
//! after the other finds room for its records even where others take at once what becomes free.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use super::Trees;
use weald_control::files::open_own;

/// Room for the records of one removal.
const SLICE: u64 = 128 << 10;

/// So much is given up by slices.
const SLICES: u64 = 8 * SLICE;

/// How much is held back: the slices, and a small import.
const RESERVE: u64 = SLICES + (1 << 20);

/// How many inodes are held back, and how many of them one removal gets.
const INODES: u64 = 96;
const INODE_SLICE: u64 = 32;

/// When fewer are free, a slice is given up.
const FEW: u64 = 64;

/// When less is free, the reserve is given up; when this much more is free, it is held back again.
const LOW: u64 = 4 << 20;

/// Room that is held back in weald's private folder.
pub struct Reserve {
    folder: PathBuf,
}

impl Trees<'_> {
    pub fn reserve(&self) -> Reserve {
        let folder = self.place.private().to_owned();
        Reserve { folder }
    }
}

impl Reserve {
    fn file(&self) -> PathBuf {
        self.folder.join("reserve")
    }

    fn reserved(&self) -> u64 {
        fs::symlink_metadata(self.file()).map_or(0, |found| found.len())
    }

    /// Holds room back, if there is enough.
    pub(crate) fn hold(&self) {
        let is_enough = |free| free >= LOW + 2 * RESERVE;
        if self.reserved() < RESERVE && self.free_bytes().is_some_and(is_enough) {
            self.grow();
        }
        if self.free_inodes().is_some_and(|free| free >= 10 * INODES) {
            self.grow_inodes();
        }
    }

    /// Gives some of the reserve up where the disk is full.
    pub fn release(&self) {
        if self.free_inodes().is_some_and(|free| free < FEW) {
            let held = (0..INODES).rev().map(|number| self.inode_file(number));
            let given = held.filter(|file| fs::remove_file(file).is_ok());
            given.take(INODE_SLICE as usize).for_each(drop);
        }
        if self.free_bytes().is_some_and(|free| free >= LOW) {
            return;
        }
        let left = match self.reserved() {
            held if held > SLICES => SLICES,
            held => held.saturating_sub(SLICE),
        };
        let mut options = OpenOptions::new();
        if let Ok(file) = open_own(options.write(true), &self.file()) {
            let _ = file.set_len(left);
        }
    }

    /// Takes back what of the reserve was given up and is still free.
    pub fn regain(&self) {
        if self.file().exists() && self.reserved() < RESERVE {
            self.grow();
        }
        if self.inode_file(0).exists() {
            self.grow_inodes();
        }
    }

    fn inode_file(&self, number: u64) -> PathBuf {
        self.folder.join(format!("inodes/{number}"))
    }

    /// Holds as many inodes back as there are. The last one is given up first, so it tells whether all are held.
    fn grow_inodes(&self) {
        if self.inode_file(INODES - 1).exists() {
            return;
        }
        let _ = fs::create_dir(self.folder.join("inodes"));
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true);
        let mut held = (0..INODES).map(|number| open_own(options, &self.inode_file(number)));
        held.by_ref().find(Result::is_err);
    }

    /// `None` where the file system makes inodes as they are needed.
    fn free_inodes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.folder).ok()?;
        (found.f_files > 0).then_some(found.f_favail)
    }

    /// Whether there is room for records, and for nothing else.
    pub(crate) fn is_cramped(&self) -> bool {
        self.free_bytes().is_some_and(|free| free < 4 * SLICE)
    }

    /// Grows it as far as there is room. Without a reserve everything works until the disk is full.
    fn grow(&self) {
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true);
        let Ok(mut file) = open_own(options, &self.file()) else {
            return;
        };
        // Written, not only sized: a hole holds nothing back.
        let slice = vec![b'r'; SLICE as usize];
        while self.reserved() < RESERVE && file.write_all(&slice).is_ok() {}
        let _ = file.sync_all();
    }

    fn free_bytes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
}
