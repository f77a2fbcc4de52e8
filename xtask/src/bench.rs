//! Benchmarks. Every figure is a ratio against something measured in the same run, interleaved.

pub mod control;
pub mod naive;
pub mod seed;
pub mod workers;

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions};

/// Prints a line.
pub fn say(text: &str) {
    // A closed pipe ends the report, not the measurement.
    let _ = writeln!(io::stdout(), "{text}");
}

/// What one run of a command cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From start to end.
    pub wall: Duration,
    /// User and system time of the process.
    pub cpu: Duration,
}

/// Runs a command to its end and says what it cost. It must succeed.
pub fn measure(command: &mut Command) -> io::Result<Cost> {
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
    match child.wait()?.success() {
        true => Ok(Cost {
            wall,
            cpu: Duration::from_nanos(nanoseconds),
        }),
        false => Err(io::Error::other(format!("{command:?} failed"))),
    }
}

/// The middle value.
pub fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Milliseconds, for tables.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
