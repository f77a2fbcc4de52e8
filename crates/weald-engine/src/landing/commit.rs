//! Committing what a tree holds, inside its sandbox, before it lands.
//!
//! Hooks of the tree run, so level full is needed. Whatever fails leaves the tree's index and HEAD as they were.

use std::time::Duration;

use weald_core::name::TreeName;
use weald_core::tree::Tree;
use weald_git::Person;

use super::LandError;
use crate::trees::Trees;
use crate::trees::inside::{CommitWish, Job};

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
    /// Which changes.
    pub scope: CommitScope,
    /// The message.
    pub message: &'c str,
    /// Who commits where the tree's own git does not know.
    pub identity: &'c Person,
}

impl Trees<'_> {
    /// Commits the changes of a tree, but no protected file that HEAD does not have; answers those, outermost folders first.
    /// A failing hook leaves its index as it was.
    pub(crate) fn commit_changes(
        &self,
        tree: &Tree,
        request: &CommitRequest<'_>,
    ) -> Result<Vec<String>, LandError> {
        let name = tree.name.as_str();
        let site = self.site(tree)?;
        self.require_idle(tree)?;
        let limit = self.config.duration("gate.timeout").unsigned_abs();
        let job = Job::Commit(CommitWish {
            untracked: request.scope == CommitScope::All,
            message: request.message.to_owned(),
            identity: (request.identity.name.clone(), request.identity.mail.clone()),
            protected: self.config.list("policy.protected").to_vec(),
            limit,
        });
        let reply = self.do_inside_fully(name, &site, job, limit.saturating_add(GRACE))?;
        match reply.outcome.as_deref() {
            Some("committed" | "nothing") => Ok(reply.paths),
            _ => {
                let said = reply.text.unwrap_or_default();
                let said: String = said.trim().chars().take(SAID).collect();
                Err(LandError::refused(
                    "not_committed",
                    format!(
                        "the changes in {name} could not be committed, and are as they were: {said}"
                    ),
                )
                .hint(format!("weald run {name} -- git status")))
            }
        }
    }

    /// The same as the user of this repository.
    pub(super) fn commit_first(
        &self,
        tree: &Tree,
        scope: CommitScope,
        message: &str,
    ) -> Result<Vec<String>, LandError> {
        let identity = self.committer()?;
        let request = CommitRequest {
            scope,
            message,
            identity: &identity,
        };
        let left_out = self.commit_changes(tree, &request)?;
        if !left_out.is_empty() {
            self.engine.notice(format!(
                "not committed, because it is protected and new: {}; it stays in {} (to land it: {})",
                left_out.join(", "),
                tree.name,
                by_hand(&tree.name)
            ));
        }
        Ok(left_out)
    }

    /// Commits what a tree holds; a failing hook leaves it as it was.
    pub fn commit_work(
        &self,
        name: &str,
        scope: CommitScope,
        message: &str,
    ) -> Result<(), LandError> {
        self.commit_first(&self.named(Some(name))?, scope, message)
            .map(drop)
    }
}

/// How a person lands what weald does not commit by itself.
pub(super) fn by_hand(name: &TreeName) -> String {
    format!(
        "weald run {name} -- sh -c 'git add -A && git commit -m MESSAGE', then weald approve {name} and weald land {name}"
    )
}
