//! The set-up of a new tree: which commands a repository proposes, whether somebody approved them, and where links lead.
//!
//! Pure: the engine reads the files (at the target's tip, never in a tree), copies and runs.

mod cargo;
mod links;
mod templates;
mod tools;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use cargo::is_bound_to;
pub use links::{is_shareable, names_its_place, relinked, renamed};
pub use templates::expand;
pub use tools::{SETTINGS_FILES, ToolFile, linked_directories};

/// How a set-up ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupOutcome {
    #[default]
    Done,
    Failed,
    /// Nobody approved the repository's commands, so none ran.
    Unapproved,
    /// The configured sandbox is not available here, so none ran.
    Unavailable,
}

/// What a tree's record says about its set-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupRecord {
    pub outcome: SetupOutcome,
    pub at: Timestamp,
}

/// Commands, and where they come from. Two are the same only if every word is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The file, or the origin of the key.
    pub from: String,
    /// The commands, in order.
    pub commands: Vec<String>,
}

/// A proposal that somebody approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    #[serde(flatten)]
    pub proposal: Proposal,
    pub at: Timestamp,
}

/// Whether exactly this was approved.
pub fn is_approved(approvals: &[Approval], proposal: &Proposal) -> bool {
    approvals
        .iter()
        .any(|approval| approval.proposal == *proposal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(from: &str, commands: &[&str]) -> Proposal {
        Proposal {
            from: from.to_owned(),
            commands: commands.iter().map(|&command| command.to_owned()).collect(),
        }
    }

    #[test]
    fn k14_an_approval_holds_for_its_own_words_only() {
        let approvals = [Approval {
            proposal: proposal("weald.toml", &["npm ci", "npm run build"]),
            at: Timestamp::UNIX_EPOCH,
        }];
        for (from, commands, expected) in [
            ("weald.toml", &["npm ci", "npm run build"][..], true),
            ("weald.toml", &["npm ci"], false),
            ("weald.toml", &["npm run build", "npm ci"], false),
            ("weald.toml", &["npm ci ", "npm run build"], false),
            ("weald.toml", &["npm ci\0npm run build"], false),
            ("conductor.json", &["npm ci", "npm run build"], false),
        ] {
            let asked = proposal(from, commands);
            assert_eq!(is_approved(&approvals, &asked), expected, "{asked:?}");
        }
    }
}
