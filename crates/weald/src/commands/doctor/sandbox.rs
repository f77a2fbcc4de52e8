//! How well runs can be kept in their trees here.

use weald_app::{Code, Failure, Finding, Severity};
use weald_sandbox::{Level, Network, SandboxError, require_level};

use crate::context::Context;

/// The strongest level that works here, and what it does not cover.
pub(super) fn sandbox(context: &Context<'_>) -> Result<Finding, Failure> {
    let helper = context.helper()?;
    let works = |level: Level| -> Result<bool, Failure> {
        match require_level(level, Network::On, &helper) {
            Ok(()) => Ok(true),
            Err(SandboxError::Unavailable { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    };
    let not_covered = |level: Level| format!("does not cover: {}", level.not_covered().join("; "));
    let (severity, what, would) = match (works(Level::Full)?, works(Level::Landlock)?) {
        (true, _) => (
            Severity::Info,
            "the sandbox works at level full".to_owned(),
            not_covered(Level::Full),
        ),
        (false, true) => (
            Severity::Warn,
            "the sandbox works only at level landlock; runs need --sandbox landlock".to_owned(),
            not_covered(Level::Landlock),
        ),
        (false, false) => (
            Severity::Error,
            "the sandbox does not work here: worktrees can't be inspected".to_owned(),
            "weald sandbox explain".to_owned(),
        ),
    };
    Ok(Finding::new(Code::SandboxLevel, what, would).rated(severity))
}
