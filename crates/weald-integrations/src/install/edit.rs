//! What weald wants in a file of others: text in, text out, everything else in it stays as it is.
//!
//! An edit knows its own entries by what they start, never by where they stand. Each is checked before anything is
//! written: without weald's entries both texts must mean the same.

use serde_json::Value;

use super::{Kept, in_json, in_markdown, in_toml};

/// The mark that some editors put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// One thing that weald wants in a file.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    /// A member of an object in JSON.
    Member(Member),
    /// Hooks in JSON, as Claude Code and Codex have them.
    Hooks(Vec<Hook>),
    /// A table of a TOML file, below another one.
    Table(Table),
    /// Folders in a list of a TOML file.
    Folders(Folders),
    /// A marked block in Markdown.
    Block(String),
    /// The whole file: nobody else writes it.
    Whole(String),
}

/// A member of an object, and where that is.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// The objects around it, from the outside.
    pub parents: &'static [&'static str],
    pub name: &'static str,
    /// What it should hold. Members that somebody added are left there.
    pub value: Value,
    /// Whether what is there under this name is weald's.
    pub ours: fn(&Value) -> bool,
}

impl Member {
    /// Its name with those of the objects around it.
    pub(super) fn path(&self) -> String {
        format!("{}.{}", self.parents.join("."), self.name)
    }
}

/// A command that an agent runs when something happens. What somebody added to it, or to its group, is left there.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub event: &'static str,
    pub command: String,
}

/// A table of a TOML file.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// The table around it.
    pub parent: &'static str,
    pub name: &'static str,
    /// What it should hold. Keys that somebody added are left there.
    pub values: Vec<(&'static str, Value)>,
}

/// Folders in a list of a TOML file. Each stands below a comment by which it is found again.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    /// The table that the list is in.
    pub parent: &'static str,
    /// What the list is called.
    pub name: &'static str,
    /// Those that have to be there. Others of weald's stay.
    pub folders: Vec<String>,
}

/// Why a text can't be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It is not what it should be.
    #[error("it can't be parsed: {0}")]
    Syntax(String),
    /// Something in it has another form.
    #[error("{0} does not have the expected form")]
    Shape(String),
    /// A name is there twice, and programs differ on which counts.
    #[error("{0} appears twice in the same object")]
    Twice(String),
    /// Somebody else has the name.
    #[error("{0} already exists and was not written by weald")]
    Taken(String),
    /// A marked block begins but does not end, or there are two.
    #[error("the markers of weald's block don't match")]
    Marks,
    /// The edit would have changed more than it should.
    #[error("it can't be changed without touching something else in it")]
    Unsafe,
}

impl Edit {
    /// The text with what weald wants. The same text if that is there.
    pub(super) fn add(&self, text: &str) -> Result<String, EditError> {
        self.edited(text, |text| match self {
            Self::Member(member) => in_json::add_member(text, member),
            Self::Hooks(hooks) => in_json::add_hooks(text, hooks),
            Self::Table(table) => in_toml::add(text, table),
            Self::Folders(folders) => in_toml::add_folders(text, folders),
            Self::Block(block) => in_markdown::add(text, block),
            Self::Whole(whole) => Ok(whole.clone()),
        })
    }

    /// The text without anything of weald's.
    pub(super) fn take(&self, text: &str) -> Result<String, EditError> {
        self.edited(text, |text| match self {
            Self::Member(member) => in_json::take_member(text, member),
            Self::Hooks(_) => in_json::take_hooks(text),
            Self::Table(table) => in_toml::take(text, table),
            Self::Folders(folders) => in_toml::take_folders(text, folders),
            Self::Block(_) => in_markdown::take(text),
            Self::Whole(_) => Ok(String::new()),
        })
    }

    /// What of weald's, or under its name, is in a text that weald leaves.
    pub(super) fn kept(&self, text: &str) -> Result<Vec<Kept>, EditError> {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        match self {
            Self::Member(member) => in_json::kept_member(text, member),
            Self::Hooks(_) => in_json::kept_hooks(text),
            Self::Table(table) => in_toml::kept(text, table),
            Self::Block(_) => in_markdown::kept(text),
            // A folder without weald's comment is the user's.
            Self::Folders(_) | Self::Whole(_) => Ok(Vec::new()),
        }
    }

    fn edited(
        &self,
        text: &str,
        edit: impl Fn(&str) -> Result<String, EditError>,
    ) -> Result<String, EditError> {
        match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if !matches!(self, Self::Whole(_)) => {
                Ok(format!("{BYTE_ORDER_MARK}{}", edit(rest)?))
            }
            _ => edit(text),
        }
    }
}

/// Whether a text says nothing: a file that weald made can go then.
pub(super) fn is_empty(text: &str) -> bool {
    let bare: String = text.split_whitespace().collect();
    matches!(bare.trim_start_matches(BYTE_ORDER_MARK), "" | "{}")
}

/// Whether a word starts weald: by its name, or by one that distinguishes versions, as `weald-0.1`.
pub(super) fn is_weald(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    let rest = name.strip_prefix("weald");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_', '.']))
}

/// Whether a command line is a hook of weald's.
pub(super) fn is_hook(command: &str) -> bool {
    let words = shlex::split(command).unwrap_or_default();
    let mut words = words.iter().map(String::as_str);
    words.next().is_some_and(is_weald) && words.next() == Some("hook")
}

/// Whether a command line has a hook of weald's somewhere in it: somebody put something around it.
pub(super) fn is_wrapped_hook(command: &str) -> bool {
    let words = shlex::split(command).unwrap_or_default();
    let mut pairs = words.windows(2).skip(1);
    pairs.any(|pair| is_weald(&pair[0]) && pair[1] == "hook")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_commands_are_known_by_what_they_start() {
        for (command, own) in [
            ("weald hook codex stop", true),
            ("'/opt/my tools/weald' hook claude stop", true),
            ("/usr/bin/weald  hook codex stop", true),
            ("weald task list", false),
            ("echo weald hook", false),
            ("my-weald hook codex stop", false),
            ("/opt/weald-0.1 hook codex stop", true),
            ("wealden hook codex stop", false),
            ("weald 'hook", false),
            ("", false),
        ] {
            assert_eq!(is_hook(command), own, "{command}");
        }
    }

    #[test]
    fn a_text_is_empty_if_it_says_nothing() {
        for (text, empty) in [
            ("", true),
            (" \r\n", true),
            ("{}\n", true),
            ("{\n  }", true),
            ("\u{feff}{}", true),
            ("{\"a\": 1}", false),
            ("// why\n{}", false),
            ("[]", false),
        ] {
            assert_eq!(is_empty(text), empty, "{text:?}");
        }
    }
}
