//! Templates: how a profile turns a tree and its task into a path and a branch.
//!
//! A template is text with `{placeholders}`; an unknown one is an error when the config is read, never an odd folder
//! later. Values are names and ids that were checked before, so nothing here can leave its place.

use std::collections::BTreeMap;

/// What a template may name, with its value.
#[derive(Debug, Clone, Default)]
pub struct TemplateValues(BTreeMap<&'static str, String>);

/// Placeholders that any template may use. A value may still be absent where it makes no sense (`{task}` of a tree
/// without a task), and then the template can't be used there.
pub const PLACEHOLDERS: [&str; 13] = [
    "repo",
    "repo_parent",
    "repo_name",
    "repo_hash16",
    "cache",
    "common_dir",
    "tree_root",
    "name",
    "id",
    "task",
    "plan",
    "hash8",
    "slug",
];

/// Why a template can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A placeholder that nobody knows.
    #[error("`{{{name}}}` is not a placeholder; the placeholders are {}", PLACEHOLDERS.join(", "))]
    Unknown { name: String },
    /// A known placeholder without a value here.
    #[error("`{{{name}}}` has no value here")]
    Absent { name: String },
    #[error("unclosed `{{`")]
    Unclosed,
}

impl TemplateValues {
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        debug_assert!(
            PLACEHOLDERS.contains(&name),
            "{name} is not in PLACEHOLDERS"
        );
        self.0.insert(name, value.into());
        self
    }

    pub fn expand(&self, template: &str) -> Result<String, TemplateError> {
        let mut out = String::new();
        walk(template, |part| {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Placeholder(name) => {
                    let value = self.0.get(name).ok_or_else(|| TemplateError::Absent {
                        name: name.to_owned(),
                    })?;
                    out.push_str(value);
                }
            }
            Ok(())
        })?;
        Ok(out)
    }
}

impl TemplateValues {
    /// Whether `template` could have given `text`, whatever the values that are not set here were. Those are names and
    /// ids: they have no slash and begin with no dot.
    pub fn could_give(&self, template: &str, text: &str) -> bool {
        let mut parts = Vec::new();
        let read = walk(template, |part| {
            parts.push(match part {
                Part::Text(text) => Some(text.to_owned()),
                Part::Placeholder(name) => self.0.get(name).cloned(),
            });
            Ok(())
        });
        read.is_ok() && fits(&parts, text)
    }
}

/// Whether a text consists of these; `None` is any name.
fn fits(parts: &[Option<String>], text: &str) -> bool {
    match parts.split_first() {
        None => text.is_empty(),
        Some((Some(known), rest)) => text
            .strip_prefix(known.as_str())
            .is_some_and(|text| fits(rest, text)),
        Some((None, _)) if text.starts_with('.') => false,
        Some((None, rest)) => {
            let end = text.find('/').unwrap_or(text.len());
            let mut ends = (1..=end).filter(|end| text.is_char_boundary(*end));
            ends.any(|end| fits(rest, &text[end..]))
        }
    }
}

/// What a template says right before `{task}`, in the same part of a path or branch: `T-` of `card/T-{task}`.
fn before_task(template: &str) -> Option<(usize, &str)> {
    let at = template.find("{task}")?;
    let start = template[..at].rfind(['/', '}']).map_or(0, |end| end + 1);
    Some((start, &template[start..at]))
}

/// A task's word for `{task}` in this template: what the template says before it is not said twice, so `T-9` in
/// `T-{task}` gives `T-9`.
pub fn task_word<'w>(template: &str, word: &'w str) -> &'w str {
    let before = before_task(template).map_or("", |(_, text)| text);
    let rest = word.strip_prefix(before).filter(|rest| !rest.is_empty());
    rest.unwrap_or(word)
}

/// The template for what has no task: not called a card or an issue, so `jkz/issue-{task}` becomes `jkz/{task}`.
pub fn without_task(template: &str) -> String {
    match before_task(template) {
        Some((start, before)) => {
            format!(
                "{}{}",
                &template[..start],
                &template[start + before.len()..]
            )
        }
        None => template.to_owned(),
    }
}

/// Whether a template gives each worktree of a task a different name.
pub fn distinguishes(template: &str) -> bool {
    ["{name}", "{slug}", "{id}", "{hash8}"]
        .iter()
        .any(|placeholder| template.contains(placeholder))
}

/// The task that a worktree is named after in this template, if the template says more than `{task}`: `x2` for `beads-x2`
/// in `beads-{task}`.
pub fn task_in<'n>(template: &str, name: &'n str) -> Option<&'n str> {
    let (before, after) = template.split_once("{task}")?;
    let is_plain = !before.contains('{') && !after.contains('{') && !before.is_empty();
    let inner = name.strip_prefix(before)?.strip_suffix(after)?;
    Some(inner).filter(|inner| is_plain && !inner.is_empty())
}

