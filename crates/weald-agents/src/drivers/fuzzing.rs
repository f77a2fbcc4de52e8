//! What must hold for any output of an agent. A target in `fuzz/` calls this, and a test replays its corpus.

use jiff::{Timestamp, Zoned, tz::TimeZone};
use weald_core::agent::Usage;

use super::{BUILT_IN, Observed, limits, text};

/// Lines of a stream; each driver gets all of them, and each line also as a sentence about a limit.
pub fn agent_stream(data: &[u8]) {
    for (_, make) in BUILT_IN {
        let driver = make(&[]);
        for line in data.split(|byte| *byte == b'\n') {
            let observed = driver.read(line);
            assert!(
                !observed.is_empty(),
                "a line that says nothing is still one"
            );
            observed.iter().for_each(check);
        }
    }
    let now = now();
    for line in String::from_utf8_lossy(data).lines() {
        // Bounded by whoever waits; here it must only be a time.
        let _ = (limits::codex_failure(line, &now), limits::codex_retry(line));
    }
}

fn check(observed: &Observed) {
    match observed {
        Observed::Conversation(id) => {
            assert!(text::is_conversation(id), "{id:?} would stand in an argv");
        }
        Observed::Called(called) => {
            let line = called.line();
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(line.chars().count() <= 220, "{line:?}");
            is_plain(&called.id);
            is_plain(&called.tool);
        }
        Observed::Returned(returned) => is_plain(&returned.id),
        Observed::Said(said)
        | Observed::Complained(said)
        | Observed::Within { said, .. }
        | Observed::Finished { text: said, .. } => {
            let shown = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
            assert!(said.chars().all(shown), "{said:?}");
            assert!(said.chars().count() <= 16 * 1024 + 16);
        }
        Observed::Usage(usage)
        | Observed::Message { usage, .. }
        | Observed::Model { usage, .. } => counts(usage),
        Observed::Barred(_) | Observed::Unfit(_) | Observed::Raw => {}
    }
}

fn is_plain(id: &str) {
    assert!(!id.chars().any(char::is_control), "{id:?}");
}

/// What is added up over a day and compared with a budget must be a number that grows.
fn counts(usage: &Usage) {
    let cost = usage.cost_usd.unwrap_or_default();
    assert!(cost.is_finite() && cost >= 0.0, "{usage:?}");
}

fn now() -> Zoned {
    Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_found_by_fuzzing_stays_fixed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/agent_stream");
        for file in fs::read_dir(folder).unwrap() {
            agent_stream(&fs::read(file.unwrap().path()).unwrap());
        }
    }
}
