//! Processes that keep others waiting: stopped ones that work on a tree, work the queue, watch over an agent or hold a
//! lock of weald's.

use std::fs;
use std::os::unix::fs::MetadataExt;

use weald_core::session::{ProcessIdentity, ProcessState};
use weald_core::store::AgentFilter;

use super::finding::{Finding, Ledger};
use super::locks::told_age;
use super::{Code, Round};
use weald_control::machine::stopped_for;
use weald_control::place::Place;
use weald_trees::TreeError;

/// Locks in the private folder that every command may have to wait for.
const LOCKS: [(&str, &str); 2] = [
    ("write.lock", "the database's write lock"),
    ("vault.lock", "the vault"),
];

impl Round<'_, '_> {
    pub(super) fn check_holders(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        for tree in trees.records()? {
            if let Some(worker) = &tree.worker {
                self.check_process(worker, &format!("an operation on worktree {}", tree.name));
            }
        }
        let queue = trees.engine.look(|tx| tx.queue())?;
        if let Some(holder) = &queue.holder {
            self.check_process(&holder.process, "the landing queue");
        }
        for agent in trees.engine.look(|tx| tx.agents(&AgentFilter::OPEN))? {
            if let Some(supervisor) = &agent.supervisor {
                self.check_process(supervisor, &format!("the watch over agent {}", agent.id));
            }
        }
        Ok(())
    }

    fn check_process(&mut self, process: &ProcessIdentity, held: &str) {
        let state = self.trees.engine.processes.state(process);
        if state == ProcessState::Running {
            tell_stopped(&mut self.ledger, process.pid, held);
        }
    }
}

/// Locks of the private folder, by the kernel's own list.
pub(super) fn check_lock_holders(ledger: &mut Ledger, place: &Place) {
    let Ok(list) = fs::read_to_string("/proc/locks") else {
        return;
    };
    for (file, held) in LOCKS {
        let Ok(found) = place.private().join(file).metadata() else {
            continue;
        };
        for pid in holders_of(&list, found.dev(), found.ino()) {
            tell_stopped(ledger, pid, held);
        }
    }
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

fn tell_stopped(ledger: &mut Ledger, pid: u32, held: &str) {
    let Some(age) = stopped_for(pid) else {
        return;
    };
    let what = format!(
        "process {pid} holds {held} and is stopped (it began {} ago)",
        told_age(age)
    );
    let would = format!("to continue it: kill -CONT {pid}");
    ledger.note(Finding::new(Code::HolderStopped, what, would));
}

#[cfg(test)]
mod tests {
    use super::*;

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
