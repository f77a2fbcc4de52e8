//! How much a run may use of the host: buckets that may be overdrawn, because what something costs is known only after it.
//!
//! A request that overdraws a bucket waits until it is full enough again. So an honest burst is slow and not refused.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The most that a request may hold, in bytes.
pub const REQUEST: usize = 1 << 20;
/// The most that an answer may hold, in bytes.
pub const ANSWER: usize = 4 << 20;
/// How many connections there are at once.
pub const CONNECTIONS: usize = 8;
/// How long a connection may be silent before a request.
pub const SILENCE: Duration = Duration::from_secs(10);
/// How long a request may take to come in, or an answer to go out.
pub const TRANSFER: Duration = Duration::from_secs(10);
/// How long a request waits for its turn before it is refused.
pub const TURN: Duration = Duration::from_secs(10);
/// How long somebody who asks for too much waits to hear so.
pub const REFUSAL: Duration = Duration::from_millis(20);
/// The longest report or note, in bytes.
pub const TEXT: usize = 64 << 10;
/// Everything that one run may write, in bytes.
pub const WRITTEN: u64 = 64 << 20;

/// A bucket that fills up again.
pub struct Bucket {
    capacity: f64,
    per_second: f64,
    level: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub fn new(capacity: f64, per_second: f64, now: Instant) -> Self {
        Self {
            capacity,
            per_second,
            level: Mutex::new((capacity, now)),
        }
    }

    /// How long until something is in it again; zero if it is now.
    pub fn wait(&self, now: Instant) -> Duration {
        let level = self.level_at(now);
        match level > 0.0 {
            true => Duration::ZERO,
            false => Duration::from_secs_f64((-level / self.per_second) + 0.01),
        }
    }

    /// Takes out, also what is not there.
    pub fn take(&self, amount: f64, now: Instant) {
        let mut level = self.lock();
        let filled = self.filled(*level, now);
        *level = (filled - amount, now);
    }

    fn level_at(&self, now: Instant) -> f64 {
        let level = *self.lock();
        self.filled(level, now)
    }

    fn filled(&self, (level, at): (f64, Instant), now: Instant) -> f64 {
        let since = now.saturating_duration_since(at).as_secs_f64();
        (level + since * self.per_second).min(self.capacity)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (f64, Instant)> {
        // Nothing is left half-done in there.
        self.level
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_overdrawn_once_and_then_waited_for() {
        let start = Instant::now();
        let bucket = Bucket::new(2.0, 0.5, start);
        assert_eq!(bucket.wait(start), Duration::ZERO);
        bucket.take(3.0, start);
        let wait = bucket.wait(start);
        assert!(
            wait > Duration::from_secs(2) && wait < Duration::from_secs(3),
            "{wait:?}"
        );
        assert_eq!(bucket.wait(start + wait), Duration::ZERO);
        // It never holds more than it can.
        let much_later = start + Duration::from_secs(1_000);
        bucket.take(2.5, much_later);
        assert!(bucket.wait(much_later) > Duration::ZERO);
    }
}
