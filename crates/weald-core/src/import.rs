//! Reading tasks that come from elsewhere: JSON lines, Markdown lists, the state of a workflow.
//!
//! A line that can't be read is reported with its number and does not stop the others. What the lines mean together
//! (duplicates, circles) is judged where the store is. Fields that weald does not know are kept.

mod jsonl;
mod markdown;
mod workflow;

pub use jsonl::parse_jsonl;
pub use markdown::parse_markdown;
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

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LineError {
    /// Which line, from 1.
    pub line: usize,
    /// A stable word for it.
    pub code: &'static str,
    /// For people.
    pub message: String,
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
