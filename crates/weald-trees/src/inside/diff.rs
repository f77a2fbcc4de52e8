//! What changed in a tree: against its base, in its index, in its files.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use serde::{Deserialize, Serialize};
use weald_git::Git;

use super::changes::ChangedFile;
use super::{Access, InsideError, Job, SnapshotWish, TIME_LIMIT, Workplace, read_capped};
use crate::untrusted::{COUNT, MANY, Reply, is_path};

/// How a diff is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffStyle {
    /// A list of files.
    Files,
    Patch,
    /// Files with how much changed.
    Stat,
    Names,
}

/// A style with options and settings of git. The host checked them: none starts a program or names a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffForm {
    pub style: DiffStyle,
    pub options: Vec<String>,
    pub settings: Vec<(String, String)>,
}

impl From<DiffStyle> for DiffForm {
    fn from(style: DiffStyle) -> Self {
        Self {
            style,
            options: Vec::new(),
            settings: Vec::new(),
        }
    }
}

impl DiffForm {
    /// What git gets before it is told what to compare. Later options win.
    fn apply(&self, git: Git) -> Git {
        let form = match self.style {
            DiffStyle::Stat => "--stat=80",
            DiffStyle::Names => "--name-only",
            _ => "--patch",
        };
        let git = git.config("core.quotePath", "false");
        let set = |git: Git, (key, value): &(String, String)| git.config(key, value);
        self.settings
            .iter()
            .fold(git, set)
            .args(["--no-ext-diff", "--no-textconv", "--no-color", form])
            .args(&self.options)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Diff {
    /// Files, for a list.
    pub files: Vec<ChangedFile>,
    /// Text, for the other styles.
    pub text: Option<String>,
    /// Whether something was left out.
    pub truncated: bool,
}

/// How much of an untracked file is read to count its lines.
const COUNTED: u64 = 8 << 20;

/// How many files a list holds at most.
const FILES: usize = 20_000;

/// Says what changed since `base`, or since HEAD left `against`.
#[derive(Serialize, Deserialize)]
pub struct DiffWork {
    pub base: String,
    pub against: Option<String>,
    pub form: DiffForm,
    pub limit: usize,
}

/// Says what changed between two snapshots; without the second one, between the first and now.
#[derive(Serialize, Deserialize)]
pub struct DiffSnapshots {
    pub from: String,
    pub to: Option<String>,
    pub now: SnapshotWish,
    pub form: DiffForm,
    pub limit: usize,
}

impl Job for DiffWork {
    type Reply = Diff;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<Diff, InsideError> {
        let (style, limit) = (self.form.style, self.limit);
        let from = match &self.against {
            Some(target) => {
                let found = at.git("merge-base").args([target.as_str(), "HEAD"]).run()?;
                String::from_utf8_lossy(&found).trim_end().to_owned()
            }
            None => self.base.clone(),
        };
        let layers: [(&str, Vec<&str>); 3] = [
            ("committed", vec![&from, "HEAD"]),
            ("staged", vec!["--cached", "HEAD"]),
            ("unstaged", vec![]),
        ];
        let untracked = at.changes()?.untracked;
        let (mut files, mut text) = (Vec::new(), String::new());
        for (state, range) in &layers {
            match style {
                DiffStyle::Files => files.extend(listed(at.git("diff"), state, range)?),
                _ => text.push_str(&told(at.git("diff"), &self.form, range)?),
            }
            // What is already more than may be told needs no more.
            if text.len() > limit {
                break;
            }
        }
        for path in &untracked {
            match style {
                DiffStyle::Files => files.push(at.untracked(path)),
                DiffStyle::Names => text.push_str(&format!("{}\n", String::from_utf8_lossy(path))),
                _ if text.len() <= limit => text.push_str(&at.told_untracked(&self.form, path)?),
                _ => break,
            }
        }
        Ok(bounded(files, text, style, limit))
    }
}

impl Job for DiffSnapshots {
    type Reply = Diff;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<Diff, InsideError> {
        let now = &self.now;
        let repository = at.own_repository(now)?;
        let to = match &self.to {
            Some(to) => to.clone(),
            None => {
                let made = at.make_snapshot(&at.changes()?, now)?;
                made.map(|made| made.commit).unwrap_or_default()
            }
        };
        let nothing = empty_tree(now.is_sha256);
        let mut range = Vec::new();
        for commit in [&self.from, &to] {
            let files = Git::new(&repository, "rev-parse")
                .args(["-q", "--verify", &format!("{commit}:files")])
                .output()?;
            let id = String::from_utf8_lossy(&files.stdout).trim_end().to_owned();
            range.push(match files.status.success() {
                true => id,
                false => nothing.to_owned(),
            });
        }
        let range: Vec<_> = range.iter().map(String::as_str).collect();
        let git = Git::new(&repository, "diff").limit(TIME_LIMIT);
        differing(git, "snapshot", &range, &self.form, self.limit)
    }
}

impl Reply for Diff {
    fn checked(mut self) -> Option<Self> {
        let is_file = |file: &ChangedFile| {
            is_path(&file.path) && file.status.len() < 32 && file.state.len() < 32
        };
        self.files.retain(is_file);
        self.files.truncate(MANY);
        for file in &mut self.files {
            file.added = file.added.map(|lines| lines.min(COUNT));
            file.deleted = file.deleted.map(|lines| lines.min(COUNT));
        }
        Some(self)
    }
}

impl Workplace {
    fn told_untracked(&self, form: &DiffForm, path: &[u8]) -> Result<String, InsideError> {
        // It answers 1, because there is a difference.
        let output = form
            .apply(self.git("diff"))
            .args(["--no-index", "--", "/dev/null"])
            .args([OsString::from_vec(path.to_vec())])
            .output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn untracked(&self, path: &[u8]) -> ChangedFile {
        let full = self.work_tree.join(OsString::from_vec(path.to_vec()));
        let is_file = full.symlink_metadata().is_ok_and(|found| found.is_file());
        let content = is_file.then(|| read_capped(&full, COUNTED)).flatten();
        let lines = match &content {
            Some(bytes) if bytes.contains(&0) => None,
            Some(bytes) => {
                let unended = bytes.last().is_some_and(|last| *last != b'\n');
                let ended = bytes.iter().filter(|byte| **byte == b'\n').count();
                Some(ended as u64 + u64::from(unended))
            }
            None => Some(1),
        };
        ChangedFile {
            path: String::from_utf8_lossy(path).into_owned(),
            status: "added".to_owned(),
            state: "untracked".to_owned(),
            added: lines,
            deleted: lines.map(|_| 0),
        }
    }
}

/// `--raw -z` gives `:modes ids status\0path\0` for each file, then `--numstat -z` gives `added\tdeleted\tpath\0`.
fn parse_raw_and_numstat(answer: &[u8], state: &str) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut parts = answer
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty());
    while let Some(part) = parts.next() {
        let text = String::from_utf8_lossy(part).into_owned();
        if part[0] == b':' {
            let status = match text.rsplit(' ').next().and_then(|word| word.chars().next()) {
                Some('A') => "added",
                Some('D') => "deleted",
                Some('T') => "type_changed",
                Some('U') => "conflicted",
                _ => "modified",
            };
            files.push(ChangedFile {
                path: String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned(),
                status: status.to_owned(),
                state: state.to_owned(),
                added: None,
                deleted: None,
            });
        } else {
            let mut fields = text.splitn(3, '\t');
            let (added, deleted, path) = (fields.next(), fields.next(), fields.next());
            if let Some(file) = files
                .iter_mut()
                .find(|file| Some(file.path.as_str()) == path)
            {
                file.added = added.and_then(|number| number.parse().ok());
                file.deleted = deleted.and_then(|number| number.parse().ok());
            }
        }
    }
    files
}

/// What changed between two commits that the host trusts. No attributes count, so none of them hides a file.
pub fn between(
    git: Git,
    range: [&str; 2],
    form: &DiffForm,
    limit: usize,
) -> Result<Diff, InsideError> {
    let git = git.env("GIT_ATTR_SOURCE", empty_tree(range[0].len() == 64));
    differing(git, "committed", &range, form, limit)
}

/// The git tree without files.
fn empty_tree(is_sha256: bool) -> &'static str {
    match is_sha256 {
        true => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        false => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    }
}

