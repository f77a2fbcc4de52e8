//! Labelled steps, where tests end or stop a process to see what the next one makes of it.
//!
//! `WEALD_STEP=kill:land.swapped` ends this process there with SIGKILL, `stop:` stops it with SIGSTOP, `killchild:` ends
//! the git that it waits for. `WEALD_STEP_MARK` names a file that shows, afterwards, that it was so. `count:` adds a byte
//! to that file each time and does nothing else. Debug builds have steps, others only with the feature `failpoints`. They
//! are here because whatever has some stands on this crate.

/// Passes a labelled step.
pub fn step(label: &str) {
    step_of(label, 0);
}

/// Passes a labelled step while `child` is at work; 0 is none.
#[cfg(any(debug_assertions, feature = "failpoints"))]
pub fn step_of(label: &str, child: u32) {
    use rustix::process::{Pid, Signal, getpid, kill_process};
    use std::io::Write;
    let Some(wanted) = switch("WEALD_STEP") else {
        return;
    };
    if wanted.strip_prefix("count:") == Some(label) {
        let mark = switch("WEALD_STEP_MARK").unwrap_or_default();
        let counted = std::fs::OpenOptions::new().append(true).open(mark);
        let _ = counted.and_then(|mut file| file.write_all(b"."));
    }
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    let (process, signal) = match (wanted.split_once(':'), child) {
        (Some(("kill", at)), _) if at == label => (getpid(), Signal::KILL),
        (Some(("stop", at)), _) if at == label => (getpid(), Signal::STOP),
        (Some(("killchild", at)), Some(child)) if at == label => (child, Signal::KILL),
        _ => return,
    };
    // Who is stopped in the middle of a change keeps everybody else from changing anything.
    let _between = (signal == Signal::STOP).then(|| CHANGES.write());
    if let Some(mark) = switch("WEALD_STEP_MARK") {
        let _ = std::fs::write(mark, label);
    }
    let _ = kill_process(process, signal);
    while signal == Signal::STOP && is_to_stop() {
        std::thread::yield_now();
    }
}

/// Held while a renewal of a lease, beside the thread of the steps, changes something.
#[cfg(any(debug_assertions, feature = "failpoints"))]
static CHANGES: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// Changes something beside the thread of the steps: no step stops the process in the middle of it.
pub fn between_steps<T>(change: impl FnOnce() -> T) -> T {
    #[cfg(any(debug_assertions, feature = "failpoints"))]
    let _changing = CHANGES.read();
    change()
}

/// Whether no thread has taken the signal to stop yet, which is for any of them: until one does, this one would go on.
#[cfg(any(debug_assertions, feature = "failpoints"))]
fn is_to_stop() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let stop = 1 << (rustix::process::Signal::STOP.as_raw() - 1);
    pending.is_some_and(|mask| mask & stop != 0)
}

#[cfg(any(debug_assertions, feature = "failpoints"))]
fn switch(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a switch of the test run, not of the product"
    )]
    std::env::var(name).ok()
}

/// Passes a labelled step while `child` is at work.
#[cfg(not(any(debug_assertions, feature = "failpoints")))]
pub fn step_of(_label: &str, _child: u32) {}
