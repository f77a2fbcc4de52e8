//! Leaving a conflict in the target's checkout, when somebody asked for that.

use weald_core::landing::Landing;

use super::LandError;
use crate::trees::Trees;

impl Trees<'_> {
    /// Merges a landing's head into the checkout of its target as plain git does, and leaves the conflict there.
    pub(crate) fn leave_conflict(&self, _landing: &Landing) -> Result<(), LandError> {
        Err(LandError::refused(
            "unsupported",
            "leaving a conflict in the target's checkout is not there yet",
        ))
    }
}