/// Checks a template without filling it.
pub fn check_template(template: &str) -> Result<(), TemplateError> {
    walk(template, |_| Ok(()))
}

enum Part<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

fn walk<'a>(
    template: &'a str,
    mut visit: impl FnMut(Part<'a>) -> Result<(), TemplateError>,
) -> Result<(), TemplateError> {
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        visit(Part::Text(&rest[..open]))?;
        let inner = &rest[open + 1..];
        let close = inner.find('}').ok_or(TemplateError::Unclosed)?;
        let name = &inner[..close];
        if !PLACEHOLDERS.contains(&name) {
            return Err(TemplateError::Unknown {
                name: name.to_owned(),
            });
        }
        visit(Part::Placeholder(name))?;
        rest = &inner[close + 1..];
    }
    visit(Part::Text(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TaskId;

    #[test]
    fn l16_a_path_that_no_name_could_have_given_does_not_fit() {
        let values = TemplateValues::default()
            .with("repo_parent", "/srv")
            .with("repo_name", "app");
        let path = "{repo_parent}/{repo_name}.weald/{name}";
        for (template, text, expected) in [
            (path, "/srv/app.weald/fix", true),
            (path, "/srv/app.weald", false),
            (path, "/srv/app.weald/", false),
            (path, "/srv/app.weald/.trash", false),
            (path, "/srv/app.weald/../app", false),
            (path, "/srv/app.weald/a/b", false),
            (path, "/srv/app", false),
            (path, "/", false),
            (path, "", false),
            (
                "{repo_parent}/jkz-worktree-{task}",
                "/srv/jkz-worktree-7",
                true,
            ),
            ("{repo_parent}/jkz-worktree-{task}", "/srv/app", false),
            ("wt/{name}", "wt/fix", true),
            ("wt/{name}", "main", false),
            (
                "r/{plan}/card/T-{task}/{hash8}",
                "r/none/card/T-1/00ff",
                true,
            ),
            ("r/{plan}/card/T-{task}/{hash8}", "r/card/T-1/00ff", false),
            ("{nonsense}", "a", false),
        ] {
            let fits = values.could_give(template, text);
            assert_eq!(fits, expected, "{template} {text}");
        }
    }

    #[test]
    fn n8_the_prefix_is_stripped_once() {
        // `beads-` is the tracker here; a second one belongs to the id.
        for id in ["my-beads-1", "beads-my-beads-1"] {
            let id: TaskId = id.parse().unwrap();
            let values = TemplateValues::default().with("task", id.bare());
            assert_eq!(values.expand("beads/{task}").unwrap(), "beads/my-beads-1");
            assert_eq!(values.expand("beads-{task}").unwrap(), "beads-my-beads-1");
        }
    }

    #[test]
    fn y18_what_a_template_says_before_the_task_is_said_once() {
        for (template, word, expected) in [
            ("T-{task}", "T-9", "9"),
            ("T-{task}", "9", "9"),
            ("T-{task}", "T-", "T-"),
            ("refact/task/{plan}/card/T-{task}/{hash8}", "T-9", "9"),
            ("beads/{task}", "beads-9", "beads-9"),
            ("{task}", "T-9", "T-9"),
            ("wt/{name}", "T-9", "T-9"),
        ] {
            assert_eq!(task_word(template, word), expected, "{template} {word}");
        }
        assert_eq!(without_task("jkz/issue-{task}"), "jkz/{task}");
        assert_eq!(without_task("{a}-{task}"), "{a}{task}");
        assert_eq!(without_task("wt/{name}"), "wt/{name}");
        assert_eq!(task_in("beads-{task}", "beads-x2"), Some("x2"));
        assert_eq!(task_in("beads-{task}", "other"), None);
        assert_eq!(task_in("{task}", "other"), None);
        assert_eq!(task_in("{slug}", "other"), None);
    }

    #[test]
    fn templates_say_what_is_wrong() {
        let values = TemplateValues::default().with("name", "a");
        assert_eq!(values.expand("wt/{name}").unwrap(), "wt/a");
        assert_eq!(
            values.expand("{task}"),
            Err(TemplateError::Absent {
                name: "task".into()
            })
        );
        assert_eq!(
            check_template("{nope}"),
            Err(TemplateError::Unknown {
                name: "nope".into()
            })
        );
        assert_eq!(check_template("{name"), Err(TemplateError::Unclosed));
    }
}
