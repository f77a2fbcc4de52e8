//! What an agent did last, in a small file beside its log: too often for the store, and nothing depends on it.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_sandbox::Refusal;

/// The file's name in the agent's folder.
const FILE: &str = "activity.json";

/// What an agent did last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// When it last did anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Timestamp>,
    /// When it last wrote something to its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_output: Option<Timestamp>,
    /// When its tree last changed, as far as that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_change: Option<Timestamp>,
    /// The last tool it used, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_action: String,
    /// The last thing it said, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_said: String,
    /// How many tools it used.
    #[serde(default)]
    pub actions: u64,
    /// How much it wrote.
    #[serde(default)]
    pub output_bytes: u64,
    /// What it wanted to reach and may not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
    /// How often, also where the list has no more room.
    #[serde(default)]
    pub refusals: u64,
}

impl Activity {
    /// What is known of an agent; nothing, if nobody wrote it down.
    pub fn read(folder: &Path) -> Self {
        let text = fs::read(folder.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes it down; a reader sees the old or the new one.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let text = serde_json::to_vec(self).expect("an activity has text keys");
        let new = folder.join("activity.new");
        fs::write(&new, text)?;
        fs::rename(new, folder.join(FILE))
    }
}
