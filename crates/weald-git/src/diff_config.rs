//! How a user's git shows a diff, by the configuration that it reads in a repository of theirs.

use std::path::Path;

use crate::GitError;
use crate::signing::{config_as_user, config_entries};

/// One entry of a user's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSetting {
    /// Whether it is the user's or the machine's, and not the repository's own.
    pub is_users: bool,
    /// In small letters.
    pub key: String,
    /// An entry without one means true.
    pub value: Option<String>,
}

/// Lists the settings that bear on how diffs are shown, later ones over earlier ones.
pub fn diff_settings(git_dir: &Path, home: Option<&Path>) -> Result<Vec<UserSetting>, GitError> {
    let keys = r"^((diff|core|pager)\.[^.]*|color\.(ui|diff|diff\.[^.]*))$";
    // No entry is an exit code of its own.
    let listed = config_as_user(git_dir, home)
        .args(["-z", "--show-scope", "--includes", "--get-regexp", keys])
        .output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let entries = config_entries(&listed).into_iter();
    let owned = entries.map(|entry| UserSetting {
        is_users: entry.is_users,
        key: entry.key.to_owned(),
        value: entry.value.map(str::to_owned),
    });
    Ok(owned.collect())
}

/// The sequence of a colour that is set, as git writes it.
pub fn color_sequence(git_dir: &Path, home: Option<&Path>, key: &str) -> Result<String, GitError> {
    config_as_user(git_dir, home)
        .args(["--get-color", key, ""])
        .text()
}
