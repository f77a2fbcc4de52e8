//! What `git status` says, parsed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use weald_git::{Commit, GitError};

use super::{InsideError, Look, Workplace};

/// One changed file, as `weald diff` tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Relative to the tree.
    pub path: String,
    /// `added`, `modified`, `deleted` or `type_changed`.
    pub status: String,
    /// `committed`, `staged`, `unstaged` or `untracked`.
    pub state: String,
    /// Lines added; `None` for a binary file.
    pub added: Option<u64>,
    /// Lines deleted; `None` for a binary file.
    pub deleted: Option<u64>,
}

/// How `git status` is asked.
pub(super) const STATUS: [&str; 7] = [
    "--porcelain=v2",
    "--branch",
    "-z",
    "--untracked-files=all",
    "--ignored=matching",
    "--no-renames",
    "--ignore-submodules=none",
];

/// The path in a line of it that says that a file differs from the index.
pub(super) fn unstaged_path(line: &[u8]) -> Option<&[u8]> {
    let fields: Vec<_> = line.splitn(9, |byte| *byte == b' ').collect();
    match fields[..] {
        [b"1", [_, state], .., path] if *state != b'.' => Some(path),
        _ => None,
    }
}

/// The tree against its HEAD.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub look: Look,
    /// Objects that are staged: mode and id.
    pub staged: BTreeSet<(String, String)>,
    /// Paths of files that differ from HEAD, known to git or not; directories end with a slash.
    pub paths: Vec<Vec<u8>>,
    /// The same, only those unknown to git.
    pub untracked: Vec<Vec<u8>>,
    /// Paths of changed files that git was told not to look at.
    pub hidden: Vec<Vec<u8>>,
    /// What git ignores; directories end with a slash.
    pub ignored: Vec<Vec<u8>>,
    pub head: Option<String>,
    /// The lines that tell index and files.
    lines: Vec<u8>,
}

impl Workplace {
    /// Asks git what changed.
    pub(super) fn changes(&self) -> Result<Changes, InsideError> {
        let answer = self.status(&self.git_dir.join("index"))?.output()?;
        if !answer.status.success() {
            return Err(InsideError::Git(GitError::Failed {
                command: "status".to_owned(),
                code: answer.status.code(),
                stderr: answer.stderr,
            }));
        }
        // git goes on without what is in there, so nobody would know of it.
        let mut warnings = answer.stderr.lines();
        if let Some(line) = warnings.find(|line| line.contains("could not open directory")) {
            let why = format!("{line}; chmod u+rwx what the message names");
            return Err(InsideError::Damaged(why));
        }
        let mut changes = Changes::default();
        for line in answer
            .stdout
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
        {
            changes.take(line);
        }
        let is_sha256 = changes.head.as_ref().is_some_and(|head| head.len() == 64);
        changes.hidden = self.hidden(is_sha256)?;
        changes.look.hidden = changes.hidden.len() as u64;
        Ok(changes)
    }
}

impl Changes {
    /// HEAD, and how index and files differ from it: all that there is to say about the index but its times.
    pub(super) fn state(&self) -> Vec<u8> {
        let head = self.head.clone().unwrap_or_default().into_bytes();
        [head, self.lines.clone()].join(&b'\n')
    }

    /// Everything that differs from HEAD, seen by git or hidden from it, each path once.
    pub(super) fn all_paths(&self) -> BTreeSet<&[u8]> {
        let all = self.paths.iter().chain(&self.hidden);
        all.map(Vec::as_slice).collect()
    }

    fn take(&mut self, line: &[u8]) {
        if matches!(line[0], b'1' | b'u' | b'?') {
            self.lines.extend_from_slice(line);
            self.lines.push(0);
        }
        let look = &mut self.look;
        match line[0] {
            b'1' => {
                let fields: Vec<_> = line.splitn(9, |byte| *byte == b' ').collect();
                let [_, xy, .., index_mode, _, _, index_id, path] = fields[..] else {
                    return;
                };
                if xy.first() != Some(&b'.') {
                    look.staged += 1;
                    self.note_staged(index_mode, index_id);
                }
                if xy.get(1) != Some(&b'.') {
                    self.look.unstaged += 1;
                }
                self.paths.push(path.to_vec());
            }
            b'u' => {
                look.conflicted += 1;
                look.unstaged += 1;
                let fields: Vec<_> = line.splitn(11, |byte| *byte == b' ').collect();
                let [_, _, _, m1, m2, m3, _, h1, h2, h3, path] = fields[..] else {
                    return;
                };
                for (mode, id) in [(m1, h1), (m2, h2), (m3, h3)] {
                    self.note_staged(mode, id);
                }
                self.paths.push(path.to_vec());
            }
            b'?' => {
                look.untracked += 1;
                self.paths.push(line[2..].to_vec());
                self.untracked.push(line[2..].to_vec());
            }
            b'!' => {
                look.ignored += 1;
                self.ignored.push(line[2..].to_vec());
            }
            b'#' => {
                let id = line.strip_prefix(b"# branch.oid ");
                let id = id.and_then(|id| Commit::parse(&String::from_utf8_lossy(id)));
                self.head = self.head.take().or(id.map(|id| id.as_str().to_owned()));
            }
            _ => {}
        }
    }

    fn note_staged(&mut self, mode: &[u8], id: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let is_blob = matches!(mode, b"100644" | b"100755" | b"120000");
        if is_blob && id.iter().any(|digit| *digit != b'0') {
            self.staged.insert((text(mode), text(id)));
        }
    }
}
