//! Finding a key, and the variable that sets it.

use super::kinds::Key;
use super::settings::KEYS;

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
