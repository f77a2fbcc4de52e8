//! `worktree` in Claude Code's settings files.

use serde_json::Value;

/// What a new worktree starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseRef {
    /// The remote's default branch.
    Fresh,
    /// Where the main checkout is.
    Head,
}

/// What of it weald honours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeSettings {
    /// `baseRef`; the last file that says so decides.
    pub base: Option<BaseRef>,
    /// `symlinkDirectories` of all files.
    pub links: Vec<String>,
    /// `sparsePaths` of all files.
    pub sparse: Vec<String>,
}

impl WorktreeSettings {
    /// Adds what a file says: one that counts more than those before. What can't be used is an error, and nothing of it counts.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let settings: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let worktree = &settings["worktree"];
        let base = match &worktree["baseRef"] {
            Value::Null => self.base,
            Value::String(text) if text == "fresh" => Some(BaseRef::Fresh),
            Value::String(text) if text == "head" => Some(BaseRef::Head),
            other => {
                return Err(format!(
                    "worktree.baseRef is {other}, not \"fresh\" or \"head\""
                ));
            }
        };
        let links = texts(worktree, "symlinkDirectories")?;
        let sparse = texts(worktree, "sparsePaths")?;
        self.base = base;
        join(&mut self.links, links);
        join(&mut self.sparse, sparse);
        Ok(())
    }
}

fn texts(worktree: &Value, key: &str) -> Result<Vec<String>, String> {
    let found = match &worktree[key] {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)),
        _ => return Err(format!("worktree.{key} is not a list of strings")),
    };
    let found: Option<Vec<_>> = found.collect();
    found.ok_or_else(|| format!("worktree.{key} is not a list of strings"))
}

fn join(all: &mut Vec<String>, more: Vec<String>) {
    for text in more {
        if !all.contains(&text) {
            all.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_files_count_more_and_lists_are_joined() {
        let mut settings = WorktreeSettings::default();
        for text in [
            r#"{"hooks":{},"worktree":{"baseRef":"head","symlinkDirectories":["a"]}}"#,
            r#"{"worktree":{"symlinkDirectories":["a","b"],"sparsePaths":["src"],"other":1}}"#,
            r#"{"worktree":{"baseRef":"fresh"}}"#,
            "{}",
        ] {
            settings.add(text).unwrap();
        }
        assert_eq!(settings.base, Some(BaseRef::Fresh));
        assert_eq!(settings.links, ["a", "b"]);
        assert_eq!(settings.sparse, ["src"]);
    }

    #[test]
    fn what_can_not_be_used_is_an_error_and_changes_nothing() {
        for text in [
            "{",
            r#"{"worktree":{"baseRef":"other","sparsePaths":["x"]}}"#,
            r#"{"worktree":{"sparsePaths":"x"}}"#,
            r#"{"worktree":{"symlinkDirectories":[1],"baseRef":"head"}}"#,
        ] {
            let mut settings = WorktreeSettings::default();
            assert!(settings.add(text).is_err(), "{text}");
            assert_eq!(settings, WorktreeSettings::default(), "{text}");
        }
    }
}
