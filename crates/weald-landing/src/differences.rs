//! What a landing changed.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use weald_core::id::LandingId;
use weald_git::{Git, GitError};

use super::LandError;
use super::approval::Review;
use crate::Landings;
use weald_trees::inside::{DiffForm, InsideError, between};
use weald_trees::{DIFF_LIMIT, Diff, TreeError};

/// Two commits, and what differs between them as git lists it.
pub(super) type Difference = (String, String, Arc<[u8]>);

/// What differs between two commits: `diff-tree --raw`.
pub(super) fn raw_difference(git: Git, old: &str, new: &str) -> Result<Arc<[u8]>, GitError> {
    let args = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", old, new];
    Ok(git.args(args).run()?.into())
}

impl Landings<'_> {
    /// What differs between two commits of the repository at `place`. A landing needs it in several places; git is asked
    /// once.
    pub(super) fn difference(
        &self,
        place: &Path,
        old: &str,
        new: &str,
    ) -> Result<Arc<[u8]>, GitError> {
        let known = self.known_difference.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        match known.as_ref() {
            Some((from, to, raw)) if (from.as_str(), to.as_str()) == (old, new) => Ok(raw.clone()),
            _ => {
                let raw = raw_difference(Git::new(place, "diff-tree"), old, new)?;
                *known = Some((old.to_owned(), new.to_owned(), raw.clone()));
                Ok(raw)
            }
        }
    }

    /// Tells what a landing changed on its target. Both commits are the host's own, in the vault.
    pub fn landing_diff(
        &self,
        id: LandingId,
        form: impl Into<DiffForm>,
    ) -> Result<Diff, LandError> {
        let landing = self.landing(id)?;
        let from = landing.onto.as_ref().or(landing.old_tip.as_ref());
        let (Some(from), Some(to)) = (from, &landing.new_tip) else {
            // It did not get so far as to change anything.
            return Ok(Diff {
                files: Vec::new(),
                text: Some(String::new()),
                truncated: false,
            });
        };
        let git = self.trees.vault().git("diff");
        Ok(between(git, [from, to], &form.into(), DIFF_LIMIT)
            .map_err(|error| unreadable(format!("landing {id}"), &error))?)
    }

    /// Tells what the commits change that a person may approve: exactly those, whatever the tree holds by now.
    pub fn review_diff(
        &self,
        review: &Review,
        form: impl Into<DiffForm>,
    ) -> Result<Diff, LandError> {
        let git = Git::new(&self.trees.comparing(&review.tree), "diff");
        let range = [review.fork.as_str(), &review.head];
        Ok(between(git, range, &form.into(), DIFF_LIMIT)
            .map_err(|error| unreadable(review.tree.name.to_string(), &error))?)
    }
}

fn unreadable(name: String, error: &InsideError) -> TreeError {
    TreeError::Unreadable {
        name,
        why: error.to_string(),
    }
}
