//! Bringing the target into a tree: merged or rebased, and left in the tree where it conflicts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::aside::{Aside, Paths, Place, lines};
use super::{Access, InsideError, Job, Workplace};
use crate::untrusted::{MANY, Reply, keep_paths};

/// Brings a commit in; with `onto` by a fast-forward alone, from exactly there.
#[derive(Serialize, Deserialize)]
pub struct BringIn {
    pub commit: String,
    pub onto: Option<String>,
    pub rebase: bool,
    pub message: String,
}

/// What became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SyncReply {
    pub end: SyncEnd,
    /// Files that were set aside, by their new names.
    pub aside: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyncEnd {
    UpToDate,
    /// The branch is not where it was expected.
    Moved,
    Merged,
    /// These files conflict.
    Conflict(Vec<String>),
    /// By git, which said why.
    Refused(String),
}

impl Job for BringIn {
    type Reply = SyncReply;
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<SyncReply, InsideError> {
        let at_once = |end| SyncReply {
            end,
            aside: Vec::new(),
        };
        let contained = at
            .git("merge-base")
            .args(["--is-ancestor", &self.commit, "HEAD"])
            .output()?;
        if contained.status.success() {
            return Ok(at_once(SyncEnd::UpToDate));
        }
        if let Some(onto) = &self.onto
            && !at.is_at(onto)?
        {
            return Ok(at_once(SyncEnd::Moved));
        }
        at.bring_large_files(&self.commit)?;
        let mut aside = Aside::new(&at.work_tree, ".before-sync", at.seen_by_git()?);
        let done = aside
            .make_way(&at.places_of_sync(&self.commit, self.rebase)?)
            .map_err(InsideError::from)
            .and_then(|()| match self.onto {
                Some(_) => at.fast_forward(&self.commit),
                None => at.bring_in(&self.commit, self.rebase, &self.message),
            });
        let aside = aside.put_back();
        Ok(SyncReply { end: done?, aside })
    }
}

impl Reply for SyncReply {
    fn checked(mut self) -> Option<Self> {
        keep_paths(&mut self.aside, MANY);
        if let SyncEnd::Conflict(paths) = &mut self.end {
            keep_paths(paths, MANY);
        }
        Some(self)
    }
}

impl Workplace {
    fn is_at(&self, commit: &str) -> Result<bool, InsideError> {
        let head = self
            .git("rev-parse")
            .args(["-q", "--verify", "HEAD^{commit}"])
            .output()?;
        Ok(String::from_utf8_lossy(&head.stdout).trim_end() == commit)
    }

    /// Files, index and branch move, or nothing does.
    fn fast_forward(&self, commit: &str) -> Result<SyncEnd, InsideError> {
        let done = self
            .git("merge")
            .args([
                "-q",
                "--ff-only",
                "--no-autostash",
                "--no-verify-signatures",
            ])
            .args([commit])
            .output()?;
        Ok(match done.status.success() {
            true => SyncEnd::Merged,
            false => SyncEnd::Refused(done.stderr),
        })
    }

    /// What git itself does not overwrite: what it knows or would ask to be added. It has no mercy on what it ignores.
    fn seen_by_git(&self) -> Result<Paths, InsideError> {
        let listed = self
            .git("ls-files")
            .args(["-z", "--cached", "--others", "--exclude-standard"])
            .run()?;
        Ok(lines(&listed).map(<[u8]>::to_vec).collect())
    }

    /// Whatever may be written or removed; more than that does no harm.
    fn places_of_sync(&self, commit: &str, rebase: bool) -> Result<BTreeSet<Place>, InsideError> {
        let head = self
            .git("rev-parse")
            .args(["-q", "--verify", "HEAD^{commit}"])
            .output()?;
        if !head.status.success() {
            return self.places_of(commit);
        }
        let mut places = self.places_between("HEAD", commit)?;
        // A file that is new in a directory that the other side renamed is at a place that neither has.
        let merged = self
            .git("merge-tree")
            .args(["--write-tree", "--no-messages", "--name-only", "-z"])
            .args(["--allow-unrelated-histories", "HEAD", commit])
            .output()?;
        let merged = lines(&merged.stdout).next().unwrap_or_default().to_vec();
        let merged = String::from_utf8_lossy(&merged).trim_end().to_owned();
        if !merged.is_empty() {
            places.extend(self.places_between("HEAD", &merged)?);
        }
        if rebase {
            let touched = self
                .git("log")
                .args(["-m", "-z", "--name-only", "--no-renames", "--format="])
                .args([&format!("{commit}..HEAD")])
                .run()?;
            places.extend(lines(&touched).map(|path| Place {
                path: path.to_vec(),
                is_module: true,
            }));
        }
        Ok(places)
    }

    fn bring_in(&self, commit: &str, rebase: bool, message: &str) -> Result<SyncEnd, InsideError> {
        let known = self.git("var").args(["GIT_COMMITTER_IDENT"]).output()?;
        let work = match rebase {
            true => self.git("rebase").args(["-q", "--no-autostash", commit]),
            false => self
                .git("merge")
                .args(["-q", "--no-edit", "--no-verify-signatures", "-m", message])
                .args([commit]),
        };
        let work = work
            .config("commit.gpgsign", "false")
            .env("GIT_EDITOR", "true");
        let work = match known.status.success() {
            true => work,
            false => ["AUTHOR", "COMMITTER"].iter().fold(work, |work, who| {
                work.env(format!("GIT_{who}_NAME"), "weald")
                    .env(format!("GIT_{who}_EMAIL"), "weald@localhost")
            }),
        };
        let done = work.output()?;
        if done.status.success() {
            return Ok(SyncEnd::Merged);
        }
        let unmerged = self
            .git("diff")
            .args(["--name-only", "--diff-filter=U", "-z"])
            .run()?;
        let paths: Vec<_> = lines(&unmerged)
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        Ok(match paths.is_empty() {
            true => SyncEnd::Refused(done.stderr),
            false => SyncEnd::Conflict(paths),
        })
    }
}
