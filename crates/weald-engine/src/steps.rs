//! Labelled steps, where tests end or stop a process to see what the next one makes of it.
//!
//! `WEALD_STEP=kill:land.swapped` ends this process there with SIGKILL, `stop:` stops it with SIGSTOP. Builds without
//! debug assertions know nothing of it.

/// Passes a labelled step.
#[cfg(debug_assertions)]
pub(crate) fn step(label: &str) {
    use rustix::process::{Signal, getpid, kill_process};
    #[expect(
        clippy::disallowed_methods,
        reason = "a switch of the test run, not of the product"
    )]
    let Ok(wanted) = std::env::var("WEALD_STEP") else {
        return;
    };
    let signal = match wanted.split_once(':') {
        Some(("kill", at)) if at == label => Signal::KILL,
        Some(("stop", at)) if at == label => Signal::STOP,
        _ => return,
    };
    let _ = kill_process(getpid(), signal);
}

/// Passes a labelled step.
#[cfg(not(debug_assertions))]
pub(crate) fn step(_label: &str) {}
