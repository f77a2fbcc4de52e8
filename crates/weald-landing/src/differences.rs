//! What a landing changed.

use weald_core::id::LandingId;

use super::LandError;
use crate::Landings;
use weald_trees::inside::{DiffStyle, InsideError, between};
use weald_trees::{DIFF_LIMIT, Diff, TreeError};

impl Landings<'_> {
    /// Tells what a landing changed on its target. Both commits are the host's own, in the vault.
    pub fn landing_diff(&self, id: LandingId, style: DiffStyle) -> Result<Diff, LandError> {
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
        let unreadable = |error: InsideError| TreeError::Unreadable {
            name: format!("landing {id}"),
            why: error.to_string(),
        };
        Ok(between(git, [from, to], style, DIFF_LIMIT).map_err(unreadable)?)
    }
}
