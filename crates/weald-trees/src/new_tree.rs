//! A tree that is asked for, and how it came about.

use weald_core::id::TaskId;
use weald_core::tree::{Tree, TreeKind};

use super::pool::Population;
use super::setup_report::SetupReport;

/// What happens when the branch exists already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchExists {
    /// The tree is not made.
    #[default]
    Error,
    /// The tree starts from it.
    Reuse,
    /// The branch is made anew; what it held is kept in the vault.
    Recreate,
}

/// A tree to be made.
#[derive(Debug, Clone, Default)]
pub struct NewTree {
    /// What to call it; without one, the task says.
    pub name: Option<String>,
    /// Whose tree it is.
    pub task: Option<TaskId>,
    /// What it starts from.
    pub base: Option<String>,
    /// What it lands on.
    pub target: Option<String>,
    pub kind: TreeKind,
    /// When the branch exists.
    pub branch_exists: BranchExists,
    /// A branch of the user's that it is for, instead of one of its own.
    pub branch: Option<String>,
    /// The tree whose branch a short-lived one lands on.
    pub scratch_for: Option<String>,
    /// Check out anew, whatever the pool has.
    pub no_pool: bool,
    /// The task that it is an entry of a race for: called after it, not bound to it.
    pub entry_of: Option<TaskId>,
}

/// How a tree came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreateOutcome {
    Created,
    Reused,
    /// Its directory was gone and was made again.
    Recreated,
    /// The caller is in a tree already.
    Skipped,
}

/// A tree, and what a person should know about how it came about.
#[derive(Debug, Clone)]
pub struct Created {
    pub tree: Tree,
    pub outcome: CreateOutcome,
    /// Where the files of a new one come from.
    pub population: Option<Population>,
    /// Whether a new one starts from a branch that was there.
    pub branch_reused: bool,
    /// What may be unexpected.
    pub notes: Vec<String>,
    /// What its set-up did, if there was anything to do.
    pub setup: Option<SetupReport>,
}

impl Created {
    /// Nothing has to be said about it.
    pub(super) fn of(tree: Tree, outcome: CreateOutcome) -> Self {
        Self {
            tree,
            outcome,
            population: None,
            branch_reused: false,
            notes: Vec::new(),
            setup: None,
        }
    }
}
