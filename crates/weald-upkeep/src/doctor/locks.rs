//! Lock files of git in main. One is weald's only if an operation on record names it; any other is told, with its age and
//! whether a process has it open.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weald_core::tree::{Tree, TreeStatus};
use weald_git::{LockFile, RefName, RefSurvey, lock_at, locks_in};

use super::finding::{Finding, Ledger};
use super::{Code, Round, Severity};
use weald_control::files;
use weald_control::place::Place;
use weald_landing::FENCE;
use weald_trees::{TreeError, at};

/// No git needs a lock for so long.
const STALE: Duration = Duration::from_secs(600);

/// From when on the lock of refs in tables is taken for left over, where an operation was cut short.
const TABLES_STALE: Duration = Duration::from_secs(60);

/// What the lock of a landing begins with; the landing answers for it.
const OF_LANDING: &str = "weald landing ";

impl Round<'_, '_> {
    /// Locks of branches whose tree's creation or removal was cut short: the operation can't be ended with them.
    pub(super) fn clear_named_locks(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let common = trees.place.repository().common_dir();
        for tree in trees.records()? {
            let is_unfinished = tree.status == TreeStatus::Creating || tree.removing;
            let is_gone = tree
                .worker
                .as_ref()
                .is_some_and(|worker| !trees.may_live(worker));
            let Some(branch) = RefName::branch(&tree.branch) else {
                continue;
            };
            if !is_unfinished || !is_gone {
                continue;
            }
            // The lock of refs in tables is everybody's, so a young one is somebody else's.
            let tables = common.join("reftable/tables.list.lock");
            let is_old = |found: &LockFile| found.path != tables || found.age > TABLES_STALE;
            let held = [branch.lock_in(common), tables.clone()];
            let held = held.iter().filter_map(|path| lock_at(path));
            for lock in held.filter(is_old).map(|found| found.path) {
                self.clear_lock_of(&tree, &lock);
            }
        }
        Ok(())
    }

    fn clear_lock_of(&mut self, tree: &Tree, lock: &Path) {
        if !openers(lock).is_empty() {
            return;
        }
        let what = format!(
            "{} is left over from the unfinished operation on worktree {}",
            lock.display(),
            tree.name
        );
        let finding = Finding::new(Code::LockStale, what, "delete it");
        let finding = finding.at(lock).of(tree);
        self.note(finding.repair(|| fs::remove_file(lock).map_err(at(lock))));
    }
}

/// Every lock of main that is older than any git needs it.
pub(super) fn check_locks(ledger: &mut Ledger, place: &Place, survey: &RefSurvey) {
    let common = place.repository().common_dir();
    let mut locks = locks_in(common);
    locks.extend(survey.locks.iter().cloned());
    locks.extend(locks_in(&common.join("reftable")));
    let entries = fs::read_dir(common.join("worktrees")).into_iter().flatten();
    for entry in entries.flatten() {
        locks.extend(locks_in(&entry.path()));
        locks.extend(locks_in(&entry.path().join("reftable")));
    }
    let fence = common.join(format!("{FENCE}.lock"));
    for lock in locks.into_iter().filter(is_stale) {
        let path = lock.path.display();
        let age = told_age(lock.age);
        if lock.path == fence {
            let what = format!("{path} is {age} old");
            let finding = Finding::new(Code::LockStale, what, "the next landing removes it");
            ledger.note(finding.rated(Severity::Info).at(&lock.path));
            continue;
        }
        let holders = openers(&lock.path);
        let (what, would) = match holders.first() {
            None => (
                format!("{path} is {age} old, and no process has it open"),
                format!("if no git is running in this repository: rm {path}"),
            ),
            Some(pid) => (
                format!("{path} is {age} old, and process {pid} has it open"),
                format!("check process {pid}; the lock goes when it ends"),
            ),
        };
        ledger.note(Finding::new(Code::LockStale, what, would).at(&lock.path));
    }
}

fn is_stale(lock: &LockFile) -> bool {
    let text = files::read_small(&lock.path, 4096).ok().flatten();
    let is_landing = text.is_some_and(|text| text.starts_with(OF_LANDING));
    let name = lock.path.file_name().and_then(|name| name.to_str());
    let is_making = name.is_some_and(|name| name.starts_with("weald-landing-"));
    lock.age > STALE && !is_landing && !is_making
}

/// How long something is, for people.
pub(super) fn told_age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds @ 120..7200 => format!("{} minutes", seconds / 60),
        seconds @ 7200..172_800 => format!("{} hours", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// The processes that have a file open, as far as this user may see.
fn openers(file: &Path) -> Vec<u32> {
    let Ok(file) = file.canonicalize() else {
        return Vec::new();
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_open = |pid: &u32| {
        let open = fs::read_dir(PathBuf::from(format!("/proc/{pid}/fd")));
        let links = open.into_iter().flatten().flatten();
        let mut targets = links.filter_map(|link| fs::read_link(link.path()).ok());
        targets.any(|target| target == file)
    };
    numbers.filter(has_open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_a_file_open_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.lock");
        let held = fs::File::create(&path).unwrap();
        assert_eq!(openers(&path), [std::process::id()]);
        drop(held);
        assert_eq!(openers(&path), Vec::<u32>::new());
    }
}
