//! What of a tree landed before: after a squash git knows nothing of it, and would see the same change twice.

use std::path::Path;

use weald_core::landing::LandingStatus;
use weald_core::tree::Tree;
use weald_git::{Git, GitError};

use crate::LandError;
use crate::Landings;

impl Landings<'_> {
    /// The head that landed last and that `head` goes on from, if the target has not come into the tree since.
    pub(super) fn landed_base(
        &self,
        repository: &Path,
        tree: &Tree,
        head: &str,
        tip: &str,
    ) -> Result<Option<String>, LandError> {
        let recorded = self.trees.engine.look(|tx| tx.landings_of(&tree.name))?;
        let counts = recorded.into_iter().rev().filter(|one| {
            one.tree_id == tree.id
                && one.target == tree.target
                && one.status == LandingStatus::Landed
                && one.reverts.is_none()
                && one.reverted_by.is_none()
        });
        for one in counts {
            let Some(landed) = one.new_tip else { continue };
            if !contains(repository, head, &one.head)? || !contains(repository, tip, &landed)? {
                continue;
            }
            // Then git knows of it.
            let is_in = contains(repository, head, &landed)?;
            return Ok(Some(one.head).filter(|_| !is_in));
        }
        Ok(None)
    }
}

fn contains(repository: &Path, tip: &str, commit: &str) -> Result<bool, GitError> {
    if tip == commit {
        return Ok(true);
    }
    let asked = Git::new(repository, "merge-base")
        .args(["--is-ancestor", commit, tip])
        .output()?;
    Ok(asked.status.success())
}
