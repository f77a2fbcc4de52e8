//! What goes over the socket: one line of JSON each way.
//!
//! ```text
//! {"secret":"…","ask":{"op":"task_show","id":7}}
//! {"exit":0,"notes":[],"answer":{"schema_version":1,"task":{…}}}
//! ```
//!
//! `answer` is the object that the same command prints outside with `--json`, an error's included; `exit` is its exit
//! code; `notes` is what it would say beside. Unknown words are refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use weald_app::Ask;
use weald_app::operations::object_of;
use weald_core::error_code::ErrorCode;
use weald_core::id::Token;
use weald_core::name::SessionName;

/// What a command inside asks, and what it says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub secret: String,
    /// Who it says it is. Checked, never believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    /// Under which claim it says it works. Checked, never believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    pub ask: Ask,
}

/// An error as every face tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub code: ErrorCode,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default)]
    pub details: Box<Value>,
    pub exit: u8,
}

impl Fault {
    /// One with nothing but words.
    pub fn new(code: impl Into<ErrorCode>, exit: u8, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            hint: None,
            details: Box::new(json!({})),
            exit,
        }
    }

    /// The same with what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The exit code of the command.
    pub exit: u8,
    /// What it says beside its answer.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The answer, as the command prints it for programs.
    pub answer: Map<String, Value>,
}

impl Reply {
    /// An answer with nothing in it yet.
    pub fn new() -> Self {
        Self::of(&())
    }

    /// The answer of an operation.
    pub fn of(answer: &impl Serialize) -> Self {
        Self {
            exit: 0,
            notes: Vec::new(),
            answer: object_of(answer),
        }
    }

    /// The same with one more field.
    pub fn with(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.answer.insert(name.to_owned(), value);
        self
    }

    pub fn fault(fault: &Fault) -> Self {
        let mut error = serde_json::to_value(fault).unwrap_or_default();
        if let Some(error) = error.as_object_mut() {
            error.remove("exit");
        }
        Self {
            exit: fault.exit,
            ..Self::new().with("error", &error)
        }
    }

    /// The error in it, if it is one.
    pub fn as_fault(&self) -> Option<Fault> {
        let mut error = self.answer.get("error")?.clone();
        error
            .as_object_mut()?
            .insert("exit".to_owned(), self.exit.into());
        serde_json::from_value(error).ok()
    }
}

impl Default for Reply {
    fn default() -> Self {
        Self::new()
    }
}
