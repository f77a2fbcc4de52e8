//! Reading tasks that come from elsewhere: JSON lines, Markdown lists, issues of a tracker, the state of a workflow.
//!
//! A line that can't be read is reported with its number and does not stop the others. What the lines mean together
//! (duplicates, circles) is judged where the store is. Fields that weald does not know are kept.

mod beads;
mod entries;
mod gh;
mod jsonl;
mod markdown;
mod renewing;
mod workflow;

pub use beads::parse_beads;
pub use gh::parse_gh;
pub use jsonl::parse_jsonl;
pub use markdown::parse_markdown;
pub use renewing::{Renewal, is_history, is_same, renewal};
pub use workflow::parse_workflow;

use crate::id::TaskId;
use crate::task::Task;

/// The longest line that is read.
pub const MAX_LINE: usize = 1024 * 1024;

/// A task as it came, before it has its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// Where it stands in the input, from 1.
    pub line: usize,
    /// The id it brings; without one it gets a number.
    pub id: Option<TaskId>,
    /// Everything else. Its `id` is a placeholder until it has one.
    pub task: Task,
    /// Other incoming tasks it waits for, by their place in the list.
    pub waits_for: Vec<usize>,
}

impl Incoming {
    fn new(line: usize, id: Option<TaskId>, task: Task) -> Self {
        Self {
            line,
            id,
            task,
            waits_for: Vec::new(),
        }
    }
}

/// A stable word for what is wrong, and a sentence.
type Problem = (&'static str, String);

fn require_short(what: &str, bytes: &[u8]) -> Result<(), Problem> {
    let why = || format!("{what} can have at most {MAX_LINE} bytes");
    let is_short = bytes.len() <= MAX_LINE;
    is_short
        .then_some(())
        .ok_or_else(|| ("line_too_long", why()))
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LineError {
    /// Which line, or which place in a list, from 1.
    pub line: usize,
    /// What people call it, if it comes from a tracker: `issue 12 (Fix the login)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// A stable word for it.
    pub code: String,
    pub message: String,
}

impl LineError {
    fn new(line: usize, (code, message): Problem) -> Self {
        Self {
            line,
            entry: None,
            code: code.to_owned(),
            message,
        }
    }

    /// Where it is, in words.
    pub fn place(&self) -> String {
        match &self.entry {
            Some(entry) => entry.clone(),
            None => format!("line {}", self.line),
        }
    }
}

/// What came out of an input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// The tasks, in order.
    pub tasks: Vec<Incoming>,
    /// The lines that are none.
    pub errors: Vec<LineError>,
    /// What a person should know about those that were read.
    pub warnings: Vec<String>,
}

#[cfg(test)]
impl Parsed {
    /// Line and code of every error.
    fn codes(&self) -> Vec<(usize, &str)> {
        let errors = self.errors.iter();
        errors
            .map(|error| (error.line, error.code.as_str()))
            .collect()
    }
}
