//! `weald run`

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use weald_app::operations::runs::RunInTree;
use weald_app::{Failure, RunSandbox};
use weald_core::SignedDuration;
use weald_core::config::parse_size;
use weald_sandbox::Level;

use crate::cli::duration;
use crate::completion;
use crate::context::Context;

/// Run a sandboxed command in a worktree
///
/// Exits with the exit code of the command; 124 on timeout, 125 if weald fails, 126 without a sandbox. Afterwards, weald
/// imports the new commits.
#[derive(Args)]
pub struct Run {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Kill the command and its children after this time
    #[arg(long, value_name = "60s", value_parser = duration)]
    timeout: Option<SignedDuration>,
    /// Sandbox level (default: sandbox.level)
    #[arg(long, value_name = "LEVEL")]
    sandbox: Option<SandboxArg>,
    /// Maximum output; the rest is dropped with a notice
    #[arg(long, value_name = "1M", value_parser = parse_size)]
    max_output: Option<u64>,
    /// Command to run
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum SandboxArg {
    Full,
    Landlock,
    /// No sandbox
    Off,
}

impl SandboxArg {
    pub fn as_sandbox(self) -> RunSandbox {
        match self {
            Self::Full => RunSandbox::Level(Level::Full),
            Self::Landlock => RunSandbox::Level(Level::Landlock),
            Self::Off => RunSandbox::Off,
        }
    }
}

impl Run {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ran = context.perform(RunInTree {
            tree: self.name,
            timeout: self.timeout,
            sandbox: self.sandbox.map(SandboxArg::as_sandbox),
            max_output: self.max_output,
            command: self.command,
        })?;
        Ok(ran.exit)
    }
}
