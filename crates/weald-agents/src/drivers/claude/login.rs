//! Whether the user's login of Claude Code is good, as far as their own files say.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use weald_control::files::read_small_bytes;
use weald_core::Timestamp;

use super::{CREDENTIALS, SETTINGS, STATE, STATE_FILE, Variable};

/// The largest file that is looked into.
const FILE_LIMIT: u64 = 16 << 20;

/// Variables by which it logs in without its own login, or talks to another provider.
const OTHER_LOGINS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// Where the user's own settings and login are.
pub(super) fn folder(user_home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
    let named = variable(STATE).filter(|folder| !folder.is_empty());
    named
        .map(PathBuf::from)
        .or_else(|| Some(user_home?.join(".claude")))
}

/// Whether nothing but a login is there to work with, and it has expired. An agent can't renew it: it gets no refresh
/// token.
pub(super) fn has_expired(
    user_home: Option<&Path>,
    variable: &Variable<'_>,
    now: Timestamp,
) -> bool {
    let has = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
    let Some(folder) = folder(user_home, variable) else {
        return false;
    };
    let expires_at = object(&folder.join(CREDENTIALS)).and_then(|credentials| {
        let login = credentials.get("claudeAiOauth")?;
        login.get("expiresAt")?.as_i64()
    });
    let is_past = expires_at.is_some_and(|millis| millis <= now.as_millisecond());
    is_past && !OTHER_LOGINS.iter().any(has) && !has_key(&folder, user_home)
}

/// Whether the user's settings name a key, or a program that has one.
fn has_key(folder: &Path, user_home: Option<&Path>) -> bool {
    let settings = object(&folder.join(SETTINGS)).unwrap_or_default();
    let variables = settings.get("env").and_then(Value::as_object);
    let has_variable =
        variables.is_some_and(|set| OTHER_LOGINS.iter().any(|name| set.contains_key(*name)));
    let places = [Some(folder), user_home].into_iter().flatten();
    let mut states = places.filter_map(|place| object(&place.join(STATE_FILE)));
    settings.contains_key("apiKeyHelper")
        || has_variable
        || states.any(|state| state.contains_key("primaryApiKey"))
}

fn object(path: &Path) -> Option<Map<String, Value>> {
    let bytes = read_small_bytes(path, FILE_LIMIT).ok()??;
    serde_json::from_slice(&bytes).ok()
}
