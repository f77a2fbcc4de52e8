//! What became of a tree, its branch and its task after a landing.

use serde::{Deserialize, Serialize};

/// What a landing cleaned up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleanup {
    /// `trashed`, `already_gone`, `absent` or `kept`.
    pub directory: String,
    /// `deleted`, `kept_unmerged`, `kept_by_policy`, `absent` or `kept`.
    pub branch: String,
    /// `removed` (into the trash) or `kept`.
    pub record: String,
    /// `completed`, `reopened` (by a revert), `kept` or `none`.
    pub task: String,
    /// Why something was kept that would have gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many ignored files went with the directory.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ignored: u64,
    /// How to get the directory back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}
