//! What several tools take.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

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
