//! A clock and a process table that tests turn by hand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use weald_core::session::{ProcessIdentity, ProcessState, ProcessTable};
use weald_core::store::Clock;
use weald_core::{SignedDuration, Timestamp};

/// A clock that moves when told.
pub struct FakeClock(Mutex<Timestamp>);

impl FakeClock {
    /// Starts on a fixed day.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(
            "2026-01-02T03:04:05Z".parse().expect("a valid time"),
        )))
    }

    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.0.lock().expect("no test panicked holding the clock");
        *now = now.checked_add(by).expect("within time");
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("no test panicked holding the clock")
    }
}

/// A process table with what tests put into it.
#[derive(Default)]
pub struct FakeProcesses {
    states: Mutex<BTreeMap<u32, ProcessState>>,
    ancestors: Mutex<Vec<u32>>,
}

impl FakeProcesses {
    /// An empty table: every process is gone.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Puts a process into the table, or changes it.
    pub fn set(&self, pid: u32, state: ProcessState) {
        self.states.lock().expect("no panic").insert(pid, state);
    }

    /// Sets the caller's ancestors, nearest first.
    pub fn set_ancestors(&self, pids: &[u32]) {
        *self.ancestors.lock().expect("no panic") = pids.to_vec();
    }
}

impl ProcessTable for FakeProcesses {
    fn state(&self, process: &ProcessIdentity) -> ProcessState {
        self.states
            .lock()
            .expect("no panic")
            .get(&process.pid)
            .copied()
            .unwrap_or(ProcessState::Gone)
    }

    fn identify(&self, pid: u32) -> Option<ProcessIdentity> {
        let known = self.states.lock().expect("no panic").contains_key(&pid);
        known.then(|| ProcessIdentity {
            host: "host".into(),
            boot_id: "boot".into(),
            pid_namespace: "pid:[1]".into(),
            pid,
            start_time: u64::from(pid) * 100,
        })
    }

    fn ancestors(&self) -> Vec<u32> {
        self.ancestors.lock().expect("no panic").clone()
    }
}
