//! Times for people.

use std::time::Duration;

use weald_core::Timestamp;

/// How long ago: `3m`.
pub fn ago(time: Timestamp, now: Timestamp) -> String {
    short(now.duration_since(time).as_secs())
}

/// How long still: `12m left`, or `expired`.
pub fn left(until: Timestamp, now: Timestamp) -> String {
    // Rounded up: a claim of 15 minutes has 15 minutes left when it is made.
    match until.duration_since(now).as_millis() {
        millis if millis > 0 => format!("{} left", short((millis as i64 + 999) / 1_000)),
        _ => "expired".to_owned(),
    }
}

/// How long something took: `840 ms`, `33 s`, `2 min 5 s`.
pub fn took(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

fn short(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
