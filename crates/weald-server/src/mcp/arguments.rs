//! What several tools take.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use weald_app::exit;
use weald_core::SignedDuration;
use weald_core::config::parse_age;
use weald_core::id::TaskId;
use weald_core::meant::Word;
use weald_core::message::Urgency;

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
    /// The id of a task that is to be made.
    pub fn id(&self) -> Result<TaskId, Fault> {
        let word = self.to_string();
        word.parse()
            .map_err(|error| invalid(&word, "task_id", &error))
    }

    /// What is looked up. A number is a task's.
    pub fn word(&self) -> Result<Word, Fault> {
        let text = match self {
            Self::Number(number) => format!("#{number}"),
            Self::Word(word) => word.clone(),
        };
        parsed("task_id", &text)
    }
}

/// What is looked up for several tasks.
pub fn words(tasks: &[TaskRef]) -> Result<Vec<Word>, Fault> {
    tasks.iter().map(TaskRef::word).collect()
}

/// An argument that is read from text.
pub fn parsed<T: FromStr<Err: fmt::Display>>(name: &str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|error| invalid(text, name, &error))
}

/// A duration, or zero.
pub fn age(name: &str, text: &str) -> Result<SignedDuration, Fault> {
    parse_age(text).map_err(|error| invalid(text, name, &error))
}

/// The words that a shell runs a line with; none without a line.
pub fn shell(line: Option<String>) -> Vec<String> {
    let words = line.map(|line| ["sh".to_owned(), "-c".to_owned(), line]);
    words.into_iter().flatten().collect()
}

/// One of a few words.
pub fn word<T: DeserializeOwned>(name: &str, text: &str, known: &[&str]) -> Result<T, Fault> {
    let word = serde_json::from_value(text.into()).ok();
    let word = word.filter(|_| known.contains(&text));
    word.ok_or_else(|| invalid(text, name, &format!("known are {}", known.join(", "))))
}

/// How soon a message should be read.
pub fn urgency(text: Option<&str>) -> Result<Urgency, Fault> {
    let word = |text| word("priority", text, &["info", "steer", "urgent"]);
    text.map_or(Ok(Urgency::Info), word)
}

/// How long a call waits for others, if at all.
pub fn waiting(seconds: u64) -> Option<SignedDuration> {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    (seconds > 0).then(|| SignedDuration::from_secs(seconds))
}

fn invalid(text: &str, name: &str, error: &dyn fmt::Display) -> Fault {
    let message = format!("invalid value '{text:.100}' for '{name}': {error}");
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
