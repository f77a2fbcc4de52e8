//! Looking, and sending what the vault lacks.

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use weald_git::Reference;

use super::changes::Changes;
use super::{InsideError, Look, Reply, Request, Tips, read_capped, say, scratch};

/// How much of a reflog is read, from its end.
const REFLOG_LIMIT: u64 = 4 << 20;

/// The longest HEAD that is read without git.
const HEAD_LIMIT: u64 = 4096;

/// How many entries of HEAD's reflog are sent.
const REFLOG_ENTRIES: usize = 500;

impl Request {
    pub(super) fn look(&self, haves: Option<&[String]>) -> Result<(), InsideError> {
        let changes = self.changes()?;
        let tips = self.tips(&changes)?;
        let look = self.complete(&changes, &tips)?;
        let objects = (self.objects(), scratch()?.join("objects"));
        let mut wanted: Vec<&str> = tips
            .refs
            .iter()
            .map(|(_, id)| id.as_str())
            .chain(tips.stash.iter().map(String::as_str))
            .chain(tips.reflog.iter().map(String::as_str))
            .chain(tips.staged.as_deref())
            .chain(look.head.as_deref())
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut input = wanted.join("\n");
        say(&Reply {
            look: Some(look.clone()),
            tips: Some(tips.clone()),
            ..Reply::default()
        })?;
        let Some(haves) = haves else {
            return Ok(());
        };
        // Nothing new: the end of the answer is its pack.
        if wanted.iter().all(|id| haves.iter().any(|have| have == id)) {
            return Ok(());
        }
        for have in haves {
            input.push_str(&format!("\n^{have}"));
        }
        input.push('\n');
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        let sent = self
            .git("pack-objects")
            .args(["--revs", "--stdout", "-q", "--delta-base-offset"])
            .env("GIT_OBJECT_DIRECTORY", objects.1)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects.0)
            .input(input)
            .output_to(stdout)?;
        match sent.status.success() {
            true => Ok(()),
            false => Err(InsideError::Damaged(sent.stderr)),
        }
    }

    fn complete(&self, changes: &Changes, tips: &Tips) -> Result<Look, InsideError> {
        let branch = self.branch()?;
        // Without a commit, HEAD must at least be on a branch that does not exist yet.
        if changes.head.is_none()
            && branch
                .as_ref()
                .is_none_or(|branch| tips.refs.iter().any(|(name, _)| name == branch))
        {
            return Err(InsideError::Damaged("HEAD holds no commit".to_owned()));
        }
        Ok(Look {
            head: changes.head.clone(),
            branch: branch.map(|name| match name.strip_prefix("refs/heads/") {
                Some(short) => short.to_owned(),
                None => name,
            }),
            operation: self.operation(),
            stashed: tips.stash.len() as u64,
            ..changes.look.clone()
        })
    }

    /// The ref that HEAD stands for; `None` if it holds a commit itself.
    fn branch(&self) -> Result<Option<String>, InsideError> {
        let text = read_capped(&self.git_dir.join("HEAD"), HEAD_LIMIT).unwrap_or_default();
        let has_tables = self.git_dir.join("reftable").exists();
        match Reference::parse(String::from_utf8_lossy(&text).trim_end()).filter(|_| !has_tables) {
            Some(Reference::Symbolic(name)) => Ok(Some(name)),
            Some(Reference::Direct(_)) => Ok(None),
            None => {
                let asked = self.git("symbolic-ref").args(["-q", "HEAD"]).output()?;
                let name = String::from_utf8_lossy(&asked.stdout).trim_end().to_owned();
                Ok(Some(name).filter(|name| !name.is_empty()))
            }
        }
    }

    fn operation(&self) -> Option<String> {
        let there = |name: &str| self.git_dir.join(name).exists();
        let found = [
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
            ("MERGE_HEAD", "merge"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
            ("BISECT_LOG", "bisect"),
        ];
        let operation = found.iter().find(|(file, _)| there(file))?.1;
        Some(operation.to_owned())
    }

    /// Everything that holds commits.
    fn tips(&self, changes: &Changes) -> Result<Tips, InsideError> {
        let answer = self
            .git("for-each-ref")
            .args(["--format=%(objectname) %(refname)"])
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let refs = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(id, name)| (name.to_owned(), id.to_owned()))
            .collect();
        let stash = reflog(&self.git_dir.join("logs/refs/stash"));
        let mut before = reflog(&self.git_dir.join("logs/HEAD"));
        before.truncate(REFLOG_ENTRIES);
        Ok(Tips {
            refs,
            stash: self.existing(stash)?,
            reflog: self.existing(before)?,
            staged: self.staged(changes)?,
        })
    }

    /// Those that are there: a gc inside may have taken what only a reflog knew.
    fn existing(&self, mut ids: Vec<String>) -> Result<Vec<String>, InsideError> {
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        if ids.is_empty() {
            return Ok(ids);
        }
        let answer = self
            .git("cat-file")
            .args(["--batch-check=%(objectname) %(objecttype)"])
            .input(ids.join("\n") + "\n")
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let commits = text.lines().filter_map(|line| line.strip_suffix(" commit"));
        Ok(commits.map(str::to_owned).collect())
    }

    /// A flat tree of what is staged, so that it travels.
    fn staged(&self, changes: &Changes) -> Result<Option<String>, InsideError> {
        if changes.staged.is_empty() {
            return Ok(None);
        }
        let objects = scratch()?.join("objects");
        let list: String = changes
            .staged
            .iter()
            .map(|(mode, id)| format!("{mode} blob {id}\t{id}-{mode}\n"))
            .collect();
        let tree = self
            .git("mktree")
            .env("GIT_OBJECT_DIRECTORY", &objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.objects())
            .input(list)
            .run()?;
        Ok(Some(String::from_utf8_lossy(&tree).trim_end().to_owned()))
    }
}

/// The commits in a reflog, newest first: what was held before comes along.
fn reflog(path: &Path) -> Vec<String> {
    let Some(bytes) = read_capped(path, REFLOG_LIMIT) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut ids = Vec::new();
    for line in text.lines().rev() {
        let mut fields = line.split(' ');
        let (old, new) = (fields.next(), fields.next());
        for id in [new, old].into_iter().flatten() {
            let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|c| c.is_ascii_hexdigit());
            if is_id && id.bytes().any(|c| c != b'0') {
                ids.push(id.to_owned());
            }
        }
    }
    ids
}

/// Sends a file to the host.
pub(super) fn send_file(path: &Path) -> io::Result<()> {
    let mut out = io::stdout().lock();
    io::copy(&mut fs::File::open(path)?, &mut out)?;
    out.flush()
}
