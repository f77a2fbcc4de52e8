//! What several tools take.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use weald_app::exit;
use weald_core::id::TaskId;

use crate::broker::Fault;

/// A task as agents name it: its number, or the word of the tracker that it came from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum TaskRef {
    Number(u64),
    /// Of a tracker, or a number in quotes.
    Word(String),
}

impl TaskRef {
    /// From a field of an answer.
    pub fn of(value: &Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }
}

impl TaskRef {
    /// The task's id.
    pub fn id(&self) -> Result<TaskId, Fault> {
        let word = self.to_string();
        word.parse()
            .map_err(|error| invalid(&word, "task_id", &error))
    }
}

/// The ids of several tasks.
pub fn ids(tasks: &[TaskRef]) -> Result<Vec<TaskId>, Fault> {
    tasks.iter().map(TaskRef::id).collect()
}

/// An argument that is read from text.
pub fn parsed<T: FromStr<Err: fmt::Display>>(name: &str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|error| invalid(text, name, &error))
}

/// An argument of a few words.
pub fn one_of<T>(
    name: &str,
    text: &str,
    words: &[&str],
    of: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Fault> {
    let known = || format!("known are {}", words.join(", "));
    of(text).ok_or_else(|| invalid(text, name, &known()))
}

/// The words that a shell runs a line with; none without a line.
pub fn shell(line: Option<String>) -> Vec<String> {
    let words = line.map(|line| ["sh".to_owned(), "-c".to_owned(), line]);
    words.into_iter().flatten().collect()
}

fn invalid(text: &str, name: &str, error: &dyn fmt::Display) -> Fault {
    let message = format!("invalid value '{text:.100}' for {name}: {error}");
    Fault::new("invalid_value", exit::USAGE, message).hint("see the tool's input schema")
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => f.write_str(word.strip_prefix('#').unwrap_or(word)),
        }
    }
}

impl JsonSchema for TaskRef {
    fn schema_name() -> Cow<'static, str> {
        "TaskRef".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 1 })
    }
}
