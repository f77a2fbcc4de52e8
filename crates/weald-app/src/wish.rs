//! How a run asks for its own worktree to land. It stands alone: operations make it, and the window of a run hands it over.

use serde::{Deserialize, Serialize};
use weald_core::landing::Strategy;

use crate::CommitScope;

/// How the own tree is to land.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandWish {
    /// Refused unless it is the run's own.
    #[serde(default)]
    pub tree: Option<String>,
    /// How it is expected to land; refused if that is not as configured.
    #[serde(default)]
    pub strategy: Option<Strategy>,
    /// The message of the commit that lands.
    #[serde(default)]
    pub message: Option<String>,
    /// What was done, for the task that is completed by it.
    #[serde(default)]
    pub report: Option<String>,
    /// Only say what would happen.
    #[serde(default)]
    pub dry_run: bool,
    /// Leave it in the queue.
    #[serde(default)]
    pub no_wait: bool,
    /// Keep the worktree; one that an agent works in stays anyway.
    #[serde(default)]
    pub keep: bool,
    /// Commit these changes first. Only a person is asked about that.
    #[serde(default)]
    pub commit: Option<CommitScope>,
}
