//! Committing what a tree holds, inside its sandbox, before it lands.
//!
//! Hooks of the tree run, with everything that a run in it has, so level full is needed. Whatever fails leaves the tree's
//! index and HEAD as they were.

use std::time::Duration;

use weald_core::tree::Tree;
use weald_git::Person;

use super::LandError;
use crate::Landings;
use crate::refusal::{Refusal, by_hand, program};
use weald_trees::Sent;
use weald_trees::inside::{CommitChanges, CommitEnd};

/// How much of what a hook said is passed on.
const SAID: usize = 2000;

/// How much longer the visit may take than the commit in it, so that what takes too long is still taken back.
const GRACE: Duration = Duration::from_secs(20);

/// Which uncommitted changes are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitScope {
    /// Those of files that git knows.
    Tracked,
    /// New files, too; ignored ones never.
    All,
}

/// What to commit, and as whom.
pub(crate) struct CommitRequest<'c> {
    pub scope: CommitScope,
    pub message: &'c str,
    /// Who commits where the tree's own git does not know.
    pub identity: &'c Person,
}

/// What came of a commit.
#[derive(Default)]
pub(crate) struct Committed {
    /// Protected files that HEAD does not have, outermost folders first.
    pub left_out: Vec<String>,
    /// What is there, if that was sent along.
    pub sent: Option<Sent>,
}

impl Landings<'_> {
    /// Commits the changes of a tree, but no protected file that HEAD does not have.
    /// A failing hook leaves its index as it was.
    pub(crate) fn commit_changes(
        &self,
        tree: &Tree,
        request: &CommitRequest<'_>,
    ) -> Result<Committed, LandError> {
        let name = tree.name.as_str();
        self.trees.require_idle(tree)?;
        let limit = self.trees.config.commit_timeout.unsigned_abs();
        let job = CommitChanges {
            untracked: request.scope == CommitScope::All,
            message: request.message.to_owned(),
            identity: (request.identity.name.clone(), request.identity.mail.clone()),
            protected: self.trees.config.policy_protected.to_vec(),
            limit,
            then: None,
        };
        let announcement = format!(
            "committing the changes in {name}; its hooks may take {}",
            self.commit_limit()
        );
        let limit = limit.saturating_add(GRACE);
        let (end, sent) = self.trees.commit(tree, job, limit, announcement)?;
        let limit = self.commit_limit();
        match end {
            CommitEnd::Committed { left_out, hung } => {
                if let Some(hung) = hung.as_deref().map(program) {
                    self.trees.engine.notice(format!(
                        "{hung} in {name} did not end within {limit} and was stopped; the commit was made"
                    ));
                }
                Ok(Committed { left_out, sent })
            }
            CommitEnd::Nothing { left_out } => Ok(Committed { left_out, sent }),
            CommitEnd::HookFailed { hook, said } => {
                Err(Refusal::HookFailed(tree.name.clone(), hook, short(&said)).into())
            }
            CommitEnd::TimedOut { hook } => {
                Err(Refusal::HookTooSlow(tree.name.clone(), hook, limit).into())
            }
            CommitEnd::Refused(why) => {
                Err(Refusal::NotCommitted(tree.name.clone(), short(&why)).into())
            }
        }
    }

    /// How long the hooks of a commit may take, in words.
    fn commit_limit(&self) -> String {
        let limit = self.trees.config.get("commit.timeout").0;
        format!("{limit} (commit.timeout)")
    }

    /// The same as the user of this repository.
    pub(super) fn commit_first(
        &self,
        tree: &Tree,
        scope: CommitScope,
        message: &str,
    ) -> Result<Committed, LandError> {
        let identity = self.committer()?;
        let request = CommitRequest {
            scope,
            message,
            identity: &identity,
        };
        let committed = self.commit_changes(tree, &request)?;
        let left_out = &committed.left_out;
        if !left_out.is_empty() {
            self.trees.engine.notice(format!(
                "not committed, because it is protected and new: {}; it stays in {} (to land it: {})",
                left_out.join(", "),
                tree.name,
                by_hand(&tree.name)
            ));
        }
        Ok(committed)
    }

    /// Commits what a tree holds; a failing hook leaves it as it was. A look at it takes in what was sent.
    pub fn commit_work(
        &self,
        name: &str,
        scope: CommitScope,
        message: &str,
    ) -> Result<Option<Sent>, LandError> {
        let tree = self.trees.named(Some(name))?;
        Ok(self.commit_first(&tree, scope, message)?.sent)
    }
}

/// As much of what came out of a tree as is passed on.
fn short(said: &str) -> String {
    said.trim().chars().take(SAID).collect()
}
