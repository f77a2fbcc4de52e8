//! Identifiers: what a task, tree, message, landing or event is called.
//!
//! A task id is a number of ours (`12`, also written `#12`) or an external id (`gh-12`, `bd-a1b2`). Whatever reaches
//! this type can stand in a path, a branch name and an argument vector, so everything else is refused here, once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::{NameError, check_name};

/// The longest external task id, in bytes.
pub const MAX_TASK_ID: usize = 64;

/// The largest task number: what every reader of JSON can hold.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// The largest number that counting goes on from.
const MAX_COUNTED: u64 = 1_000_000_000_000;

/// Prefixes that name the tracker an external id came from; [`TaskId::bare`] takes one of them off.
const SOURCE_PREFIXES: [&str; 2] = ["gh-", "beads-"];

/// What a task is called. Serialised as a JSON number or a JSON string, "as given".
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "RawTaskId", into = "RawTaskId")]
pub enum TaskId {
    /// An id that weald gave.
    Number(u64),
    /// An id from somewhere else, checked by the name rule.
    External(String),
}

/// Why a text is no task id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskIdError {
    /// Numbers start at 1, have no leading zero and fit 53 bits.
    #[error("a task number is 1 or more, without leading zeros")]
    BadNumber,
    /// The name rule refused an external id.
    #[error(transparent)]
    BadName(#[from] NameError),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RawTaskId {
    Number(u64),
    Text(String),
}

impl TryFrom<RawTaskId> for TaskId {
    type Error = TaskIdError;
    fn try_from(raw: RawTaskId) -> Result<Self, TaskIdError> {
        match raw {
            RawTaskId::Number(number) => Self::from_number(number),
            RawTaskId::Text(text) => text.parse(),
        }
    }
}

impl From<TaskId> for RawTaskId {
    fn from(id: TaskId) -> Self {
        match id {
            TaskId::Number(number) => Self::Number(number),
            TaskId::External(text) => Self::Text(text),
        }
    }
}

impl TaskId {
    fn from_number(number: u64) -> Result<Self, TaskIdError> {
        match number {
            1..=MAX_NUMBER => Ok(Self::Number(number)),
            _ => Err(TaskIdError::BadNumber),
        }
    }

    /// The number that counting goes on from. A very large one that somebody brought along is not counted from, or
    /// it would use up all numbers.
    pub fn counted(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number).filter(|number| *number <= MAX_COUNTED),
            Self::External(_) => None,
        }
    }

    /// The id without the name of its tracker: `gh-12` gives `12`, `beads-my-beads-1` gives `my-beads-1`.
    /// One prefix is taken off, once.
    pub fn bare(&self) -> String {
        let text = self.to_string();
        SOURCE_PREFIXES
            .iter()
            .find_map(|prefix| text.strip_prefix(prefix).filter(|rest| !rest.is_empty()))
            .map_or_else(|| text.clone(), str::to_owned)
    }
}

impl FromStr for TaskId {
    type Err = TaskIdError;
    fn from_str(text: &str) -> Result<Self, TaskIdError> {
        let text = text.strip_prefix('#').unwrap_or(text);
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            if text.starts_with('0') {
                return Err(TaskIdError::BadNumber);
            }
            return Self::from_number(text.parse().map_err(|_| TaskIdError::BadNumber)?);
        }
        check_name(text, MAX_TASK_ID)?;
        Ok(Self::External(text.to_owned()))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::External(text) => f.write_str(text),
        }
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

number_id!(
    /// A message's number in its repository.
    MessageId
);
number_id!(
    /// A tree's number: names are used again after a removal, ids are not.
    TreeId
);
number_id!(LandingId);
number_id!(
    /// An event's place in the log. Grows by one an event; 0 is "before the first".
    Seq
);
number_id!(
    /// A fencing token: grows with each claim of a task, never falls. 0 is "never claimed".
    Token
);

impl Token {
    /// The token of the next claim.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n7_task_ids_refuse_what_could_leave_its_place() {
        let refused = [
            "../x",
            "a;rm -rf .",
            "-x",
            "",
            " ",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a b",
            "$(id)",
            "`id`",
            "a\0b",
            "é",
            "0",
            "007",
            "18446744073709551616",
            "a..b",
            "x.lock",
            "x.",
            ".x",
            "##1",
            "a\nb",
            "a|b",
            "a&b",
            "a>b",
            "~",
            "*",
            "?",
            "#",
        ];
        for text in refused {
            assert!(text.parse::<TaskId>().is_err(), "{text:?} was taken");
        }
        assert!("x".repeat(MAX_TASK_ID + 1).parse::<TaskId>().is_err());
    }

    #[test]
    fn n7_external_ids_map_deterministically() {
        for (text, id, bare) in [
            ("12", TaskId::Number(12), "12"),
            ("#12", TaskId::Number(12), "12"),
            ("gh-12", TaskId::External("gh-12".into()), "12"),
            ("bd-a1b2", TaskId::External("bd-a1b2".into()), "bd-a1b2"),
            (
                "jean_claude-y97",
                TaskId::External("jean_claude-y97".into()),
                "jean_claude-y97",
            ),
        ] {
            let parsed: TaskId = text.parse().unwrap();
            assert_eq!(parsed, id);
            assert_eq!(parsed.bare(), bare);
        }
    }

    #[test]
    fn ids_keep_their_json_kind() {
        for json in ["12", "\"gh-12\""] {
            let id: TaskId = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
        }
        assert!(serde_json::from_str::<TaskId>("\"../x\"").is_err());
        assert!(serde_json::from_str::<TaskId>("0").is_err());
        assert!(serde_json::from_str::<TaskId>("-1").is_err());
    }
}
