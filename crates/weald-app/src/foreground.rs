//! A command in the foreground: held by a sandbox or not, this process's streams passed on, its time and output limited.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::fs::{FileType, fstat};
use weald_core::SignedDuration;
use weald_sandbox::{
    Budget, Ended, Invocation, Policy, Running, launch, launch_unconfined,
    leave_stops_to_the_command, pass_on,
};

use crate::{Call, Failure, exit, refusals_with_hint};

/// What to run, and how.
pub struct Held {
    /// What it may do; `None` is everything, because somebody said so.
    pub policy: Option<Policy>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    /// When everything in it ends.
    pub timeout: Option<SignedDuration>,
    /// How much of its output is passed on.
    pub max_output: Option<u64>,
}

/// A command that goes on.
pub struct Started {
    running: Running,
    bounded: Option<Bounded>,
    timeout: Option<SignedDuration>,
}

impl Held {
    /// Starts it. When this returns without an error the command has been executed.
    pub fn start(self, call: &Call<'_>) -> Result<Started, Failure> {
        let is_held = self.policy.is_some();
        let relayed = self.max_output.is_some()
            || (is_held && (must_relay(io::stdout())? || must_relay(io::stderr())?));
        let relay_input = is_held && must_relay(io::stdin())?;
        let stdin = if relay_input {
            Stdio::piped()
        } else {
            Stdio::inherit()
        };
        let output = match relayed {
            true => (Stdio::piped(), Stdio::piped()),
            false => (Stdio::inherit(), Stdio::inherit()),
        };
        let invocation = Invocation {
            helper: call.helper()?,
            command: self.command,
            directory: self.directory,
            environment: self.environment,
            streams: [stdin, output.0, output.1],
        };
        leave_stops_to_the_command();
        let mut running = match &self.policy {
            Some(policy) => launch(policy, invocation)?,
            None => launch_unconfined(invocation)?,
        };
        let bounded = (relayed || relay_input)
            .then(|| relay(&mut running, self.max_output.unwrap_or(u64::MAX)));
        Ok(Started {
            running,
            bounded,
            timeout: self.timeout,
        })
    }
}

impl Started {
    /// Waits for the end. From here on a Ctrl-C is for the command.
    pub fn wait(self, call: &Call<'_>) -> Result<Ended, Failure> {
        let limit = self.timeout.map(SignedDuration::unsigned_abs);
        let refusals = self.running.refusals();
        let ended = self.running.wait_through_interrupts(limit)?;
        if let Some(bounded) = self.bounded {
            bounded.finish(call);
        }
        if ended == Ended::TimedOut {
            call.warn("time limit reached; everything in the run was stopped");
        }
        if let Some(told) = refusals_with_hint(&refusals.list(), refusals.count()) {
            call.warn(&told);
        }
        Ok(ended)
    }
}

/// The threads that pass a run's output on.
struct Bounded {
    budget: Arc<Budget>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Passes the piped streams on: what comes in, and what goes out up to `limit`.
fn relay(running: &mut Running, limit: u64) -> Bounded {
    let budget = Budget::new(limit);
    let (stdin, stdout, stderr) = running.streams();
    if let Some(stdin) = stdin {
        // Ends with the process: a command that reads no input is not waited for.
        pass_on(io::stdin(), stdin, &Budget::new(u64::MAX));
    }
    let stdout = stdout.map(|stream| pass_on(stream, io::stdout(), &budget));
    let stderr = stderr.map(|stream| pass_on(stream, io::stderr(), &budget));
    Bounded {
        threads: stdout.into_iter().chain(stderr).collect(),
        budget,
    }
}

/// Whether a stream has to be passed on instead of handed over: a file's mode, times and content could be changed through
/// its descriptor. Directories and datagram sockets can't be streams at all.
fn must_relay(stream: impl AsFd) -> Result<bool, Failure> {
    let stat = fstat(&stream).map_err(io::Error::from)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(true),
        FileType::Directory | FileType::BlockDevice => Err(Failure::new(
            "bad_stream",
            exit::USAGE,
            "a standard stream is a directory or a disk; use a pipe",
        )),
        FileType::Socket => Ok(true),
        _ => Ok(false),
    }
}

impl Bounded {
    fn finish(self, call: &Call<'_>) {
        for thread in self.threads {
            // Whoever read our output may have seen enough.
            let _ = thread.join();
        }
        if self.budget.was_cut() {
            call.warn("the output was longer than --max-output; the rest was dropped");
        }
    }
}
