//! What an agent was told, did and said, one entry a line, in a file beside its log.
//!
//! The log has the agent's stream as it came; here is what that means, with times, and with what the stream lacks: the
//! prompt and the messages that the agent was given. Its text is the agent's own, so every reader treats it as untrusted.

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;

/// The file's name in an agent's folder; the older half has `.1` behind.
pub const TRANSCRIPT_FILE: &str = "transcript.jsonl";

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When; absent where an earlier version kept no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(flatten)]
    pub event: Event,
}

/// What happened. `within` names the call of the agent's that started the subagent whose event it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// What it was asked at its start.
    Prompt { text: String },
    /// A message that was given to it while it worked.
    Message { from: String, text: String },
    /// Its own words.
    Said {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// A tool that it uses.
    Call {
        id: String,
        tool: String,
        /// What it does with it: a command, a path.
        detail: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// What came of that.
    Result {
        /// Of the call.
        id: String,
        ok: bool,
        /// The exit code of a command, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i64>,
        text: String,
    },
    /// A line beside its stream: errors mostly.
    Output { text: String },
    /// Its end, where its last words do not say as much.
    Ended { ok: bool, text: String },
}

impl Entry {
    /// Reads a line; nothing where that is damaged, or from a later version.
    pub fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The entry as a line.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("an entry has text keys");
        line.push(b'\n');
        line
    }

    /// What it says, if that is something that the agent wrote.
    pub fn output(&self) -> Option<&str> {
        match &self.event {
            Event::Said { text, .. }
            | Event::Result { text, .. }
            | Event::Output { text }
            | Event::Ended { text, .. } => Some(text),
            Event::Prompt { .. } | Event::Message { .. } | Event::Call { .. } => None,
        }
    }
}
