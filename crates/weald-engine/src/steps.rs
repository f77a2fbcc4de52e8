//! Labelled steps, where tests end or stop a process to see what the next one makes of it.
//!
//! `WEALD_STEP=kill:land.swapped` ends this process there with SIGKILL, `stop:` stops it with SIGSTOP, `killchild:` ends
//! the git that it waits for. Builds without debug assertions know nothing of it.

/// Passes a labelled step.
pub(crate) fn step(label: &str) {
    step_of(label, 0);
}

/// Passes a labelled step while `child` is at work; 0 is none.
#[cfg(debug_assertions)]
pub(crate) fn step_of(label: &str, child: u32) {
    use rustix::process::{Pid, Signal, getpid, kill_process};
    #[expect(
        clippy::disallowed_methods,
        reason = "a switch of the test run, not of the product"
    )]
    let Ok(wanted) = std::env::var("WEALD_STEP") else {
        return;
    };
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    let (process, signal) = match (wanted.split_once(':'), child) {
        (Some(("kill", at)), _) if at == label => (getpid(), Signal::KILL),
        (Some(("stop", at)), _) if at == label => (getpid(), Signal::STOP),
        (Some(("killchild", at)), Some(child)) if at == label => (child, Signal::KILL),
        _ => return,
    };
    let _ = kill_process(process, signal);
}

/// Passes a labelled step while `child` is at work.
#[cfg(not(debug_assertions))]
pub(crate) fn step_of(_label: &str, _child: u32) {}
