//! `git status`, with what a sealed tree's own configuration can't change: settings by which git overlooks changes are anybody's
//! in there, so main's count.

use std::collections::BTreeMap;
use std::fs::{File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use weald_git::{Git, copy_index};

use super::changes::STATUS;
use super::{InsideError, TIME_LIMIT, Workplace, read_capped, scratch};

/// The largest configuration that is read.
pub(crate) const CONFIG_LIMIT: u64 = 1 << 20;

/// The files of a repository's configuration.
pub(crate) const CONFIGS: [&str; 2] = ["config", "config.worktree"];

/// Settings that decide what a change is, and what they are where nobody says anything.
const JUDGING: [(&str, &str); 4] = [
    ("core.autocrlf", "false"),
    ("core.eol", "native"),
    ("core.filemode", "true"),
    ("core.symlinks", "true"),
];

/// Those by which content that differs counts as the same, once git has looked at it.
const OF_CONTENT: [&str; 2] = ["core.autocrlf", "core.eol"];

impl Workplace {
    /// `git status` by an index of the tree.
    pub(super) fn status(&self, index: &Path) -> Result<Git, InsideError> {
        let status = self.git("status").args(STATUS).index_file(index);
        if self.is_own {
            // Settings are weald's own, and so is the comparison of submodules: their repositories could name programs.
            return Ok(status.args(["--ignore-submodules=all"]));
        }
        // A linked tree's configuration is main's.
        if self.git_dir.join("commondir").exists() {
            return Ok(status);
        }
        let status = status
            .config("core.checkStat", "default")
            .config("core.trustctime", "true")
            // Where names that differ by case are one file, git says more than it would, not less.
            .config("core.ignoreCase", "false");
        if judging_lines(&self.git_dir) == judging_lines(&self.main) {
            return Ok(status);
        }
        let mains = Git::new(&self.main, "config")
            .with_user_config(self.home.as_deref())
            .env("GIT_CONFIG_NOSYSTEM", "0")
            .limit(TIME_LIMIT);
        let (own, mains) = (settings(self.git("config"))?, settings(mains)?);
        let status = JUDGING.iter().fold(status, |status, (key, unset)| {
            status.config(key, mains.get(*key).map_or(*unset, String::as_str))
        });
        match OF_CONTENT
            .iter()
            .all(|key| own.get(*key) == mains.get(*key))
        {
            true => Ok(status),
            false => Ok(status.index_file(&distrusted(index)?)),
        }
    }
}

/// The lines of a repository's configuration that say something about such settings, or could. A new tree has main's.
pub(crate) fn judging_lines(git_dir: &Path) -> Vec<String> {
    let files = CONFIGS.map(|name| git_dir.join(name));
    let texts = files
        .iter()
        .filter_map(|path| read_capped(path, CONFIG_LIMIT));
    judging(texts)
}

/// The same of what the files say; in order, and without spaces.
pub(crate) fn judging(texts: impl Iterator<Item = Vec<u8>>) -> Vec<String> {
    let words = JUDGING.map(|(key, _)| key.trim_start_matches("core."));
    // A section's head may have a setting behind it.
    let could = |line: &String| {
        let is_head = line.starts_with('[');
        let mut words = words.iter().chain(&["include"]);
        words.any(|word| line.starts_with(word) || (is_head && line.contains(word)))
    };
    let lines = texts.flat_map(|text| {
        let text = String::from_utf8_lossy(&text).to_lowercase();
        let lines = text.lines().map(|line| line.replace([' ', '\t', '"'], ""));
        lines.collect::<Vec<_>>()
    });
    lines.filter(could).collect()
}

/// What such settings are, each by the last word on it.
fn settings(git: Git) -> Result<BTreeMap<String, String>, InsideError> {
    let names = JUDGING.map(|(key, _)| key.trim_start_matches("core."));
    let wanted = format!("^core\\.({})$", names.join("|"));
    // It fails where there are none.
    let answer = git.args(["-z", "--get-regexp", &wanted]).output()?.stdout;
    let text = String::from_utf8_lossy(&answer);
    let entries = text.split('\0').filter(|entry| !entry.is_empty());
    let settings = entries.map(|entry| entry.split_once('\n').unwrap_or((entry, "true")));
    Ok(settings
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect())
}

/// A copy of an index that is older than every file, so that git compares what is in them: by its own settings the tree may
/// have taken other content for the same, and noted the times.
fn distrusted(index: &Path) -> io::Result<PathBuf> {
    let copy = scratch()?.join("distrusted-index");
    if index.exists() {
        copy_index(index, &copy)?;
        let first = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let file = File::options().write(true).open(&copy)?;
        file.set_times(FileTimes::new().set_modified(first))?;
    }
    Ok(copy)
}
