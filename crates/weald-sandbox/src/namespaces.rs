//! Namespaces, and the first process in them.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::WaitOptions;

use crate::orders::{Crowd, Stops, report_signal};
use crate::policy::{Network, Policy};
use crate::sys::{self, Change};

/// Enters new namespaces. The pid namespace begins with the next child.
pub fn enter(policy: &Policy) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let mut flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    if policy.network != Network::On {
        flags |= libc::CLONE_NEWNET;
    }
    sys::unshare(flags)?;
    // The same numbers inside as outside, and no others.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Waits for `main`, takes away whatever else dies and has everybody obey what comes down the lifeline; returns main's code,
/// or `None` when the launcher is gone.
pub fn reap(main: libc::pid_t, signals: &OwnedFd, lifeline: &OwnedFd) -> io::Result<Option<i32>> {
    let mut stops = Stops::default();
    loop {
        // The launcher first, and only so many dead at a time: a flood of short-lived processes must not keep it waiting.
        if sys::poll(&[lifeline.as_fd()], 0)?[0] {
            match Crowd::Namespace.obey(lifeline) {
                Some(order) => stops.heard(order),
                None => return Ok(None),
            }
        }
        let mut left = 64;
        while left > 0
            && let Some((pid, status)) =
                sys::wait_for_any(WaitOptions::NOHANG | WaitOptions::UNTRACED)?
        {
            match sys::change_of(pid, status) {
                Change::Ended if pid == main => {
                    report_signal(lifeline, status);
                    return Ok(Some(sys::code_of(status)));
                }
                Change::Stopped if pid == main => stops.report(lifeline),
                _ => {}
            }
            left -= 1;
        }
        if left == 0 {
            continue;
        }
        if sys::poll(&[signals.as_fd(), lifeline.as_fd()], -1)?[0] {
            drain(signals);
        }
    }
}

fn drain(signals: &OwnedFd) {
    use std::io::Read;
    if let Ok(copy) = signals.try_clone() {
        let mut file = fs::File::from(copy);
        let mut buffer = [0u8; 1024];
        while file.read(&mut buffer).is_ok_and(|read| read > 0) {}
    }
}
