//! `weald sandbox exec`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use weald_app::{Failure, SandboxRequest, exit, home_layer_of, sandbox_policy, without_secrets};
use weald_core::SignedDuration;
use weald_core::config::parse_size;
use weald_sandbox::{Level, Network, Policy};

use crate::cli::duration;
use crate::context::Context;
use crate::foreground::Held;

/// Run a command that can write only the given directories
///
/// Everything else is read-only, other processes are invisible, and no child process outlives the command. Exits with the
/// exit code of the command; 124 on timeout, 126 or 127 if it can't be executed, 6 without a sandbox.
#[derive(Args)]
pub struct Exec {
    #[command(flatten)]
    pub scope: Scope,
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

/// What a run may do.
#[derive(Args)]
pub struct Scope {
    /// Writable directory (may be repeated; starts in the first one)
    #[arg(long, short, value_name = "DIR", required = true)]
    pub write: Vec<PathBuf>,
    /// Make the directories read-only
    #[arg(long)]
    pub read_only: bool,
    /// Block the network except its own loopback
    #[arg(long)]
    pub no_network: bool,
    /// Sandbox level (default: sandbox.level)
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<LevelArg>,
    /// Show this directory even though it is below /tmp or /run
    #[arg(long, value_name = "DIR")]
    pub show: Vec<PathBuf>,
    /// Hide this file or directory, in addition to sandbox.read_deny
    #[arg(long, value_name = "PATH")]
    pub mask: Vec<PathBuf>,
    /// Allow this Unix socket, in addition to sandbox.sockets
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,
    /// Memory limit per process (default: sandbox.memory)
    #[arg(long, value_name = "2G", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Act as if the kernel had this Landlock ABI, for tests
    #[arg(long, value_name = "N", hide = true)]
    pub simulate_landlock_abi: Option<u32>,
    /// Limit of processes and threads (default: sandbox.processes)
    #[arg(long, value_name = "N")]
    pub processes: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum LevelArg {
    Full,
    Landlock,
}

impl Scope {
    /// Writing one directory, otherwise as configured.
    pub fn of(directory: PathBuf) -> Self {
        Self {
            write: vec![directory],
            read_only: false,
            no_network: false,
            level: None,
            show: Vec::new(),
            mask: Vec::new(),
            socket: Vec::new(),
            memory: None,
            simulate_landlock_abi: None,
            processes: None,
        }
    }

    /// The policy: the configuration's, with what the flags say on top.
    pub fn policy(&self, context: &Context<'_>) -> Result<Policy, Failure> {
        if let Some(link) = self.write.iter().find(|path| path.is_symlink()) {
            let message = format!(
                "{} is a link, which a run could have put there; name what it leads to",
                link.display()
            );
            return Err(Failure::new("bad_directory", exit::USAGE, message));
        }
        let resolve = |path: &PathBuf| {
            path.canonicalize()
                .map_err(|source| Failure::file(path, &source))
        };
        let write: Vec<_> = self
            .write
            .iter()
            .map(resolve)
            .collect::<Result<_, _>>()
            .map_err(Failure::into_usage)?;
        let config = context.sandbox_config(&write)?;
        let masked = context.control_planes(&write);
        let home = context.environment.home();
        let place = context.place().ok();
        let variables = context.environment.for_commands();
        let request = SandboxRequest {
            main: place.map_or_else(|| context.directory().clone(), |place| place.root()),
            home_layer: home.as_deref().map(|home| home_layer_of(home, &write[0])),
            home,
            variables: &variables,
            write,
            masked,
            state: context.environment.state(),
        };
        let mut policy = sandbox_policy(&config, request);
        if let Some(level) = self.level {
            policy.level = match level {
                LevelArg::Full => Level::Full,
                LevelArg::Landlock => Level::Landlock,
            };
        }
        if self.no_network {
            policy.network = Network::Off;
        }
        policy.read_only = self.read_only;
        policy.show.extend(self.show.clone());
        let in_written = |mask: &&PathBuf| {
            let real = mask.canonicalize().unwrap_or_else(|_| mask.to_path_buf());
            policy.write.iter().any(|write| real.starts_with(write))
        };
        if policy.level == Level::Landlock && self.mask.iter().any(|mask| in_written(&mask)) {
            return Err(Failure::new(
                "mask_impossible",
                exit::USAGE,
                "level landlock can't hide anything inside a writable directory",
            ));
        }
        policy.hidden.extend(self.mask.clone());
        policy.sockets.extend(self.socket.clone());
        policy.simulated.landlock_abi = self.simulate_landlock_abi;
        policy.limits.memory = self.memory.or(policy.limits.memory);
        policy.limits.processes = self.processes.or(policy.limits.processes);
        Ok(policy)
    }
}

impl Exec {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let policy = self.scope.policy(context)?;
        let config = context.sandbox_config(&policy.write)?;
        let held = Held {
            policy: Some(policy),
            command: self.command,
            directory: self.scope.write[0].clone(),
            environment: without_secrets(&config, context.environment.for_commands()),
            timeout: self.timeout,
            max_output: self.max_output,
            passed: None,
        };
        Ok(exit::of(held.start(context)?.wait(context)?))
    }
}
