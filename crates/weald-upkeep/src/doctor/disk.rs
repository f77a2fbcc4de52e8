//! Room on the file systems that weald writes to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use super::Code;
use super::finding::{Finding, Ledger};

/// With fewer free files than this the next checkout may fail.
const FEW_INODES: u64 = 10_000;

/// What a file system says of itself.
#[derive(Debug, Clone, Copy)]
struct Room {
    bytes: u64,
    inodes: u64,
    /// Zero where files are not counted.
    all_inodes: u64,
    is_read_only: bool,
}

/// Looks at the file systems of `paths`, each once.
pub(super) fn check_room(ledger: &mut Ledger, paths: &[PathBuf], minimum: u64) {
    let mut seen = BTreeSet::new();
    for path in paths {
        let existing = path.ancestors().find(|path| path.exists());
        let Some((path, found)) = existing.and_then(|path| Some((path, statvfs(path).ok()?)))
        else {
            continue;
        };
        use std::os::unix::fs::MetadataExt;
        if !seen.insert(path.metadata().map_or(0, |found| found.dev())) {
            continue;
        }
        let room = Room {
            bytes: found.f_bavail.saturating_mul(found.f_frsize),
            inodes: found.f_favail,
            all_inodes: found.f_files,
            is_read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
        };
        for code in judged(room, minimum) {
            tell(ledger, code, path, room);
        }
    }
}

fn judged(room: Room, minimum: u64) -> Vec<Code> {
    let mut found = Vec::new();
    if room.is_read_only {
        found.push(Code::ReadOnly);
    }
    if room.bytes < minimum {
        found.push(Code::DiskLow);
    }
    if room.all_inodes > 0 && room.inodes < FEW_INODES {
        found.push(Code::InodesLow);
    }
    found
}

fn tell(ledger: &mut Ledger, code: Code, path: &Path, room: Room) {
    let at = path.display();
    let (what, would) = match code {
        Code::ReadOnly => (
            format!("the file system of {at} is read-only"),
            "see the kernel log for the reason, then remount it read-write",
        ),
        Code::InodesLow => (
            format!(
                "{} more files can be created on the file system of {at}",
                room.inodes
            ),
            "to see where files are: weald clean --usage; to find worktrees to remove: weald clean",
        ),
        _ => (
            format!("{} MiB are free at {at}", room.bytes >> 20),
            "to see what takes space: weald clean --usage; to find worktrees to remove: weald clean",
        ),
    };
    ledger.note(Finding::new(code, what, would).at(path));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z2_a_full_a_crowded_and_a_read_only_disk_are_told_apart() {
        let fine = Room {
            bytes: 10 << 30,
            inodes: 1_000_000,
            all_inodes: 2_000_000,
            is_read_only: false,
        };
        let full = Room { bytes: 5, ..fine };
        let crowded = Room { inodes: 9, ..fine };
        let uncounted = Room {
            inodes: 0,
            all_inodes: 0,
            ..fine
        };
        let read_only = Room {
            is_read_only: true,
            ..full
        };
        let cases: [(Room, &[Code]); 5] = [
            (fine, &[]),
            (uncounted, &[]),
            (full, &[Code::DiskLow]),
            (crowded, &[Code::InodesLow]),
            (read_only, &[Code::ReadOnly, Code::DiskLow]),
        ];
        for (room, expected) in cases {
            assert_eq!(judged(room, 1 << 30), expected, "{room:?}");
        }
    }
}
