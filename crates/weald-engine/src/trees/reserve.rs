//! A little room on the disk, held back so that trees can be removed when there is none left.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::Trees;

/// How much is held back: enough for the records of a removal and a small import.
const RESERVE: usize = 1 << 20;

/// When less is free, the reserve is given up; when this much more is free, it is held back again.
const LOW: u64 = 4 << 20;

impl Trees<'_> {
    fn reserve_file(&self) -> PathBuf {
        self.place.private().join("reserve")
    }

    /// Holds room back, if there is enough.
    pub(crate) fn hold_reserve(&self) {
        let file = self.reserve_file();
        if file.exists()
            || self
                .free_bytes()
                .is_none_or(|free| free < LOW + 2 * RESERVE as u64)
        {
            return;
        }
        // Written, not only sized: a hole holds nothing back. Without a reserve everything works until the disk is full.
        let written = fs::File::create(&file)
            .and_then(|mut file| file.write_all(&vec![b'r'; RESERVE]).and(file.sync_all()));
        if written.is_err() {
            let _ = fs::remove_file(&file);
        }
    }

    /// Gives the reserve up where the disk is full.
    pub(crate) fn release_reserve(&self) {
        if self.free_bytes().is_none_or(|free| free < LOW) {
            let _ = fs::remove_file(self.reserve_file());
        }
    }

    fn free_bytes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(self.place.private()).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
}
