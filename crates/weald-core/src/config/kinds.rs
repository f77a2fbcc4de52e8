//! What a key is, and what its value may be.

use super::settings::KEYS;
use crate::attention::AttentionKind;
use crate::nearest::nearest;

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
    /// A list of hosts that the user adds to, and takes out of by `!`. What the repository's file says is a proposal: it
    /// counts once somebody approved exactly that.
    Hosts,
    /// `none`, or a size in bytes, as `512M` or `2G`.
    Size,
    /// `none`, or money or tokens, as `$5` or `500k tokens`. A repository sets one only where the user did not.
    Budget,
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

impl Key {
    /// The words that its list may hold, where not any text.
    pub fn words(&self) -> Option<Vec<&'static str>> {
        (self.name == "notify.on").then(|| AttentionKind::ALL.map(AttentionKind::as_str).to_vec())
    }
}

/// Looks a key up.
pub fn find_key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The keys that a name most likely means: those that end in it, or the one that is spelled much like it.
pub fn similar_keys(name: &str) -> Vec<&'static str> {
    let leaf = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let names = || KEYS.iter().map(|key| key.name);
    let given = name.rsplit('.').next().unwrap_or(name);
    let ending = |given: &str| -> Vec<_> { names().filter(|known| leaf(known) == given).collect() };
    let mut found = ending(given);
    if found.is_empty() {
        found.extend(nearest(name, names()));
    }
    if found.is_empty()
        && let Some(near) = nearest(given, names().map(leaf))
    {
        found = ending(near);
    }
    if found.is_empty() && !name.is_empty() {
        found = names().filter(|known| known.contains(name)).collect();
    }
    found.truncate(3);
    found
}

/// The section that a name most likely means: keys of it begin with that word.
pub fn similar_section(name: &str) -> Option<&'static str> {
    let sections = || {
        KEYS.iter()
            .filter_map(|key| Some(key.name.split_once('.')?.0))
    };
    let is_leaf = KEYS
        .iter()
        .any(|key| key.name.ends_with(&format!(".{name}")));
    match sections().find(|section| *section == name) {
        None if is_leaf || name.contains('.') => None,
        None => nearest(name, sections()),
        section => section,
    }
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
