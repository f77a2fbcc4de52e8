//! Committing what a tree holds, inside its sandbox, before it lands.
//!
//! Hooks of the tree run, with everything that a run in it has, so the configured level is needed. Whatever fails leaves the tree's
//! index and HEAD as they were.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weald_core::tree::Tree;

use super::LandError;
use crate::Landings;
use crate::refusal::{Refusal, by_hand, program};
use weald_trees::inside::{CommitChanges, CommitEnd, Look};
use weald_trees::{Found, TreeView};

/// How much of what a hook said is passed on.
const SAID: usize = 2000;

/// How much longer the visit may take than the commit in it, so that what takes too long is still taken back.
const GRACE: Duration = Duration::from_secs(20);

/// Which uncommitted changes are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitScope {
    /// Those of files that git knows.
    Tracked,
    /// New files, too; ignored ones never.
    All,
}

/// What came of a commit.
#[derive(Default)]
pub(crate) struct Committed {
    /// Protected files that HEAD does not have, outermost folders first.
    pub left_out: Vec<String>,
    /// The worktree after it, if it was looked at and all of it is taken in.
    pub found: Option<(Tree, Look)>,
}

impl Landings<'_> {
    /// Commits what is wished as the user of this repository, but no protected file that HEAD does not have. A tree that is
    /// clean by `found`, a look of just now that still holds, is left alone. A failing hook leaves the index as it was.
    pub(super) fn commit_first(
        &self,
        tree: &Tree,
        wish: Option<(CommitScope, &str)>,
        found: Option<&Found>,
    ) -> Result<Committed, LandError> {
        let recorded = tree.head.as_ref().unwrap_or(&tree.base.commit);
        // Another look may have taken in more since, or somebody may have done more.
        let found = found.filter(|found| {
            found.look.head.as_ref() == Some(recorded) && self.trees.is_as_found(tree, found)
        });
        if wish.is_some() {
            self.trees.require_idle(tree)?;
        }
        let is_clean = found.is_some_and(|found| !found.look.is_changed());
        let Some((scope, message)) = wish.filter(|_| !is_clean) else {
            return Ok(Committed {
                left_out: Vec::new(),
                found: found.map(|found| (tree.clone(), found.look.clone())),
            });
        };
        let (engine, config) = (self.trees.engine, self.trees.config);
        let (name, identity) = (&tree.name, self.committer()?);
        let limit = config.commit_timeout.unsigned_abs();
        let in_words = format!("{} (commit.timeout)", config.get("commit.timeout").0);
        let job = CommitChanges {
            untracked: scope == CommitScope::All,
            message: message.to_owned(),
            identity: (identity.name, identity.mail),
            protected: config.policy_protected.to_vec(),
            limit,
            then: None,
        };
        let announcement =
            format!("committing the changes in {name}; its hooks may take {in_words}");
        let limit = limit.saturating_add(GRACE);
        let (end, found) = self.trees.commit(tree, job, limit, announcement)?;
        let left_out = match end {
            CommitEnd::Committed { left_out, hung } => {
                if let Some(hung) = hung.as_deref().map(program) {
                    engine.notice(format!(
                        "{hung} in {name} did not end within {in_words} and was stopped; the commit was made"
                    ));
                }
                left_out
            }
            CommitEnd::Nothing { left_out } => left_out,
            CommitEnd::HookFailed { hook, said } => {
                return Err(Refusal::HookFailed(name.clone(), hook, short(&said)).into());
            }
            CommitEnd::TimedOut { hook } => {
                return Err(Refusal::HookTooSlow(name.clone(), hook, in_words).into());
            }
            CommitEnd::Refused(why) => {
                return Err(Refusal::NotCommitted(name.clone(), short(&why)).into());
            }
        };
        if !left_out.is_empty() {
            engine.notice(format!(
                "not committed, because it is protected and new: {}; it stays in {name} (to land it: {})",
                left_out.join(", "),
                by_hand(name)
            ));
        }
        Ok(Committed { left_out, found })
    }

    /// Commits what a tree holds; a failing hook leaves it as it was. Shows the tree as it is then.
    pub fn commit_work(
        &self,
        name: &str,
        wish: Option<(CommitScope, &str)>,
        found: Option<&Found>,
    ) -> Result<TreeView, LandError> {
        let tree = self.trees.named(Some(name))?;
        let view = match self.commit_first(&tree, wish, found)?.found {
            // That look is remembered.
            Some((tree, look)) if found.is_some_and(|found| found.look == look) => {
                self.trees.view(tree)
            }
            Some((tree, look)) => self.trees.show(tree, look)?,
            None => self.trees.look(Some(name))?,
        };
        Ok(view)
    }
}

/// As much of what came out of a tree as is passed on.
fn short(said: &str) -> String {
    said.trim().chars().take(SAID).collect()
}
