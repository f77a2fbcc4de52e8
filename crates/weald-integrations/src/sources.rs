//! The tracker that tasks come from: asked for issues, and informed what became of them.
//!
//! Its commands run on the host, in the main checkout, with the user's own environment; they come from the user's
//! configuration or from weald, never from the repository. Each is bounded in time and output. What goes wrong is shown
//! and recorded, and stops nothing.

mod places;
mod process;
mod updating;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use weald_core::config::Config;
use weald_core::id::TaskId;
use weald_core::source::{Order, Tracker, expanded};

pub use updating::{UpdateError, follow_for_tracker, has_failed_updates};

/// Why a tracker did not answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// There is no command for it.
    #[error("there is no command for it: {key} is not set")]
    NoCommand {
        /// The key that would hold it.
        key: String,
    },
    /// The command line can't be read.
    #[error("{key} has an unclosed quote")]
    BadCommandLine {
        /// The key that holds it.
        key: String,
    },
    /// The program is not there.
    #[error("`{program}` is not installed (no absolute folder of PATH has it)")]
    NotInstalled { program: String },
    /// It could not be started or read.
    #[error("`{command}` could not be run: {why}")]
    NotRun { command: String, why: String },
    /// It took too long.
    #[error("`{command}` did not answer within {seconds} s (source.timeout), and was killed")]
    TimedOut {
        command: String,
        /// How long it had.
        seconds: u64,
    },
    /// It printed too much.
    #[error("`{command}` printed more than {limit} bytes, and was killed")]
    TooMuch {
        command: String,
        /// How much is read.
        limit: usize,
    },
    #[error("`{command}` failed ({status}): {said}")]
    Failed {
        command: String,
        status: String,
        /// What it said last.
        said: String,
    },
}

/// A tracker, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct Source {
    pub tracker: Tracker,
    lines: Vec<(Order, Line)>,
    timeout: Duration,
    updates: bool,
    /// Whether finished work lands by itself.
    lands: bool,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// The command line of an order.
#[derive(Debug, Clone)]
struct Line {
    text: String,
    /// Whether it is the user's: what is in it may be a secret, and everybody reads events.
    is_users: bool,
}

/// A command, and how it is shown when it fails.
struct Words {
    words: Vec<String>,
    shown: String,
}

const ORDERS: [Order; 6] = [
    Order::Fetch,
    Order::Claim,
    Order::Release,
    Order::Fail,
    Order::Close,
    Order::Reopen,
];

impl Source {
    /// The configured one; its commands run in `directory`.
    pub fn configured(
        config: &Config,
        directory: PathBuf,
        environment: Vec<(OsString, OsString)>,
    ) -> Option<Self> {
        let tracker = config.source_from?;
        Some(Self::of(tracker, config, directory, environment))
    }

    /// One that somebody names, whatever is configured.
    pub fn of(
        tracker: Tracker,
        config: &Config,
        directory: PathBuf,
        environment: Vec<(OsString, OsString)>,
    ) -> Self {
        let line = |order: Order| {
            let (text, is_users) = match config.get(&order.key()).0.as_text().unwrap_or_default() {
                "" => (tracker.command_line(order), false),
                "none" => ("", false),
                line => (line, true),
            };
            let text = text.to_owned();
            Line { text, is_users }
        };
        Self {
            tracker,
            lines: ORDERS.map(|order| (order, line(order))).to_vec(),
            timeout: config.source_timeout.unsigned_abs(),
            updates: config.source_update,
            lands: config.work_land,
            directory,
            environment,
        }
    }

    /// Asks for one issue.
    pub fn fetch(&self, id: &TaskId) -> Result<Vec<u8>, SourceError> {
        let none = || SourceError::NoCommand {
            key: Order::Fetch.key(),
        };
        let words = self.words(Order::Fetch, id, "")?.ok_or_else(none)?;
        process::run(&words, self)
    }

    /// Asks for all of them; `more` are further arguments.
    pub fn list(&self, more: &[String]) -> Result<Vec<u8>, SourceError> {
        let line = self.tracker.list_line();
        let line = line.ok_or_else(|| SourceError::NoCommand { key: "list".into() })?;
        let words = line.split(' ').map(str::to_owned);
        let words: Vec<_> = words.chain(more.iter().cloned()).collect();
        let shown = process::shown(&words);
        process::run(&Words { words, shown }, self)
    }

    /// The words of an order's command; none if it has none.
    fn words(
        &self,
        order: Order,
        id: &TaskId,
        message: &str,
    ) -> Result<Option<Words>, SourceError> {
        let line = self.lines.iter().find(|(known, _)| *known == order);
        let Some((_, line)) = line else {
            return Ok(None);
        };
        let words = shlex::split(&line.text);
        let words = words.ok_or_else(|| SourceError::BadCommandLine { key: order.key() })?;
        let words = words.iter().map(|word| expanded(word, id, message));
        let words: Vec<_> = words.collect();
        let shown = match (words.first(), line.is_users) {
            (None, _) => return Ok(None),
            (Some(program), true) => format!("{program} … ({})", order.key()),
            (Some(_), false) => process::shown(&words),
        };
        Ok(Some(Words { words, shown }))
    }
}
