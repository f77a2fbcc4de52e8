//! How a person sees a diff: as their own git would show it.
//!
//! Their configuration decides about wording, colours and the pager. A repository's own configuration never chooses the
//! pager: that is a program. No setting here starts another program or names a file.

use serde::{Deserialize, Serialize};

/// What a caller may ask for beyond the style. Every value is checked, because git gets it as an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffOptions {
    /// Compare words instead of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word_diff: Option<WordDiff>,
    /// Colour lines that only moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color_moved: Option<ColorMoved>,
    /// Leave out changes of white space alone.
    #[serde(default)]
    pub ignore_all_space: bool,
    /// Lines around a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unified: Option<u32>,
}

/// How git marks changed words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WordDiff {
    Plain,
    Color,
    Porcelain,
    None,
}

/// How git finds lines that only moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColorMoved {
    No,
    Default,
    Plain,
    Blocks,
    Zebra,
    DimmedZebra,
}

impl DiffOptions {
    /// As git's arguments.
    pub fn arguments(&self) -> Vec<String> {
        let words = self.word_diff.map(|mode| match mode {
            WordDiff::Plain => "--word-diff=plain".to_owned(),
            WordDiff::Color => "--word-diff=color".to_owned(),
            WordDiff::Porcelain => "--word-diff=porcelain".to_owned(),
            WordDiff::None => "--word-diff=none".to_owned(),
        });
        let moved = self.color_moved.map(|mode| match mode {
            ColorMoved::No => "--color-moved=no".to_owned(),
            ColorMoved::Default => "--color-moved=default".to_owned(),
            ColorMoved::Plain => "--color-moved=plain".to_owned(),
            ColorMoved::Blocks => "--color-moved=blocks".to_owned(),
            ColorMoved::Zebra => "--color-moved=zebra".to_owned(),
            ColorMoved::DimmedZebra => "--color-moved=dimmed-zebra".to_owned(),
        });
        let space = self.ignore_all_space.then(|| "-w".to_owned());
        let context = self.unified.map(|lines| format!("-U{lines}"));
        [words, moved, space, context]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Whether git compares words.
    pub fn compares_words(&self) -> bool {
        !matches!(self.word_diff, None | Some(WordDiff::None))
    }
}

/// One entry of the configuration that git reads for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// Whether it is the user's or the machine's, and not the repository's own.
    pub is_users: bool,
    /// In small letters, as git lists it.
    pub key: String,
    /// An entry without one means true.
    pub value: Option<String>,
}

/// Settings that change how a diff is worded and nothing else.
const WORDING: [&str; 18] = [
    "core.quotepath",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.colormovedws",
    "diff.context",
    "diff.dstprefix",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "diff.srcprefix",
    "diff.statgraphwidth",
    "diff.statnamewidth",
    "diff.suppressblankempty",
    "diff.wserrorhighlight",
];

/// The settings for the wording; a later one replaces an earlier one.
pub fn wording(settings: &[GitSetting]) -> Vec<(String, String)> {
    let wanted = settings
        .iter()
        .filter(|setting| WORDING.contains(&setting.key.as_str()));
    let pair = |setting: &GitSetting| {
        let value = setting.value.clone().unwrap_or_else(|| "true".to_owned());
        (setting.key.clone(), value)
    };
    wanted.map(pair).collect()
}

/// What a setting says; the last one counts.
fn last<'s>(settings: &'s [GitSetting], key: &str) -> Option<&'s str> {
    let found = settings.iter().rev().find(|setting| setting.key == key)?;
    Some(found.value.as_deref().unwrap_or("true"))
}

/// Whether to colour a diff: `color.diff`, otherwise `color.ui`, as git reads them.
pub fn wants_color(settings: &[GitSetting], is_terminal: bool) -> bool {
    let when = last(settings, "color.diff").or_else(|| last(settings, "color.ui"));
    match when.map(str::to_ascii_lowercase).as_deref() {
        Some("always") => true,
        Some("never") => false,
        Some(value) if as_bool(value) == Some(false) => false,
        _ => is_terminal,
    }
}

fn as_bool(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "auto" => Some(true),
        "false" | "no" | "off" | "" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}

/// The user's pager for a diff: `$GIT_PAGER`, `pager.diff`, `core.pager`, `$PAGER`, less. `None` if there is to be none.
pub fn pager(
    settings: &[GitSetting],
    git_pager: Option<String>,
    pager: Option<String>,
) -> Option<String> {
    let own: Vec<_> = settings
        .iter()
        .filter(|one| one.is_users)
        .cloned()
        .collect();
    let of_diff = last(&own, "pager.diff");
    if of_diff.and_then(as_bool) == Some(false) {
        return None;
    }
    let of_diff = of_diff.filter(|value| as_bool(value).is_none());
    let of_all = || last(&own, "core.pager").map(str::to_owned);
    let chosen = git_pager
        .or_else(|| of_diff.map(str::to_owned))
        .or_else(of_all)
        .or(pager)
        .unwrap_or_else(|| "less".to_owned());
    (!chosen.is_empty() && chosen != "cat").then_some(chosen)
}

