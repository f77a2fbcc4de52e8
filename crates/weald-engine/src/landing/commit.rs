//! Committing what a tree holds, inside its sandbox, before it lands.

use weald_core::tree::Tree;

use super::LandError;
use crate::trees::Trees;

impl Trees<'_> {
    /// Commits the tracked changes of a tree; a failing hook leaves its index as it was.
    pub(crate) fn commit_changes(&self, _tree: &Tree, _message: &str) -> Result<(), LandError> {
        todo!()
    }
}
