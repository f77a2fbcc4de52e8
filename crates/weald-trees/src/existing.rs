//! A branch that is there before its worktree: found as git finds one for `git worktree add`.

use weald_core::nearest::nearest;
use weald_git::{Git, GitError, RefName, list_refs};

use super::{TreeError, Trees};

/// A branch that a worktree is made for.
pub(super) struct Chosen {
    /// What it is called here.
    pub branch: String,
    /// The commit that it holds.
    pub tip: String,
    /// The remote's branch that it will follow, as `origin/fix`; `None` for one that is here already.
    pub upstream: Option<String>,
}

impl Trees<'_> {
    /// The branch of this name: one here, one that is named with its remote, or one that a single remote has.
    pub(super) fn chosen_branch(&self, word: &str) -> Result<Chosen, TreeError> {
        let word = word.strip_prefix("refs/heads/").unwrap_or(word);
        if RefName::branch(word).is_none() {
            return Err(self.no_branch(word)?);
        }
        if let Some(tip) = self.branch_tip(word)? {
            return Ok(Chosen {
                branch: word.to_owned(),
                tip,
                upstream: None,
            });
        }
        let remotes = self.remotes()?;
        let named = remotes.iter().filter_map(|remote| {
            let short = word.strip_prefix(remote.as_str())?.strip_prefix('/')?;
            Some((remote.clone(), short.to_owned()))
        });
        let guessed = remotes
            .iter()
            .cloned()
            .map(|remote| (remote, word.to_owned()));
        let mut found = Vec::new();
        for (remote, branch) in named.chain(guessed) {
            let upstream = format!("{remote}/{branch}");
            let tip = self
                .repository()
                .resolve(&format!("refs/remotes/{upstream}"))?;
            found.extend(tip.map(|tip| (branch, tip.as_str().to_owned(), upstream)));
        }
        let Some((branch, tip, upstream)) = found.pop() else {
            return Err(self.no_branch(word)?);
        };
        if !found.is_empty() {
            found.push((branch, tip, upstream));
            return Err(TreeError::BranchOnRemotes {
                branch: word.to_owned(),
                upstreams: found.into_iter().map(|(_, _, upstream)| upstream).collect(),
            });
        }
        match self.branch_tip(&branch)? {
            Some(_) => Err(TreeError::BranchIsHere { branch, upstream }),
            None => Ok(Chosen {
                branch,
                tip,
                upstream: Some(upstream),
            }),
        }
    }

    fn remotes(&self) -> Result<Vec<String>, GitError> {
        let listed = self.repository().git("remote").run()?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// That there is none, with the nearest that there is.
    fn no_branch(&self, word: &str) -> Result<TreeError, TreeError> {
        let known = list_refs(self.common_dir(), &["refs/heads/", "refs/remotes/"])?;
        let known = known.iter().filter_map(|known| {
            let name = known.name.strip_prefix("refs/heads/");
            name.or_else(|| known.name.strip_prefix("refs/remotes/"))
        });
        Ok(TreeError::NoBranch {
            branch: word.to_owned(),
            nearest: nearest(word, known).map(str::to_owned),
        })
    }

    /// Has a branch that was made from a remote's follow it, as git has it.
    pub(super) fn follow_upstream(&self, branch: &str, upstream: &str) -> Result<(), GitError> {
        let to = format!("--set-upstream-to={upstream}");
        let git = Git::new(self.common_dir(), "branch").args(["-q", &to, "--", branch]);
        git.run().map(drop)
    }
}
