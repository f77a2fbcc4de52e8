//! Lock files of git in main, and stopped processes that keep others waiting. A lock file is weald's only if an operation on
//! record names it; any other is reported, with its age and whether a process has it open.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weald_core::session::{ProcessIdentity, ProcessState};
use weald_core::tree::TreeStatus;
use weald_git::{LockFile, RefName, lock_at, locks_in, survey_refs};

use crate::finding::{Finding, Found};
use crate::repair::Repair;
use crate::survey::Survey;
use crate::{Code, Severity};
use weald_control::files;
use weald_control::machine::stopped_for;
use weald_control::place::Place;
use weald_landing::FENCE;

/// No git needs a lock for so long.
const STALE: Duration = Duration::from_secs(600);

/// From when on the lock of refs in tables is taken for left over, where an operation was cut short.
const TABLES_STALE: Duration = Duration::from_secs(60);

/// What the lock of a landing begins with; the landing answers for it.
const OF_LANDING: &str = "weald landing ";

/// Locks in the private folder that every command may have to wait for.
const LOCKS: [(&str, &str); 2] = [
    ("write.lock", "the database's write lock"),
    ("vault.lock", "the vault"),
];

/// Locks of branches whose tree's creation or removal was cut short: the operation can't be ended with them.
pub(super) fn of_unfinished(survey: &Survey<'_>) -> Found {
    let common = survey.trees.place.repository().common_dir();
    let mut found = Vec::new();
    for tree in survey.records()? {
        let is_unfinished = tree.status == TreeStatus::Creating || tree.removing;
        let is_gone = tree.worker.is_some() && !survey.is_worked_on(tree);
        let Some(branch) = RefName::branch(&tree.branch).filter(|_| is_unfinished && is_gone)
        else {
            continue;
        };
        // The lock of refs in tables is everybody's, so a young one is somebody else's.
        let tables = common.join("reftable/tables.list.lock");
        let is_old = |found: &LockFile| found.path != tables || found.age > TABLES_STALE;
        let held = [branch.lock_in(common), tables.clone()];
        let held = held.iter().filter_map(|path| lock_at(path)).filter(is_old);
        for lock in held
            .map(|found| found.path)
            .filter(|path| openers(path).is_empty())
        {
            let what = format!(
                "{} is left over from the unfinished operation on worktree {}",
                lock.display(),
                tree.name
            );
            let finding = Finding::new(Code::LockStale, what, "delete it");
            let finding = finding.at(&lock).of(tree);
            found.push(finding.repair(Repair::Delete(lock)));
        }
    }
    Ok(found)
}

/// Every lock of main that is older than any git needs it.
pub(super) fn of_main(place: &Place) -> Vec<Finding> {
    let common = place.repository().common_dir();
    let mut locks = locks_in(common);
    if !place.repository().has_reftable() {
        locks.extend(survey_refs(common).locks);
    }
    locks.extend(locks_in(&common.join("reftable")));
    let entries = fs::read_dir(common.join("worktrees")).into_iter().flatten();
    for entry in entries.flatten() {
        locks.extend(locks_in(&entry.path()));
        locks.extend(locks_in(&entry.path().join("reftable")));
    }
    let fence = common.join(format!("{FENCE}.lock"));
    let found = locks.into_iter().filter(is_stale).map(|lock| {
        let path = lock.path.display();
        let age = told_age(lock.age);
        if lock.path == fence {
            let what = format!("{path} is {age} old");
            let finding = Finding::new(Code::LockStale, what, "the next landing removes it");
            return finding.rated(Severity::Info).at(&lock.path);
        }
        let (what, would) = match openers(&lock.path).first() {
            None => (
                format!("{path} is {age} old, and no process has it open"),
                format!("if no git is running in this repository: rm {path}"),
            ),
            Some(pid) => (
                format!("{path} is {age} old, and process {pid} has it open"),
                format!("check process {pid}; the lock goes when it ends"),
            ),
        };
        Finding::new(Code::LockStale, what, would).at(&lock.path)
    });
    found.collect()
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

/// Stopped processes that work on a tree, work the queue, or watch over an agent.
pub(super) fn stopped_holders(survey: &Survey<'_>) -> Found {
    let engine = survey.trees.engine;
    let is_running =
        |process: &ProcessIdentity| engine.processes.state(process) == ProcessState::Running;
    let mut found = Vec::new();
    let mut check = |process: Option<&ProcessIdentity>, held: String| {
        let running = process.filter(|process| is_running(process));
        found.extend(running.and_then(|process| stopped(process.pid, &held)));
    };
    for tree in survey.records()? {
        let held = format!("an operation on worktree {}", tree.name);
        check(tree.worker.as_ref(), held);
    }
    let queue = engine.look(|tx| tx.queue())?;
    let holder = queue.holder.as_ref().map(|holder| &holder.process);
    check(holder, "the landing queue".to_owned());
    for agent in survey.agents()? {
        let held = format!("the watch over agent {}", agent.id);
        check(agent.supervisor.as_ref(), held);
    }
    Ok(found)
}

/// Stopped processes that hold locks of the private folder, by the kernel's own list.
pub(super) fn stopped_lockers(place: &Place) -> Vec<Finding> {
    let list = fs::read_to_string("/proc/locks").unwrap_or_default();
    let found = LOCKS.into_iter().flat_map(|(file, held)| {
        let found = place.private().join(file).metadata();
        let holders = found.map(|found| holders_of(&list, found.dev(), found.ino()));
        let holders = holders.unwrap_or_default().into_iter();
        holders.filter_map(move |pid| stopped(pid, held))
    });
    found.collect()
}

/// The processes that hold a lock of a file, by lines such as `1: FLOCK  ADVISORY  WRITE 123 fe:00:456 0 EOF`.
fn holders_of(list: &str, device: u64, inode: u64) -> Vec<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let place = format!("{major:02x}:{minor:02x}:{inode}");
    let lines = list.lines().filter(|line| !line.contains("->"));
    let fields = lines.map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    fields
        .filter(|fields| fields.get(5) == Some(&place.as_str()))
        .filter_map(|fields| fields.get(4)?.parse().ok())
        .collect()
}

fn stopped(pid: u32, held: &str) -> Option<Finding> {
    let age = told_age(stopped_for(pid)?);
    let what = format!("process {pid} holds {held} and is stopped (it began {age} ago)");
    let would = format!("to continue it: kill -CONT {pid}");
    Some(Finding::new(Code::HolderStopped, what, would))
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

    #[test]
    fn holders_are_read_from_the_kernels_list() {
        let list = "1: POSIX  ADVISORY  WRITE 7 fe:00:456 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 123 fe:00:456 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 124 fe:00:456 0 EOF\n\
                    3: FLOCK  ADVISORY  WRITE 125 fe:01:456 0 EOF\n";
        let device = rustix::fs::makedev(0xfe, 0);
        assert_eq!(holders_of(list, device, 456), [7, 123]);
    }
}
