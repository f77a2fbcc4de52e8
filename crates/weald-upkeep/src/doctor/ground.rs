//! What can be looked at without records: git, the disk, weald's private folder, and main's refs, read as files. With records it is
//! known whose a branch is; without them every entry in `worktrees/` is only reported.

use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use weald_core::tree::TreeKind;
use weald_git::{
    BrokenRef, GitError, Registrations, head_fault, last_logged, packed_refs_fault,
    require_version_for, survey_refs,
};

use super::{Checkup, entries, locks, vault};
use crate::Code;
use crate::finding::{Finding, Ledger};
use crate::repair::Repair;
use crate::survey::Survey;
use weald_control::marker::TreeNote;
use weald_control::place::Place;

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

impl Checkup<'_> {
    pub(super) fn check_ground(&self, survey: Option<&Survey<'_>>, ledger: &mut Ledger<'_>) {
        let place = self.place;
        let live = survey.and_then(|survey| Some(survey.live().ok()?.collect::<Vec<_>>()));
        let trees = || live.iter().flatten();
        let roots = trees().filter_map(|tree| tree.path.parent());
        let common = place.repository().common_dir();
        let disks = [common].into_iter().chain(roots).map(Path::to_owned);
        let ours = trees().map(|tree| format!("refs/heads/{}", tree.branch));
        ledger.add(git(place).into_iter().collect());
        ledger.add(disk(disks, self.min_free));
        ledger.add(private(place).into_iter().collect());
        ledger.add(refs(place, &ours.collect()));
        let registrations = Registrations::new(common, &place.private().join("workshop"));
        if live.is_none() && !self.is_copy {
            ledger.add(entries::without_records(&registrations));
        }
        let borrows = match &live {
            Some(live) => live.iter().any(|tree| tree.kind == TreeKind::Sealed),
            None => {
                let known = registrations.list().unwrap_or_default();
                known.iter().any(|entry| TreeNote::of(entry).is_some())
            }
        };
        ledger.add(vault::shape(place, borrows));
        ledger.add(vault::packs(place));
        ledger.note("the vault", vault::refs(place));
        ledger.add(locks::stopped_lockers(place));
    }
}

fn git(place: &Place) -> Option<Finding> {
    let error = require_version_for(place.repository()).err()?;
    let code = match error {
        GitError::TooOld { .. } => Code::GitOld,
        _ => Code::GitMissing,
    };
    let would = "install git, or put the right one first in PATH";
    Some(Finding::new(code, error.to_string(), would))
}

fn private(place: &Place) -> Option<Finding> {
    let private = place.private();
    let found = private.symlink_metadata().ok();
    let found = found.filter(|found| !found.is_symlink())?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        let what = format!("{} belongs to another user", private.display());
        let would = "chown -R it to the user of this repository";
        return Some(Finding::new(Code::PrivateForeign, what, would).at(private));
    }
    (found.mode() & 0o077 != 0).then(|| {
        let mode = found.mode() & 0o777;
        let what = format!("{} is open to others (mode {mode:o})", private.display());
        let finding = Finding::new(Code::PrivateOpen, what, "make it private");
        finding.at(private).repair(Repair::MakePrivate)
    })
}

/// Looks at the file systems of `paths`, each once.
fn disk(paths: impl Iterator<Item = PathBuf>, minimum: u64) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for path in paths {
        let existing = path.ancestors().find(|path| path.exists());
        let Some((path, found)) = existing.and_then(|path| Some((path, statvfs(path).ok()?)))
        else {
            continue;
        };
        if !seen.insert(path.metadata().map_or(0, |found| found.dev())) {
            continue;
        }
        let room = Room {
            bytes: found.f_bavail.saturating_mul(found.f_frsize),
            inodes: found.f_favail,
            all_inodes: found.f_files,
            is_read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
        };
        let codes = judged(room, minimum).into_iter();
        all.extend(codes.map(|code| of_disk(code, path, room)));
    }
    all
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

fn of_disk(code: Code, path: &Path, room: Room) -> Finding {
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
    Finding::new(code, what, would).at(path)
}

/// Refs that name nothing, but for branches in `ours`.
fn refs(place: &Place, ours: &HashSet<String>) -> Vec<Finding> {
    let common = place.repository().common_dir();
    let mut found = Vec::new();
    if let Some(fault) = head_fault(common) {
        let path = common.join("HEAD");
        let what = format!("{}: {fault}", path.display());
        let logged = last_logged(&common.join("logs/HEAD"));
        let said = logged.map_or_else(String::new, |id| {
            format!(" (its log ends at {})", id.as_str())
        });
        let would = format!(
            "write “ref: refs/heads/BRANCH” into it, with the branch that the checkout was on{said}"
        );
        found.push(Finding::new(Code::HeadBroken, what, would).at(&path));
    }
    if place.repository().has_reftable() {
        found.extend(reftable(common));
        return found;
    }
    if let Some((line, what)) = packed_refs_fault(common) {
        let path = common.join("packed-refs");
        let where_in = match line {
            0 => String::new(),
            line => format!(", line {line}"),
        };
        let what = format!("{}{where_in}: {what}", path.display());
        let would = "make a copy, then delete that line; the reflogs have the old values";
        found.push(Finding::new(Code::PackedRefsBroken, what, would).at(&path));
    }
    let broken = survey_refs(common).broken.into_iter();
    let broken = broken.filter(|one| !ours.contains(&one.name));
    found.extend(broken.map(|one| broken_ref(&one)));
    found
}

/// Only the branch of a tree is weald's to repair; what the log of any other says is reported.
fn broken_ref(broken: &BrokenRef) -> Finding {
    let state = match broken.is_blank {
        true => "is empty, as after a power cut",
        false => "does not hold a commit id",
    };
    let what = format!("{} {state}", broken.name);
    let path = broken.path.display();
    let would = match &broken.logged {
        Some(id) => format!(
            "its log ends at {id}: rm {path} && git update-ref {} {id}",
            broken.name,
            id = id.as_str()
        ),
        None => {
            format!("it has no log; find its commits with git fsck --lost-found, then rm {path}")
        }
    };
    Finding::new(Code::RefBroken, what, would).at(&broken.path)
}

fn reftable(common: &Path) -> Option<Finding> {
    let folder = common.join("reftable");
    let list = folder.join("tables.list");
    let text = weald_control::files::read_small(&list, 1 << 20);
    let lost = match text.ok().flatten() {
        None => Some(list),
        Some(text) => {
            let mut tables = text.lines().map(|name| folder.join(name));
            tables.find(|table| !table.is_file())
        }
    };
    lost.map(|path| {
        let what = format!("{} can't be read", path.display());
        let would = "restore it from a copy of the repository; for details: git fsck";
        Finding::new(Code::ReftableBroken, what, would).at(&path)
    })
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
