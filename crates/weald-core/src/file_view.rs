//! File views: the files that other systems keep beside the code, rendered from weald's records and events.
//!
//! Pure: paths relative to the main checkout, and text. Names, fields and shapes are those of each system; besides them
//! every file and line carries `_view`, so that nobody takes it for the truth. Nothing here is ever read back.

mod agents;
mod planes;

pub use agents::{phase, state_text};
pub use planes::index_text;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::AgentId;
use crate::choice::choice;
use crate::event::Event;
use crate::id::TaskId;
use crate::name::TreeName;
use crate::task::Task;

/// The field that marks a view.
pub const MARK: &str = "_view";

/// What the mark of a file says.
const MARK_TEXT: &str = "written by weald from its own state; an edit is not read back";

/// Files in the folder of trees that are no trees.
pub const BESIDE_TREES: [&str; 2] = ["index.json", "events.jsonl"];

choice! {
    /// Whose files are kept.
    pub enum ViewKind {
        TwoPlane = "two-plane",
        Classroom = "classroom",
        JeanClaude = "jean-claude",
    }
}

impl ViewKind {
    /// What git must not see, as lines of an exclude file.
    pub fn excluded(self) -> &'static [&'static str] {
        match self {
            Self::TwoPlane | Self::Classroom => &["/.tasks/", "/.worktrees/"],
            // `agents/` itself may be the project's own.
            Self::JeanClaude => &["/agents/*/state.json", "/agents/*/logs/"],
        }
    }

    /// The file of events, one a line.
    pub fn event_file(self) -> Option<&'static str> {
        match self {
            Self::TwoPlane | Self::Classroom => Some(".worktrees/events.jsonl"),
            Self::JeanClaude => None,
        }
    }

    /// The file that lists all trees.
    pub fn index_file(self) -> Option<&'static str> {
        match self {
            Self::TwoPlane => Some(".worktrees/index.json"),
            Self::Classroom | Self::JeanClaude => None,
        }
    }

    /// The file of a task.
    pub fn task_file(self, id: &TaskId) -> Option<String> {
        match self {
            Self::TwoPlane => Some(format!(".tasks/task_{id}.json")),
            Self::Classroom => Some(format!(".tasks/{id}.json")),
            Self::JeanClaude => None,
        }
    }

    /// The file of a tree's work.
    pub fn state_file(self, tree: &TreeName) -> Option<String> {
        match self {
            Self::JeanClaude => Some(format!("agents/{tree}/state.json")),
            Self::TwoPlane | Self::Classroom => None,
        }
    }

    /// The folder for logs of a tree's work.
    pub fn log_folder(self, tree: &TreeName) -> Option<String> {
        match self {
            Self::JeanClaude => Some(format!("agents/{tree}/logs")),
            Self::TwoPlane | Self::Classroom => None,
        }
    }

    /// The output of an agent in that folder.
    pub fn log_file(self, tree: &TreeName, agent: AgentId) -> Option<String> {
        let folder = self.log_folder(tree)?;
        Some(format!("{folder}/{agent}.log"))
    }

    /// What a task's file says.
    pub fn task_text(self, task: &Task) -> String {
        match self {
            Self::Classroom => pretty(planes::classroom_task(task)),
            Self::TwoPlane | Self::JeanClaude => pretty(planes::two_plane_task(task)),
        }
    }

    /// The line of an event, without its end; `None` for events that the system does not know.
    pub fn event_line(self, event: &Event) -> Option<String> {
        let mut line = match self {
            Self::TwoPlane => planes::two_plane_event(event)?,
            Self::Classroom => planes::classroom_event(event)?,
            Self::JeanClaude => return None,
        };
        line[MARK] = event.seq.0.into();
        Some(line.to_string())
    }
}

/// Whether a text is a view of weald's; for a file of lines, by its first one.
pub fn is_marked(text: &[u8]) -> bool {
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let marked = |text: &[u8]| {
        serde_json::from_slice::<Value>(text).is_ok_and(|value| value.get(MARK).is_some())
    };
    marked(text) || marked(first)
}

/// A whole file, marked.
fn pretty(mut value: Value) -> String {
    value[MARK] = MARK_TEXT.into();
    format!("{value:#}\n")
}

/// Seconds since 1970, as these systems write times.
fn seconds(time: Timestamp) -> f64 {
    time.as_millisecond() as f64 / 1e3
}

#[cfg(test)]
mod tests;
