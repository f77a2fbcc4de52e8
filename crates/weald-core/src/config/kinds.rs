//! What a key is, and what its value may be.

use super::settings::KEYS;

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any line of text.
    Text,
    /// Any line of text that only the user may set: a repository's is ignored.
    OwnText,
    Template,
    /// A path with `{placeholders}`, set by the user or a profile: a repository's is ignored, because the host writes there.
    Place,
    /// The same for the message of a landing; may be empty.
    Message,
    Switch,
    /// The same, set by the user alone: a repository's is ignored.
    OwnSwitch,
    /// A whole number from the first to the second.
    Number(i64, i64),
    /// A duration above zero, as `15m` or `2h 30m`.
    Duration,
    /// The same, of at most so many seconds, set by the user alone: a repository's is ignored.
    OwnDuration(i64),
    /// A duration, or `0`.
    Age,
    /// `none` (or `0`), or a duration.
    Interval,
    Choice(&'static [&'static str]),
    /// One of these, chosen by the user alone: a repository's is ignored.
    OwnChoice(&'static [&'static str]),
    /// One of these, loosest first: a repository may move it to the right of the default, not to the left.
    Guarded(&'static [&'static str]),
    /// A list of texts.
    List,
    /// A list of texts that only the user may set: a repository's is ignored.
    OwnList,
    /// The same for plain names of files or folders.
    OwnNames,
    /// A list of texts that everybody adds to. Only the user takes something out, by `!` and the text.
    JoinedList,
    /// A list of texts that everybody adds to, and nobody takes anything out of.
    GrowingList,
    /// `none`, or a size in bytes, as `512M` or `2G`.
    Size,
}

impl Kind {
    /// Whether only the user may set it.
    pub fn is_own(self) -> bool {
        matches!(
            self,
            Self::OwnText
                | Self::OwnSwitch
                | Self::OwnDuration(_)
                | Self::OwnChoice(_)
                | Self::OwnList
                | Self::OwnNames
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Dotted, as in TOML.
    pub name: &'static str,
    /// What its value may be.
    pub kind: Kind,
    /// What holds when nobody says anything; lists are comma separated.
    pub default: &'static str,
    /// One line for people.
    pub about: &'static str,
}

/// Looks a key up.
pub fn find_key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Variables that tell a command in a tree where it is; they set no key.
const TOLD: [&str; 10] = [
    "WEALD_TREE",
    "WEALD_TREE_PATH",
    "WEALD_TASK",
    "WEALD_TASK_SUBJECT",
    "WEALD_PROMPT_FILE",
    "WEALD_TOKEN",
    "WEALD_SESSION",
    "WEALD_MAIN",
    "WEALD_PORT",
    "WEALD_PORTS",
];

/// The variable that sets a key: `landing.strategy` is `WEALD_LANDING_STRATEGY`. `tree.path` has none: its name tells a
/// command where its tree is.
pub fn variable_of(key: &Key) -> Option<String> {
    let name = format!("WEALD_{}", key.name.replace('.', "_").to_ascii_uppercase());
    (!TOLD.contains(&name.as_str())).then_some(name)
}
