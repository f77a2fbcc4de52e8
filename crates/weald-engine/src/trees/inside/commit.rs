//! Committing what a tree holds, as its own git would: with its hooks, and with everything or nothing of it done.
//!
//! The work is done on a copy of the index, which is also the index's lock; only a commit that was made renames it into
//! place. Whatever fails before leaves index and HEAD as they were.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weald_git::{Git, GitError, keep_index_time};

use super::{InsideError, Reply, Request, say};

/// What to commit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommitWish {
    /// Whether files that git does not know come along; ignored ones never do.
    pub untracked: bool,
    /// The message.
    pub message: String,
    /// Who commits if the tree does not know: name and mail.
    pub identity: (String, String),
    /// How long git and its hooks may take.
    pub limit: Duration,
}

/// A copy of the index that keeps other gits away; gone when it is dropped, unless it took the index's place.
struct CopiedIndex {
    copy: PathBuf,
    index: PathBuf,
}

impl CopiedIndex {
    /// `None` if another git is at work.
    fn new(git_dir: &Path) -> io::Result<Option<Self>> {
        let index = git_dir.join("index");
        let copy = git_dir.join("index.lock");
        let made = OpenOptions::new().write(true).create_new(true).open(&copy);
        let mut file = match made {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(error),
        };
        let copied = Self { copy, index };
        let mut from = fs::File::open(&copied.index)?;
        io::copy(&mut from, &mut file)?;
        let index = from.metadata()?;
        file.set_permissions(index.permissions())?;
        keep_index_time(&index, &file)?;
        Ok(Some(copied))
    }

    fn take_place(self) -> io::Result<()> {
        fs::rename(&self.copy, &self.index)?;
        // From here on a lock of this name is somebody else's.
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for CopiedIndex {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.copy);
    }
}

impl Request {
    pub(super) fn commit(&self, wish: &CommitWish) -> Result<(), InsideError> {
        let reply = match self.operation() {
            Some(operation) => refused(format!("a {operation} is going on")),
            None => match CopiedIndex::new(&self.git_dir)? {
                Some(index) => match self.commit_from(index, wish) {
                    Err(InsideError::Git(error @ GitError::TimedOut { .. })) => {
                        refused(error.to_string())
                    }
                    done => done?,
                },
                None => refused("another git works on its index (index.lock)".to_owned()),
            },
        };
        Ok(say(&reply)?)
    }

    fn commit_from(&self, index: CopiedIndex, wish: &CommitWish) -> Result<Reply, InsideError> {
        let unmerged = self
            .as_its_own("ls-files", &index, wish)
            .args(["-u"])
            .run()?;
        if !unmerged.is_empty() {
            return Ok(refused("files are in conflict".to_owned()));
        }
        let which = if wish.untracked { "-A" } else { "-u" };
        let added = self
            .as_its_own("add", &index, wish)
            .args([which])
            .output()?;
        if !added.status.success() {
            return Ok(refused(added.stderr));
        }
        let staged = self
            .as_its_own("diff", &index, wish)
            .args(["--cached", "--quiet", "--no-ext-diff"])
            .output()?;
        if staged.status.success() {
            return Ok(ended("nothing"));
        }
        let committed = self
            .identified(self.as_its_own("commit", &index, wish), wish)?
            .args(["-q", "-F", "-"])
            .input(wish.message.clone())
            .output()?;
        if !committed.status.success() {
            return Ok(refused(committed.stderr));
        }
        index.take_place()?;
        Ok(ended("committed"))
    }

    /// git as somebody in the tree would start it, so that hooks see what they are used to; it looks no further up.
    fn as_its_own(&self, name: &str, index: &CopiedIndex, wish: &CommitWish) -> Git {
        let above = self.work_tree.parent().unwrap_or(&self.work_tree);
        Git::outside(&self.work_tree, name)
            .with_user_config(self.home.as_deref())
            .env("GIT_CONFIG_NOSYSTEM", "0")
            .env("GIT_CEILING_DIRECTORIES", above)
            .env("GIT_EDITOR", "true")
            .config("commit.gpgsign", "false")
            .config("gc.auto", "0")
            .config("maintenance.auto", "false")
            .index_file(&index.copy)
            .limit(wish.limit)
    }

    fn identified(&self, git: Git, wish: &CommitWish) -> Result<Git, InsideError> {
        let known = self.git("var").args(["GIT_COMMITTER_IDENT"]).output()?;
        if known.status.success() {
            return Ok(git);
        }
        let (name, mail) = &wish.identity;
        Ok(["AUTHOR", "COMMITTER"].iter().fold(git, |git, who| {
            git.env(&format!("GIT_{who}_NAME"), name)
                .env(&format!("GIT_{who}_EMAIL"), mail)
        }))
    }
}

fn ended(outcome: &str) -> Reply {
    Reply {
        outcome: Some(outcome.to_owned()),
        ..Reply::default()
    }
}

fn refused(why: String) -> Reply {
    Reply {
        text: Some(why),
        ..ended("refused")
    }
}
