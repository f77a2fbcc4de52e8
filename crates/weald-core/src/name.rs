//! Name rules: what a tree or a session may be called.
//!
//! A name becomes a directory, the last part of a branch and an argument, so the rule is narrow and stated in every
//! refusal. Names that git would refuse, and names of weald's own files, are refused before git runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name, in bytes, unless a profile says less.
pub const MAX_NAME: usize = 64;

/// Names of weald's own files and folders beside trees and in its state directory.
const RESERVED: [&str; 13] = [
    "config.toml",
    "target-config",
    "weald.db-wal",
    "weald.db-shm",
    "index.json",
    "events.jsonl",
    "weald.db",
    "weald.toml",
    "trash",
    "worktree-trash",
    "private",
    "vault",
    "pool",
];

/// Why a text is no name. Every message states the rule it broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name can't be empty: use 1 to {max} of A-Z a-z 0-9 . _ -")]
    Empty {
        /// The longest name allowed.
        max: usize,
    },
    /// More bytes than allowed.
    #[error(
        "a name can have at most {max} characters, this one has {length}: use 1 to {max} of A-Z a-z 0-9 . _ -"
    )]
    TooLong {
        /// The longest name allowed.
        max: usize,
        /// How long this one is.
        length: usize,
    },
    /// A character outside the rule.
    #[error("{character:?} can't be in a name: use 1 to {max} of A-Z a-z 0-9 . _ -")]
    BadCharacter {
        /// The first one that is not allowed.
        character: char,
        /// The longest name allowed.
        max: usize,
    },
    /// In the alphabet, but something git or a shell would trip over.
    #[error("`{name}` can't be a name: {why}")]
    Refused {
        /// The name as given.
        name: String,
        /// The rule of git or of the shell.
        why: &'static str,
    },
    /// The name of one of weald's own files.
    #[error("`{name}` is reserved for a file of weald's own; choose another name")]
    Reserved {
        /// The name as given.
        name: String,
    },
    /// A name that weald gives.
    #[error("the name `{name}` is reserved: {why}")]
    Given {
        /// The name as given.
        name: String,
        /// What is called so.
        why: &'static str,
    },
}

/// The rule all names and external ids share: `[A-Za-z0-9._-]{1,max}`, and nothing git refuses in a branch.
pub fn check_name(text: &str, max: usize) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { max });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(character) = text.chars().find(|c| !allowed(*c)) {
        return Err(NameError::BadCharacter { character, max });
    }
    if text.len() > max {
        return Err(NameError::TooLong {
            max,
            length: text.len(),
        });
    }
    match git_objection(text) {
        Some(why) => Err(NameError::Refused {
            name: text.to_owned(),
            why,
        }),
        None => Ok(()),
    }
}

fn git_objection(text: &str) -> Option<&'static str> {
    if text.starts_with('.') {
        return Some("it starts with a dot");
    }
    if text.starts_with('-') {
        return Some("it starts with a dash and would read as an option");
    }
    if text.ends_with('.') {
        return Some("it ends with a dot");
    }
    if text.contains("..") {
        return Some("git refuses two dots in a branch name");
    }
    if text.to_ascii_lowercase().ends_with(".lock") {
        return Some("git keeps the ending .lock for its lock files");
    }
    None
}

fn check_tree_name(text: &str, max: usize) -> Result<(), NameError> {
    check_name(text, max)?;
    match RESERVED
        .iter()
        .any(|reserved| reserved.eq_ignore_ascii_case(text))
    {
        true => Err(NameError::Reserved {
            name: text.to_owned(),
        }),
        false => Ok(()),
    }
}

/// The name of a tree that may exist: parts may have been joined.
fn check_known_tree_name(text: &str) -> Result<(), NameError> {
    text.split('+')
        .try_for_each(|part| check_tree_name(part, MAX_NAME))?;
    match text.len() <= MAX_NAME {
        true => Ok(()),
        false => Err(NameError::TooLong {
            max: MAX_NAME,
            length: text.len(),
        }),
    }
}

fn check_session_name(text: &str) -> Result<(), NameError> {
    check_name(text, MAX_NAME)
}

