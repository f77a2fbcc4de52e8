//! A request to end, noticed between two steps and while another process works.

use std::io;
use std::time::{Duration, Instant};

use weald_sandbox::{Cancel, Ended, Running};

use super::{TreeError, Trees};

/// How long a request to end may wait for the end of a process that it ends.
const GLANCE: Duration = Duration::from_millis(50);

impl Trees<'_> {
    /// Refuses to continue once the end was asked for.
    pub(super) fn go_on(&self) -> Result<(), TreeError> {
        match self.host.cancel.asked() {
            None => Ok(()),
            Some(signal) => Err(TreeError::Interrupted(signal)),
        }
    }
}

/// Waits for the end of a process; `cancel` ends it, and all that it started.
pub(super) fn wait_or_interrupt(
    mut running: Running,
    limit: Duration,
    cancel: &Cancel,
) -> io::Result<Ended> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Some(ended) = running.ended_within(Some(left.min(GLANCE)))? {
            return Ok(ended);
        }
        if let Some(signal) = cancel.asked() {
            running.stop()?;
            return Ok(Ended::Signal(signal.into()));
        }
        if left.is_zero() {
            running.stop()?;
            return Ok(Ended::TimedOut);
        }
    }
}
