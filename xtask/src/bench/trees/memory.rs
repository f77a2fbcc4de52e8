//! The peak of memory of a command: the largest process in its family.
//!
//! The kernel's own high-water mark of each process is read again and again; what is missed is the growth of the last
//! moment before an end.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Runs a command to its end; megabytes of the largest process.
pub fn peak(command: &mut Command) -> io::Result<f64> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut kilobytes = 0;
    loop {
        kilobytes = kilobytes.max(largest(child.id()));
        if let Some(status) = child.try_wait()? {
            return match status.success() {
                true => Ok(kilobytes as f64 / 1024.0),
                false => Err(io::Error::other(format!("{command:?} failed"))),
            };
        }
        thread::sleep(Duration::from_micros(500));
    }
}

/// The highest mark of a process and everything that it started.
fn largest(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let own = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0);
    let threads = fs::read_dir(format!("/proc/{id}/task"));
    let children = threads.into_iter().flatten().flatten().flat_map(|thread| {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let ids: Vec<u32> = text
            .split_whitespace()
            .filter_map(|id| id.parse().ok())
            .collect();
        ids
    });
    children.map(largest).fold(own, u64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::trees::rivals::command;

    #[test]
    fn the_largest_of_the_family_counts() {
        // The shell itself stays small; its child holds thirty megabytes for a while.
        let held = "head -c 30000000 /dev/zero | tail; :";
        let peak = peak(command("sh").args(["-c", held])).expect("it runs");
        assert!((25.0..200.0).contains(&peak), "{peak}");
    }
}