/// What git colours in a diff: the name as git lists it, the key's last part, and the colour unless one is set.
pub const COLORS: [(&str, &str); 22] = [
    ("context", ""),
    ("meta", "\x1b[1m"),
    ("frag", "\x1b[36m"),
    ("old", "\x1b[31m"),
    ("new", "\x1b[32m"),
    ("commit", "\x1b[33m"),
    ("whitespace", "\x1b[41m"),
    ("func", ""),
    ("oldmoved", "\x1b[1;35m"),
    ("oldmovedalternative", "\x1b[1;34m"),
    ("oldmoveddimmed", "\x1b[2m"),
    ("oldmovedalternativedimmed", "\x1b[2;3m"),
    ("newmoved", "\x1b[1;36m"),
    ("newmovedalternative", "\x1b[1;33m"),
    ("newmoveddimmed", "\x1b[2m"),
    ("newmovedalternativedimmed", "\x1b[2;3m"),
    ("contextdimmed", "\x1b[2m"),
    ("olddimmed", "\x1b[2;31m"),
    ("newdimmed", "\x1b[2;32m"),
    ("contextbold", "\x1b[1m"),
    ("oldbold", "\x1b[1;31m"),
    ("newbold", "\x1b[1;32m"),
];

/// The colour that a setting changes, as a place in [`COLORS`].
pub fn color_of(key: &str) -> Option<usize> {
    let name = match key.strip_prefix("color.diff.")? {
        "plain" => "context",
        name => name,
    };
    COLORS.iter().position(|(known, _)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(listed: &[(&str, &str, &str)]) -> Vec<GitSetting> {
        let one = |(scope, key, value): &(&str, &str, &str)| GitSetting {
            is_users: *scope == "global",
            key: (*key).to_owned(),
            value: Some((*value).to_owned()),
        };
        listed.iter().map(one).collect()
    }

    #[test]
    fn u8_the_pager_is_the_users_and_never_the_repositorys() {
        let own = |text: &str| Some(text.to_owned());
        let core = ("global", "core.pager", "delta");
        let planted = ("local", "core.pager", "evil");
        for (listed, git_pager, pager_variable, wanted) in [
            (vec![], None, None, Some("less")),
            (vec![], None, own("more"), Some("more")),
            (vec![], own("most"), own("more"), Some("most")),
            (vec![core], None, own("more"), Some("delta")),
            (vec![core], own("cat"), None, None),
            (vec![core], own(""), None, None),
            (vec![core, planted], None, None, Some("delta")),
            (vec![planted], None, None, Some("less")),
            (
                vec![("local", "pager.diff", "evil"), core],
                None,
                None,
                Some("delta"),
            ),
            (
                vec![core, ("global", "pager.diff", "bat")],
                None,
                None,
                Some("bat"),
            ),
            (
                vec![core, ("global", "pager.diff", "false")],
                None,
                None,
                None,
            ),
            (
                vec![core, ("global", "pager.diff", "true")],
                None,
                None,
                Some("delta"),
            ),
        ] {
            let found = pager(&settings(&listed), git_pager, pager_variable);
            assert_eq!(found.as_deref(), wanted, "{listed:?}");
        }
    }

    #[test]
    fn u8_colours_follow_git() {
        for (listed, on_terminal, elsewhere) in [
            (vec![], true, false),
            (vec![("global", "color.ui", "never")], false, false),
            (vec![("global", "color.ui", "false")], false, false),
            (vec![("global", "color.ui", "always")], true, true),
            (vec![("global", "color.ui", "auto")], true, false),
            (
                vec![
                    ("global", "color.ui", "never"),
                    ("local", "color.diff", "auto"),
                ],
                true,
                false,
            ),
        ] {
            let all = settings(&listed);
            assert_eq!(wants_color(&all, true), on_terminal, "{listed:?}");
            assert_eq!(wants_color(&all, false), elsewhere, "{listed:?}");
        }
        assert_eq!(color_of("color.diff.plain"), Some(0));
        assert_eq!(color_of("color.diff.newbold"), Some(21));
        assert_eq!(color_of("color.diff.other"), None);
    }

    #[test]
    fn u8_no_setting_that_names_a_program_or_a_file_is_passed_on() {
        let listed = [
            ("global", "diff.external", "evil"),
            ("local", "diff.orderfile", "/etc/passwd"),
            ("local", "diff.x.textconv", "evil"),
            ("local", "core.attributesfile", "x"),
            ("global", "diff.noprefix", "true"),
        ];
        let passed = wording(&settings(&listed));
        assert_eq!(passed, [("diff.noprefix".to_owned(), "true".to_owned())]);
    }
}
