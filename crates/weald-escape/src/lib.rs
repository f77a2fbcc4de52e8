//! The escape suite: attempts to get out, each proven to work without the sandbox.
//!
//! Every case runs twice, each time in a fresh field (see [`Field`]): once free, where it must have its effect, else it has
//! no teeth here and proves nothing; once confined, where it must not. An effect is a change of anything outside the
//! writable directory (content, mode, owner, times, existence), or success of an attempt whose effect is not a file.

mod cases;
mod cases_git;
mod cases_network;
mod cases_tracing;
mod field;
mod native;
mod native_calls;
mod native_files;
mod native_modes;
mod native_network;
mod native_shared;
mod native_tracing;
mod pattern;
mod servers;
mod surroundings;

pub use field::Field;
pub use native::{ATTEMPT_ARGUMENT, run_if_attempt};
pub use pattern::Pattern;

use std::io;
use std::path::Path;

use weald_sandbox::Level;

/// How a case is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// A script for `sh`.
    Script(&'static str),
    /// A function of `native` or one of its tables.
    Native(&'static str),
}

/// How success is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Outside,
    /// The attempt ended well.
    Success,
    /// The process outside is no longer as it was.
    Victim,
}

#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub attempt: Attempt,
    /// How success is seen.
    pub effect: Effect,
    /// Whether level landlock, too, keeps it in.
    pub landlock: bool,
    /// Whether the run's network goes by name, so that it reaches one server and not another. At level landlock it has none.
    pub by_name: bool,
}

/// What came of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It works free, and not confined.
    Denied,
    Escaped,
    /// It does not even work free, here and for this user.
    NoTeeth,
}

pub fn cases() -> Vec<Case> {
    [
        cases::FILES,
        cases::HOME,
        cases::PROCESSES,
        cases_tracing::TRACING,
        cases_git::GIT,
        cases_network::NETWORK,
        cases::KERNEL,
    ]
    .concat()
}

/// Tries one case at one level, in fields after `pattern`; `helper` is a binary that calls [`weald_sandbox::run_if_init`] and [`run_if_attempt`].
pub fn try_case(
    case: &Case,
    level: Level,
    pattern: &Pattern,
    helper: &Path,
) -> io::Result<Outcome> {
    if !Field::build(pattern)?.attempt(case, None, helper)? {
        return Ok(Outcome::NoTeeth);
    }
    match Field::build(pattern)?.attempt(case, Some(level), helper)? {
        true => Ok(Outcome::Escaped),
        false => Ok(Outcome::Denied),
    }
}
