//! Committing what a tree holds, inside its sandbox, before it lands.
//!
//! Hooks of the tree run, so level full is needed. Whatever fails leaves the tree's index and HEAD as they were.

use std::time::Duration;

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
    /// Commits the changes of a tree; false if there are none. A failing hook leaves its index as it was.
    pub(crate) fn commit_changes(
        &self,
        tree: &Tree,
        request: &CommitRequest<'_>,
    ) -> Result<bool, LandError> {
        let name = tree.name.as_str();
        let site = self.site(tree)?;
        self.require_idle(tree)?;
        let limit = self.config.duration("gate.timeout").unsigned_abs();
        let job = Job::Commit(CommitWish {
            untracked: request.scope == CommitScope::All,
            message: request.message.to_owned(),
            identity: (request.identity.name.clone(), request.identity.mail.clone()),
            limit,
        });
        let reply = self.do_inside_fully(name, &site, job, limit.saturating_add(GRACE))?;
        match reply.outcome.as_deref() {
            Some("committed") => Ok(true),
            Some("nothing") => Ok(false),
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
}
