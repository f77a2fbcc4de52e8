//! The user whom git knows: by the user's own configuration and main's, never by a worktree's, which an agent may write.

use std::path::Path;

use crate::{Git, GitError};

/// Who commits, as far as git was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitUser {
    pub name: Option<String>,
    pub mail: Option<String>,
}

impl GitUser {
    /// Reads it, for the repository with this common directory and the user with this home.
    pub fn read(common_dir: &Path, home: Option<&Path>) -> Result<Self, GitError> {
        let asked = Git::with_own_config(common_dir, "config")
            .with_user_config(home)
            .args(["-z", "--get-regexp", "^user\\.(name|email)$"])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout).into_owned();
        let value = |key: &str| {
            let values = text.split('\0').filter_map(|pair| pair.split_once('\n'));
            // Later ones win.
            let last = values.rev().find(|(name, _)| *name == key);
            let last = last.map(|(_, value)| value.trim().to_owned());
            last.filter(|value| !value.is_empty())
        };
        Ok(Self {
            name: value("user.name"),
            mail: value("user.email"),
        })
    }
}
