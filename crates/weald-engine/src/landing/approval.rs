//! A person's approval, bound to the exact head.

use weald_core::tree::{Approval, Tree};

use super::LandError;
use crate::trees::Trees;

impl Trees<'_> {
    /// Approves what a tree holds now.
    pub fn approve_landing(&self, _name: Option<&str>) -> Result<(Tree, Approval), LandError> {
        todo!()
    }

    /// Refuses unless everybody who must agree to `head` has agreed; `old_tip` and `candidate` say what it changes.
    pub(crate) fn require_approval(
        &self,
        _tree: &Tree,
        _head: &str,
        _old_tip: &str,
        _candidate: &str,
    ) -> Result<(), LandError> {
        Ok(())
    }
}
