//! Changes of the user's that a landing took out of the checkout of its target and could not put back.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where such a change is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptKind {
    Stash,
    /// In weald's own folder.
    Rescued,
}

/// One of them. It is part of the landing's record, so every answer about the landing names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptChange {
    pub kind: KeptKind,
    /// The checkout that it was taken from.
    pub checkout: PathBuf,
    /// How to name it: `stash@{0}` at that time, or the path of the file.
    pub name: String,
    /// The stash's commit, which stays the same when other entries are pushed on top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why it was not put back.
    pub why: String,
    /// The command that brings it back.
    pub command: String,
}

impl KeptChange {
    /// An entry of the stash.
    pub fn stash(checkout: PathBuf, name: &str, commit: &str, why: &str) -> Self {
        Self {
            kind: KeptKind::Stash,
            command: format!("git -C {} stash pop {name}", quoted(&checkout)),
            checkout,
            name: name.to_owned(),
            commit: Some(commit.to_owned()),
            why: why.to_owned(),
        }
    }

    /// A file that was written while the landing replaced it.
    pub fn rescued(checkout: PathBuf, file: &str, to: &str) -> Self {
        Self {
            kind: KeptKind::Rescued,
            command: format!(
                "diff {} {}",
                quoted(&checkout.join(file)),
                quoted(Path::new(to))
            ),
            checkout,
            name: to.to_owned(),
            commit: None,
            why: format!("{file} was changed while the landing replaced it"),
        }
    }

    /// Whether both speak of the same change.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.commit, &other.commit) {
            (None, None) => self.name == other.name,
            (one, other) => one == other,
        }
    }

    /// In words, on one line.
    pub fn text(&self) -> String {
        let Self {
            checkout,
            name,
            why,
            ..
        } = self;
        let checkout = checkout.display();
        match self.kind {
            KeptKind::Stash => format!("your changes in {checkout} are in {name} ({why})"),
            KeptKind::Rescued => format!("{why}; the previous content is kept in {name}"),
        }
    }
}

/// A path as a shell reads it.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_one_that_a_shell_understands() {
        let kept = KeptChange::stash("/my repo/it's".into(), "stash@{0}", "abc", "n");
        let expected = "git -C '/my repo/it'\\''s' stash pop stash@{0}";
        assert_eq!(kept.command, expected);
        let plain = KeptChange::stash("/repo".into(), "stash@{1}", "abc", "n");
        assert_eq!(plain.command, "git -C /repo stash pop stash@{1}");
    }
}
