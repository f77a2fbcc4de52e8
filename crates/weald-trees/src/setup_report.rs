//! What a set-up did, as records, messages and `--json` have it.

use serde::{Deserialize, Serialize};
use weald_core::setup::SetupOutcome;

/// What a set-up did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupReport {
    pub outcome: SetupOutcome,
    /// Files that `.worktreeinclude` brought.
    pub copied: u64,
    /// Folders that are shared.
    pub shared: Vec<String>,
    /// Where the commands come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The commands that ran.
    pub commands: Vec<CommandResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a command of a set-up ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    /// As it was written.
    pub command: String,
    /// Its exit code; absent when its time was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
}
