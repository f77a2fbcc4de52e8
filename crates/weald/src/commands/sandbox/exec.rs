//! `weald sandbox exec`

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;

use clap::{Args, ValueEnum};
use weald_core::SignedDuration;
use weald_core::config::parse_size;
use weald_engine::{SandboxRequest, sandbox_policy};
use weald_sandbox::{Budget, Ended, Invocation, Level, Network, Policy, Running, launch, pass_on};

use crate::cli::duration;
use crate::context::Context;
use crate::errors::Failure;
use crate::exit;

/// Run a command that can write only the directories named
///
/// Everything else is read-only, other processes are out of sight, and nothing of it survives its end. Exits as the
/// command does; 124 time-out, 126/127 can't be executed, 6 no sandbox.
#[derive(Args)]
pub struct Exec {
    #[command(flatten)]
    pub scope: Scope,
    /// End everything after this time
    #[arg(long, value_name = "60s", value_parser = duration)]
    timeout: Option<SignedDuration>,
    /// Pass on at most so much output; the rest is dropped, and said
    #[arg(long, value_name = "1M", value_parser = parse_size)]
    max_output: Option<u64>,
    /// The command
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What a run may do.
#[derive(Args)]
pub struct Scope {
    /// A directory that may be written (may be repeated; the first is where it starts)
    #[arg(long, short, value_name = "DIR", required = true)]
    pub write: Vec<PathBuf>,
    /// See the directories, but don't write them
    #[arg(long)]
    pub read_only: bool,
    /// No network but its own loopback
    #[arg(long)]
    pub no_network: bool,
    /// How strong (default: sandbox.level)
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<LevelArg>,
    /// Let it see this directory although it lies below /tmp or /run
    #[arg(long, value_name = "DIR")]
    pub show: Vec<PathBuf>,
    /// Make this file or directory look empty (besides sandbox.read_deny)
    #[arg(long, value_name = "PATH")]
    pub mask: Vec<PathBuf>,
    /// Let it connect to this unix socket (besides sandbox.sockets)
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,
    /// Memory a process may have (default: sandbox.memory)
    #[arg(long, value_name = "2G", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Behave as if the kernel had this ABI of Landlock: for tests of the refusal
    #[arg(long, value_name = "N", hide = true)]
    pub simulate_landlock_abi: Option<u32>,
    /// Processes and threads it may have (default: sandbox.processes)
    #[arg(long, value_name = "N")]
    pub processes: Option<u64>,
}

/// How strong.
#[derive(Clone, Copy, ValueEnum)]
pub enum LevelArg {
    Full,
    Landlock,
}

impl Scope {
    /// The policy: the configuration's, with what the flags say on top.
    pub fn policy(&self, context: &Context<'_>) -> Result<Policy, Failure> {
        let request = SandboxRequest {
            home: context.environment.home(),
            write: self.write.clone(),
        };
        let config = context.sandbox_config()?;
        let mut policy = sandbox_policy(&config, context.place().ok().as_ref(), request);
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
        policy.mask.extend(self.mask.clone());
        policy.sockets.extend(self.socket.clone());
        policy.simulated.landlock_abi = self.simulate_landlock_abi;
        policy.limits.memory = self.memory.or(policy.limits.memory);
        policy.limits.processes = self.processes.or(policy.limits.processes);
        Ok(policy)
    }
}

impl Exec {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let mut policy = self.scope.policy(context)?;
        let tmp = match policy.level {
            Level::Landlock => Some(tempfile::TempDir::with_prefix("weald-run-")?),
            Level::Full => None,
        };
        policy.tmp = tmp.as_ref().map(|tmp| tmp.path().to_owned());
        let piped = || {
            if self.max_output.is_some() {
                Stdio::piped()
            } else {
                Stdio::inherit()
            }
        };
        let invocation = Invocation {
            helper: std::env::current_exe()?,
            command: self.command,
            directory: self.scope.write[0].clone(),
            environment: context.environment.for_commands(),
            streams: [Stdio::inherit(), piped(), piped()],
        };
        let mut running = launch(&policy, invocation)?;
        let bounded = self
            .max_output
            .map(|limit| bounded_output(&mut running, limit));
        let limit = self.timeout.map(SignedDuration::unsigned_abs);
        // From here on a Ctrl-C is for the command.
        let ended = running.wait_through_interrupts(limit)?;
        if let Some(bounded) = bounded {
            bounded.finish(context);
        }
        match ended {
            Ended::Code(code) => Ok(code as u8),
            Ended::TimedOut => {
                context
                    .ui
                    .warn("the time is over; everything in the run was ended");
                Ok(exit::TIMED_OUT)
            }
        }
    }
}

/// The threads that pass a run's output on.
struct Bounded {
    budget: Arc<Budget>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

fn bounded_output(running: &mut Running, limit: u64) -> Bounded {
    let budget = Budget::new(limit);
    let (_, stdout, stderr) = running.streams();
    let stdout = stdout.map(|stream| pass_on(stream, io::stdout(), &budget));
    let stderr = stderr.map(|stream| pass_on(stream, io::stderr(), &budget));
    Bounded {
        threads: stdout.into_iter().chain(stderr).collect(),
        budget,
    }
}

impl Bounded {
    fn finish(self, context: &Context<'_>) {
        for thread in self.threads {
            // Whoever read our output may have seen enough.
            let _ = thread.join();
        }
        if self.budget.was_cut() {
            context
                .ui
                .warn("the output was longer than --max-output; the rest was dropped");
        }
    }
}