macro_rules! checked_name {
    ($(#[$doc:meta])* $name:ident, $check:path, $known:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks `text` with a limit of `max` characters.
            pub fn with_limit(text: &str, max: usize) -> Result<Self, NameError> {
                $check(text, max)?;
                Ok(Self(text.to_owned()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                $known(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_name!(
    /// What a tree is called.
    TreeName,
    check_tree_name,
    check_known_tree_name
);

impl TreeName {
    /// A name given with slashes, each part checked on its own, joined by plus signs.
    pub fn joined(text: &str, max: usize) -> Result<Self, NameError> {
        for part in text.split('/') {
            check_tree_name(part, max)?;
        }
        let name = text.replace('/', "+");
        match name.len() <= max {
            true => Ok(Self(name)),
            false => Err(NameError::TooLong {
                max,
                length: name.len(),
            }),
        }
    }
}

checked_name!(
    /// What a session (an agent or a person) is called.
    SessionName,
    check_name,
    check_session_name
);

/// Who speaks where nobody else does.
pub const WEALD: &str = "weald";

/// How names begin that weald gives to sessions of its own.
const GIVEN: [&str; 3] = ["phase-", "race-", "anon-"];

impl SessionName {
    /// The name of a person: the letters and digits of how they are called, in lower case, joined by dashes. `None` where
    /// fewer than two are left. A name that weald gives to others gets `person-` before it.
    pub fn of_person(text: &str) -> Option<Self> {
        let mut name = String::new();
        for c in text.chars().flat_map(char::to_lowercase) {
            let plain = without_accent(c);
            if !plain.is_empty() {
                name.push_str(plain);
            } else if c.is_ascii_alphanumeric() {
                name.push(c);
            } else if !name.is_empty() && !name.ends_with('-') && c != '\'' && c != '’' {
                name.push('-');
            }
        }
        name.truncate(LONGEST_PERSON);
        let name = name.trim_matches('-');
        if name.len() < 2 {
            return None;
        }
        let own: Option<Self> = name.parse().ok();
        own.filter(|own| own.require_free().is_ok())
            .or_else(|| Self::of_somebody_else(name))
    }

    /// The name of a person who is called as this session is.
    #[must_use]
    pub fn for_a_person(&self) -> Self {
        Self::of_somebody_else(&self.0).unwrap_or_else(|| self.clone())
    }

    fn of_somebody_else(name: &str) -> Option<Self> {
        format!("person-{name}").parse().ok()
    }

    /// Errors when nobody may choose this name for an agent, a worker or a session: one that weald gives would be taken
    /// for somebody else's, or for another thing.
    pub fn require_free(&self) -> Result<(), NameError> {
        let text = self.0.to_ascii_lowercase();
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let why = match () {
            () if text == WEALD => "it stands for weald itself",
            () if is_number(&text) => "it is the id of a task",
            () if text.strip_prefix('a').is_some_and(is_number) => "it is the id of an agent",
            () if GIVEN.iter().any(|prefix| text.starts_with(prefix)) => {
                "weald's own sessions have such names"
            }
            () => return Ok(()),
        };
        Err(NameError::Given {
            name: self.0.clone(),
            why,
        })
    }
}

/// The longest name of a person, in bytes.
const LONGEST_PERSON: usize = 40;

/// A letter of western Europe as people write it where there is no accent; nothing for any other character.
fn without_accent(c: char) -> &'static str {
    match c {
        'à'..='ã' | 'å' => "a",
        'ä' | 'æ' => "ae",
        'ç' => "c",
        'è'..='ë' => "e",
        'ì'..='ï' => "i",
        'ñ' => "n",
        'ò'..='õ' => "o",
        'ö' | 'ø' | 'œ' => "oe",
        'ù'..='û' => "u",
        'ü' => "ue",
        'ý' | 'ÿ' => "y",
        'ß' => "ss",
        _ => "",
    }
}

/// A tree name made from a task's subject: lower case, words joined by dashes, at most `max` characters.
/// Nothing usable in the subject gives `task`.
pub fn slug(subject: &str, max: usize) -> TreeName {
    let mut text = String::new();
    for c in subject.chars() {
        if c.is_ascii_alphanumeric() {
            text.push(c.to_ascii_lowercase());
        } else if !text.is_empty() && !text.ends_with('-') {
            text.push('-');
        }
    }
    text.truncate(max.clamp(1, 40));
    let text = text.trim_end_matches('-');
    TreeName::with_limit(text, max).unwrap_or_else(|_| TreeName("task".into()))
}

/// A tree name made from a branch: what can't be in a name becomes a dash.
pub fn of_branch(branch: &str, max: usize) -> Result<TreeName, NameError> {
    let mut text = String::new();
    for c in branch.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            text.push(c);
        } else if !text.is_empty() && !text.ends_with('-') {
            text.push('-');
        }
    }
    text.truncate(max);
    TreeName::with_limit(text.trim_end_matches(['-', '.']), max)
}

/// The same name with a number behind it, cut so that it is no longer than `max`.
pub fn numbered(name: &TreeName, number: u32, max: usize) -> Result<TreeName, NameError> {
    let suffix = format!("-{number}");
    let mut text = name.as_str().to_owned();
    text.truncate(max.saturating_sub(suffix.len()));
    let text = text.trim_end_matches(['-', '.', '+']);
    TreeName::with_limit(&format!("{text}{suffix}"), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a15_a_person_is_called_by_letters_digits_and_dashes() {
        for (text, name) in [
            ("Ada Lovelace", Some("ada-lovelace")),
            ("  J. R.  \"Bob\" Dobbs ", Some("j-r-bob-dobbs")),
            ("Zoë Müller-Núñez", Some("zoe-mueller-nunez")),
            ("Conan O'Brien", Some("conan-obrien")),
            ("root", Some("root")),
            ("李明", None),
            ("x", None),
            ("", None),
            ("../..", None),
            ("\u{1b}[31mred\u{202e}", Some("31mred")),
            ("a7", Some("person-a7")),
            ("42", Some("person-42")),
            ("Weald", Some("person-weald")),
            ("Race Driver", Some("person-race-driver")),
            ("trash", Some("trash")),
        ] {
            let found = SessionName::of_person(text);
            assert_eq!(found.as_ref().map(SessionName::as_str), name, "{text:?}");
        }
        let long = SessionName::of_person(&"ab ".repeat(100)).unwrap();
        assert!(long.as_str().len() <= LONGEST_PERSON, "{long}");
        assert_eq!(long.for_a_person().as_str(), format!("person-{long}"));
    }

    #[test]
    fn n1_names_follow_the_rule_and_the_refusal_states_it() {
        for bad in [
            "../evil",
            "a b",
            "",
            ".",
            "..",
            "a/b",
            "né",
            "a\0",
            "a\u{202e}b",
            &"x".repeat(65),
        ] {
            let error = bad.parse::<TreeName>().expect_err(bad);
            let message = error.to_string();
            assert!(
                message.contains("A-Z a-z 0-9 . _ -") || message.contains("dot"),
                "{bad:?}: {message}"
            );
        }
        for good in ["a", "fix-login", "A.b_c-9", &"x".repeat(64)] {
            assert_eq!(good.parse::<TreeName>().unwrap().as_str(), good);
        }
        assert!(
            TreeName::with_limit(&"x".repeat(41), 40).is_err(),
            "two-plane names end at 40"
        );
        assert!(TreeName::with_limit(&"x".repeat(40), 40).is_ok());
    }

    #[test]
    fn n2_names_git_would_refuse_are_refused_first() {
        for bad in ["x.lock", ".x", "a..b", "x.", ".git", "-x", "X.LOCK"] {
            let error = bad.parse::<TreeName>().expect_err(bad);
            assert!(
                matches!(error, NameError::Refused { .. }),
                "{bad}: {error:?}"
            );
        }
    }

    #[test]
    fn n3_names_of_state_files_are_reserved() {
        for bad in RESERVED {
            assert_eq!(
                bad.parse::<TreeName>(),
                Err(NameError::Reserved {
                    name: bad.to_owned()
                })
            );
        }
        assert!(
            "Events.JSONL".parse::<TreeName>().is_err(),
            "also in other case"
        );
        assert!(
            "events.jsonl".parse::<SessionName>().is_ok(),
            "a session makes no file"
        );
    }

    #[test]
    fn n1_a_number_behind_a_name_leaves_a_name() {
        for (name, number, max, expected) in [
            ("same-name", 2, 64, "same-name-2"),
            ("same-name", 10, 12, "same-name-10"),
            ("same-name", 2, 7, "same-2"),
            ("same-name", 2, 9, "same-na-2"),
        ] {
            let name: TreeName = name.parse().unwrap();
            assert_eq!(numbered(&name, number, max).unwrap().as_str(), expected);
        }
        assert!(numbered(&"a".parse().unwrap(), 2, 2).is_err());
    }

    #[test]
    fn s5_names_that_weald_gives_can_t_be_chosen() {
        for given in [
            "weald", "Weald", "a1", "A12", "a007", "1", "42", "phase-1", "race-x", "anon-7",
        ] {
            let name: SessionName = given.parse().unwrap();
            assert!(
                matches!(name.require_free(), Err(NameError::Given { .. })),
                "{given}"
            );
        }
        for free in [
            "alice", "a", "a1b", "ab1", "1a", "phase", "racer", "weald-1", "anon",
        ] {
            let name: SessionName = free.parse().unwrap();
            assert_eq!(name.require_free(), Ok(()), "{free}");
        }
    }

    #[test]
    fn u12_a_branch_gives_a_name() {
        for (branch, max, expected) in [
            ("feature/x", 64, "feature-x"),
            ("fix", 64, "fix"),
            ("JIRA-12/Fix_it.now", 64, "JIRA-12-Fix_it.now"),
            ("ünder/x@2", 64, "nder-x-2"),
            ("feature/long-name", 9, "feature-l"),
            ("feature/x", 8, "feature"),
        ] {
            assert_eq!(of_branch(branch, max).unwrap().as_str(), expected);
        }
        for none in ["日本", "trash", "x/.lock"] {
            assert!(of_branch(none, 64).is_err(), "{none}");
        }
    }

    #[test]
    fn slugs_are_names() {
        for (subject, expected) in [
            ("Fix the login!", "fix-the-login"),
            ("  --weird-- ", "weird"),
            ("日本語", "task"),
            ("trash", "task"),
            ("a.lock", "a-lock"),
            ("", "task"),
        ] {
            assert_eq!(slug(subject, MAX_NAME).as_str(), expected);
        }
        assert!(slug(&"word ".repeat(100), 64).as_str().len() <= 40);
    }
}
