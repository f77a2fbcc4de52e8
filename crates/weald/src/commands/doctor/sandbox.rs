//! How well runs can be kept in their trees here.

use std::process::Stdio;

use weald_engine::{Code, Finding, Severity};
use weald_sandbox::{Ended, Invocation, Level, Policy, launch};

use crate::context::Context;
use crate::errors::Failure;

/// The strongest level that works here, and what it does not cover.
pub(super) fn sandbox(context: &Context<'_>) -> Result<Finding, Failure> {
    let works = |level: Level| -> Result<bool, Failure> {
        let directory = tempfile::TempDir::with_prefix("weald-doctor-")?;
        let mut policy = Policy::new(directory.path());
        policy.level = level;
        let invocation = Invocation {
            helper: context.helper()?,
            command: vec!["/bin/true".into()],
            directory: directory.path().to_owned(),
            environment: Vec::new(),
            streams: [Stdio::null(), Stdio::null(), Stdio::null()],
            passed: None,
        };
        let ended = launch(&policy, invocation).and_then(|running| Ok(running.wait(None)?));
        Ok(matches!(ended, Ok(Ended::Code(0))))
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
            "the sandbox does not work here: trees can't be looked into".to_owned(),
            "weald sandbox explain".to_owned(),
        ),
    };
    Ok(Finding::new(Code::SandboxLevel, severity, what, would))
}