fn differing(
    git: Git,
    state: &str,
    range: &[&str],
    form: &DiffForm,
    limit: usize,
) -> Result<Diff, InsideError> {
    let (mut files, mut text) = (Vec::new(), String::new());
    match form.style {
        DiffStyle::Files => files = listed(git, state, range)?,
        _ => text = told(git, form, range)?,
    }
    Ok(bounded(files, text, form.style, limit))
}

/// The answer, no longer than may be told.
fn bounded(mut files: Vec<ChangedFile>, mut text: String, style: DiffStyle, limit: usize) -> Diff {
    if style == DiffStyle::Names {
        let mut seen = std::collections::BTreeSet::new();
        let once = text.lines().filter(|line| seen.insert(*line));
        text = once.map(|line| format!("{line}\n")).collect();
    }
    let truncated = files.len() > FILES || text.len() > limit;
    files.truncate(FILES);
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
    }
    Diff {
        files,
        text: (style != DiffStyle::Files).then_some(text),
        truncated,
    }
}

fn told(git: Git, form: &DiffForm, range: &[&str]) -> Result<String, InsideError> {
    let answer = form.apply(git).args(range).args(["--"]).run()?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn listed(git: Git, state: &str, range: &[&str]) -> Result<Vec<ChangedFile>, InsideError> {
    let answer = git
        .args([
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "-z",
            "--raw",
        ])
        .args(["--numstat"])
        .args(range)
        .args(["--"])
        .run()?;
    Ok(parse_raw_and_numstat(&answer, state))
}
