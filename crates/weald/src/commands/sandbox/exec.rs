//! `weald sandbox exec`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use weald_app::Failure;
use weald_app::operations::sandboxes::{ExecSandboxed, Scope};
use weald_core::SignedDuration;
use weald_core::config::parse_size;
use weald_sandbox::Level;

use crate::cli::duration;
use crate::context::Context;

/// Run a command that can write only the given directories
///
/// Everything else is read-only, other processes are invisible, and no child process outlives the command. Exits with the
/// exit code of the command; 124 on timeout, 126 or 127 if it can't be executed, 6 without a sandbox.
#[derive(Args)]
pub struct Exec {
    /// Writable directory (may be repeated)
    ///
    /// The command starts in the first one.
    #[arg(long, short, value_name = "DIR", required = true)]
    write: Vec<PathBuf>,
    /// Make the directories read-only
    #[arg(long)]
    read_only: bool,
    /// Block the network except its own loopback
    #[arg(long)]
    no_network: bool,
    /// Sandbox level (default: sandbox.level)
    #[arg(long, value_name = "LEVEL")]
    level: Option<LevelArg>,
    /// Show this directory even though it is below /tmp or /run
    #[arg(long, value_name = "DIR")]
    show: Vec<PathBuf>,
    /// Also hide this path, besides those in sandbox.read_deny
    #[arg(long, value_name = "PATH")]
    mask: Vec<PathBuf>,
    /// Also allow this Unix socket, besides sandbox.sockets
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// Memory limit per process (default: sandbox.memory)
    #[arg(long, value_name = "2G", value_parser = parse_size)]
    memory: Option<u64>,
    /// Act as if the kernel had this Landlock ABI, for tests
    #[arg(long, value_name = "N", hide = true)]
    simulate_landlock_abi: Option<u32>,
    /// Limit of processes and threads (default: sandbox.processes)
    #[arg(long, value_name = "N")]
    processes: Option<u64>,
    /// Kill the command and its children after this time
    #[arg(long, value_name = "60s", value_parser = duration)]
    timeout: Option<SignedDuration>,
    /// Maximum output; the rest is dropped with a notice
    #[arg(long, value_name = "1M", value_parser = parse_size)]
    max_output: Option<u64>,
    /// Command to run
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum LevelArg {
    Full,
    Landlock,
}

impl LevelArg {
    pub fn level(self) -> Level {
        match self {
            Self::Full => Level::Full,
            Self::Landlock => Level::Landlock,
        }
    }
}

impl Exec {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ran = context.perform(ExecSandboxed {
            scope: Scope {
                write: self.write,
                read_only: self.read_only,
                no_network: self.no_network,
                level: self.level.map(LevelArg::level),
                show: self.show,
                mask: self.mask,
                sockets: self.socket,
                memory: self.memory,
                simulate_landlock_abi: self.simulate_landlock_abi,
                processes: self.processes,
            },
            timeout: self.timeout,
            max_output: self.max_output,
            command: self.command,
        })?;
        Ok(ran.exit)
    }
}
