//! Bringing the target into a tree: merged or rebased, and left in the tree where it conflicts.

use super::{InsideError, Reply, Request, say};

impl Request {
    pub(super) fn sync(
        &self,
        commit: &str,
        rebase: bool,
        message: &str,
    ) -> Result<(), InsideError> {
        let contained = self
            .git("merge-base")
            .args(["--is-ancestor", commit, "HEAD"])
            .output()?;
        if contained.status.success() {
            return self.synced("up_to_date", Vec::new());
        }
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
                work.env(&format!("GIT_{who}_NAME"), "weald")
                    .env(&format!("GIT_{who}_EMAIL"), "weald@localhost")
            }),
        };
        let done = work.output()?;
        if done.status.success() {
            return self.synced("merged", Vec::new());
        }
        let unmerged = self
            .git("diff")
            .args(["--name-only", "--diff-filter=U", "-z"])
            .run()?;
        let paths: Vec<_> = unmerged
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        match paths.is_empty() {
            true => Ok(say(&Reply {
                outcome: Some("refused".to_owned()),
                text: Some(done.stderr),
                ..Reply::default()
            })?),
            false => self.synced("conflict", paths),
        }
    }

    fn synced(&self, outcome: &str, paths: Vec<String>) -> Result<(), InsideError> {
        Ok(say(&Reply {
            outcome: Some(outcome.to_owned()),
            paths,
            ..Reply::default()
        })?)
    }
}
