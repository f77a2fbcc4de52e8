//! Bringing the target into a tree: merged or rebased, and left in the tree where it conflicts.

use std::collections::BTreeSet;

use super::aside::{Aside, Paths, Place, lines};
use super::{InsideError, JobOutcome, Reply, Request, say};

impl Request {
    pub(super) fn sync(
        &self,
        commit: &str,
        onto: Option<&str>,
        rebase: bool,
        message: &str,
    ) -> Result<(), InsideError> {
        let contained = self
            .git("merge-base")
            .args(["--is-ancestor", commit, "HEAD"])
            .output()?;
        if contained.status.success() {
            return Ok(say(&ended(JobOutcome::UpToDate, Vec::new()))?);
        }
        if let Some(onto) = onto
            && !self.is_at(onto)?
        {
            return Ok(say(&ended(JobOutcome::Moved, Vec::new()))?);
        }
        self.bring_large_files(commit)?;
        let mut aside = Aside::new(&self.work_tree, ".before-sync", self.seen_by_git()?);
        let done = aside
            .make_way(&self.places_of_sync(commit, rebase)?)
            .map_err(InsideError::from)
            .and_then(|()| match onto {
                Some(_) => self.fast_forward(commit),
                None => self.bring_in(commit, rebase, message),
            });
        let aside = aside.put_back();
        Ok(say(&Reply { aside, ..done? })?)
    }

    fn is_at(&self, commit: &str) -> Result<bool, InsideError> {
        let head = self
            .git("rev-parse")
            .args(["-q", "--verify", "HEAD^{commit}"])
            .output()?;
        Ok(String::from_utf8_lossy(&head.stdout).trim_end() == commit)
    }

    /// Files, index and branch move, or nothing does.
    fn fast_forward(&self, commit: &str) -> Result<Reply, InsideError> {
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
            true => ended(JobOutcome::Merged, Vec::new()),
            false => Reply {
                text: Some(done.stderr),
                ..ended(JobOutcome::Refused, Vec::new())
            },
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

    fn bring_in(&self, commit: &str, rebase: bool, message: &str) -> Result<Reply, InsideError> {
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
            return Ok(ended(JobOutcome::Merged, Vec::new()));
        }
        let unmerged = self
            .git("diff")
            .args(["--name-only", "--diff-filter=U", "-z"])
            .run()?;
        let paths: Vec<_> = lines(&unmerged)
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        match paths.is_empty() {
            true => Ok(Reply {
                text: Some(done.stderr),
                ..ended(JobOutcome::Refused, paths)
            }),
            false => Ok(ended(JobOutcome::Conflict, paths)),
        }
    }
}

fn ended(outcome: JobOutcome, paths: Vec<String>) -> Reply {
    Reply {
        outcome: Some(outcome),
        paths,
        ..Reply::default()
    }
}
