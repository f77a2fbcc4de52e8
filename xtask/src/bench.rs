//! Benchmarks. Every figure is a ratio against something measured in the same run, interleaved.

pub mod agents;
pub mod cleanup;
pub mod control;
pub mod hooks;
pub mod inside;
pub mod landing;
mod mcp;
pub mod naive;
pub mod network;
pub mod processes;
pub mod real;
pub mod sandbox;
pub mod seed;
pub mod terminal;
pub mod trees;
pub mod workers;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions};

/// What to measure, of a table that is made on file systems of its own.
#[derive(Debug, Clone, clap::Args)]
pub struct TableOptions {
    /// Little of everything, and figures that say little
    #[arg(long)]
    quick: bool,
    /// Only rows whose name contains this
    #[arg(long, value_name = "ROW")]
    only: Option<String>,
    /// Set by the command itself: mounts are nobody else's here
    #[arg(long, hide = true)]
    alone: bool,
}

pub fn say(text: &str) {
    // A closed pipe ends the report, not the measurement.
    let _ = writeln!(io::stdout(), "{text}");
}

/// Builds the release binary, so that nobody measures yesterday's; answers where it is.
pub fn release_binary() -> io::Result<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the benchmark builds what it measures"
    )]
    let mut cargo = Command::new("cargo");
    let built = cargo
        .args(["build", "--release", "-q", "-p", "weald"])
        .current_dir(crate::tidy::root())
        .status()?;
    match built.success() {
        true => Ok(std::env::current_exe()?.with_file_name("weald")),
        false => Err(io::Error::other("weald does not build")),
    }
}

/// What one run of a command cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From start to end.
    pub wall: Duration,
    /// User and system time of the process.
    pub cpu: Duration,
    pub code: i32,
}

/// Runs a command to its end and says what it cost. It must succeed.
pub fn measure(command: &mut Command) -> io::Result<Cost> {
    match measure_any(command)? {
        cost if cost.code == 0 => Ok(cost),
        cost => Err(io::Error::other(format!(
            "{command:?} ended with {}",
            cost.code
        ))),
    }
}

/// The same for a command that may fail.
pub fn measure_any(command: &mut Command) -> io::Result<Cost> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn()?;
    // Wait without taking the corpse away: its account in /proc is finer than what `wait` reports.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(Pid::from_child(&child)), ended)?;
    let wall = started.elapsed();
    let account = std::fs::read_to_string(format!("/proc/{}/schedstat", child.id()))?;
    let nanoseconds = account
        .split(' ')
        .next()
        .and_then(|field| field.parse().ok())
        .unwrap_or(0);
    let code = child.wait()?.code().unwrap_or(-1);
    Ok(Cost {
        wall,
        cpu: Duration::from_nanos(nanoseconds),
        code,
    })
}

pub fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
