//! Checking files out, inside: filters of the user's and attributes of the repository's apply as they would for git.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_git::{CheckoutIndex, EntryKind, Git, IndexEntry, set_times};

use super::{Access, InsideError, Job, Workplace};
use crate::untrusted::Reply;

/// Checks a commit out into an empty work tree; with another index than the repository's.
#[derive(Serialize, Deserialize)]
pub struct Populate {
    pub commit: String,
    pub index: Option<PathBuf>,
}

/// Makes the work tree exactly what a commit holds again, but for what git ignores.
#[derive(Serialize, Deserialize)]
pub struct Reset {
    pub commit: String,
}

/// Checks out the commits of submodules whose repositories are there: repository, work tree, commit.
#[derive(Serialize, Deserialize)]
pub struct PopulateSubmodules(pub Vec<(PathBuf, PathBuf, String)>);

/// Turns a clean checkout of one commit into one of another, by what differs.
#[derive(Serialize, Deserialize)]
pub struct Forward {
    pub from: String,
    pub to: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForwardReply {
    Forward,
    /// It has to be made again instead.
    Rebuild,
}

impl Job for Populate {
    type Reply = ();
    const ACCESS: Access = Access::Write;
    const ENDS_ON_INTERRUPT: bool = true;

    fn work(&self, at: &Workplace) -> Result<(), InsideError> {
        let commit = &self.commit;
        at.bring_large_files(commit)?;
        let read =
            at.checkout_git("read-tree")
                .args(["--reset", "-u", "--no-recurse-submodules", commit]);
        let read = match &self.index {
            Some(index) => read.index_file(index),
            None => read,
        };
        read.run()?;
        let own = at.git_dir.join("index");
        at.age(self.index.as_ref().unwrap_or(&own), commit.len() == 64)
    }
}

impl Job for Reset {
    type Reply = ();
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<(), InsideError> {
        at.reset_files(&self.commit)
    }
}

impl Job for PopulateSubmodules {
    type Reply = ();
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<(), InsideError> {
        for (git_dir, work_tree, commit) in &self.0 {
            let name = git_dir.strip_prefix(at.git_dir.join("modules"));
            let module = Workplace {
                git_dir: git_dir.clone(),
                ..at.of_module(name.unwrap_or(Path::new("")), work_tree)
            };
            module.bring_large_files(commit)?;
            module
                .checkout_git("read-tree")
                .args(["--reset", "-u", "--no-recurse-submodules", commit])
                .run()?;
        }
        Ok(())
    }
}

impl Job for Forward {
    type Reply = ForwardReply;
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<ForwardReply, InsideError> {
        let (from, to) = (&self.from, &self.to);
        let changed = at
            .git("diff-tree")
            .args(["-r", "--name-only", "--no-renames", "-z", from, to])
            .run()?;
        let mut paths = changed.split(|byte| *byte == 0);
        // Attributes decide how other files look, also those that did not change.
        let needs_more = paths.any(|path| {
            let name = path.rsplit(|byte| *byte == b'/').next();
            name == Some(b".gitattributes")
        });
        if needs_more {
            return Ok(ForwardReply::Rebuild);
        }
        let brought = at.bring_large_files(to)?;
        if from != to {
            at.checkout_git("read-tree")
                .args(["-m", "-u", "--no-recurse-submodules", from, to])
                .run()?;
        }
        if at.fill_pointers(to, &brought)? {
            at.age(&at.git_dir.join("index"), to.len() == 64)?;
        }
        Ok(ForwardReply::Forward)
    }
}

impl Reply for ForwardReply {
    fn checked(self) -> Option<Self> {
        Some(self)
    }
}

impl Workplace {
    /// A command that writes files, with an index of the plain kind.
    pub(super) fn checkout_git(&self, name: &str) -> Git {
        self.git(name)
            .config("index.sparse", "false")
            .config("index.version", "2")
            .config("index.threads", "1")
            .config("index.skipHash", "false")
            .config("core.splitIndex", "false")
            .config("core.untrackedCache", "false")
    }

    /// Makes the work tree exactly what a commit holds again, but for what git ignores.
    pub(super) fn reset_files(&self, commit: &str) -> Result<(), InsideError> {
        // Marks in the index could hide what was changed. Without it every file is written again.
        let is_plain = self
            .changes()
            .is_ok_and(|changes| changes.hidden.is_empty());
        if !is_plain {
            match fs::remove_file(self.git_dir.join("index")) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        fs::write(self.git_dir.join("HEAD"), format!("{commit}\n"))?;
        let read = self.checkout_git("read-tree");
        read.args(["--reset", "-u", "--no-recurse-submodules", commit])
            .run()?;
        self.git("clean").args(["-ffdq"]).run()?;
        Ok(())
    }

    /// Moves file times into the past: a file as young as the index would be read again by the first `git status`.
    fn age(&self, index: &Path, sha256: bool) -> Result<(), InsideError> {
        let Some(mut known) = CheckoutIndex::read(index, sha256)? else {
            return Ok(());
        };
        let has_file =
            |entry: &IndexEntry<'_>| !entry.is_absent && entry.kind != EntryKind::Submodule;
        let entries = known.entries().enumerate();
        let older = entries
            .filter(|(_, entry)| has_file(entry))
            .map(|(place, entry)| {
                let (seconds, nanoseconds) = entry.modified;
                (place, (seconds - 2, nanoseconds))
            });
        let older: Vec<_> = older.collect();
        set_times(&self.work_tree, &mut known, &older)?;
        let aged = index.with_extension("aged");
        fs::write(&aged, known.to_bytes())?;
        Ok(fs::rename(aged, index)?)
    }

    /// A workplace on the files of a submodule, with main's large files of it.
    pub(super) fn of_module(&self, name: &Path, work_tree: &Path) -> Self {
        let mut module = Self {
            work_tree: work_tree.to_owned(),
            ..self.clone()
        };
        if let Some(own) = &self.large.main
            && let Ok(folder) = own.strip_prefix(&self.main)
        {
            module.large.main = Some(self.main.join("modules").join(name).join(folder));
        }
        module
    }
}
