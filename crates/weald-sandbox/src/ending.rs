//! The end of everything that came from a command, where no pid namespace does it.
//!
//! Orphans come to the reaper, so "no child left" is the proof that nobody is left. A control group ends all of them at
//! once. Without one they are stopped first, until nobody new is found, and killed then: what is stopped keeps its place
//! in the user's count of processes and has no more children.

use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions};

use crate::cgroup::Group;
use crate::orders::{Crowd, Stops, reach_descendants};
use crate::sys;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Code(i32),
    Signal(i32),
    /// It took too long and everything in it was ended.
    TimedOut,
}

impl Ended {
    /// As a shell would say it: the code, or 128 and the signal; `None` if the time was over.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(signal) => Some(128 + signal),
            Self::TimedOut => None,
        }
    }
}

/// How long it is tried before the run is reported as not ended.
const LIMIT: Duration = Duration::from_secs(20);

/// How long the dying have before they are looked up again.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until it is known how the command ended, reports when it stops, and has everybody obey what comes down the
/// lifeline meanwhile; `None` when the launcher is gone, or the process that waits for the command.
pub(crate) fn wait_for_word(mut word: PipeReader, lifeline: &OwnedFd) -> Option<libc::c_int> {
    let mut stops = Stops::default();
    loop {
        let ready = sys::poll(&[lifeline.as_fd(), word.as_fd()], -1).ok()?;
        if ready[0] {
            stops.heard(Crowd::Descendants.obey(lifeline)?);
        }
        if ready[1] {
            let mut status = [0; size_of::<libc::c_int>()];
            word.read_exact(&mut status).ok()?;
            let status = libc::c_int::from_ne_bytes(status);
            if !libc::WIFSTOPPED(status) {
                return Some(status);
            }
            stops.report(lifeline);
        }
    }
}

/// Ends everybody; answers who is left, which is nobody but for processes that this user may not kill.
pub(crate) fn end_descendants(group: Option<Group>) -> Vec<libc::pid_t> {
    let deadline = Instant::now() + LIMIT;
    let mut found = Vec::new();
    while !all_are_reaped() {
        if Instant::now() > deadline {
            return found;
        }
        // What did not join the group, or where there is none, is found by looking.
        if let Some(group) = &group {
            let _ = group.kill();
        }
        found = reach_descendants(|pid| {
            let _ = sys::forbid_forks(pid);
            let _ = sys::kill(pid, Signal::STOP);
        });
        for pid in &found {
            let _ = sys::kill(*pid, Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
    if let Some(group) = group {
        group.remove();
    }
    Vec::new()
}

/// Reaps the dead; true if there is nobody else.
fn all_are_reaped() -> bool {
    let all = WaitOptions::from_bits_retain(libc::__WALL as u32);
    loop {
        match sys::wait_for_any(WaitOptions::NOHANG | all) {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(error) => return error.raw_os_error() == Some(libc::ECHILD),
        }
    }
}
