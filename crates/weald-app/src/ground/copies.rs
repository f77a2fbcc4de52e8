//! What a command does in a copy of a repository, or in one that can only be read.

use crate::{CopyOf, Place, Standing};
use weald_core::store::StoreError;

use crate::Call;
use crate::Failure;

impl Call<'_> {
    /// Refuses a copy of a repository: its records name worktrees that are the original's.
    pub(crate) fn require_original(&self, place: &Place) -> Result<(), Failure> {
        match place.standing(self.environment.state().as_deref()) {
            Standing::Original => Ok(()),
            Standing::Copy(copy) => Err(Failure::copy(&copy)),
        }
    }

    /// Refuses a command that may change something where nothing can be written.
    pub(super) fn require_writable(&self, place: &Place) -> Result<(), Failure> {
        match !self.only_reads && place.is_read_only() {
            true => {
                let path = place.private().to_owned();
                Err(StoreError::ReadOnly { path }.into())
            }
            false => Ok(()),
        }
    }

    /// What is known of a copy, for a command that only reads; any other is refused there.
    pub(super) fn readable_copy(&self, place: &Place) -> Result<Option<CopyOf>, Failure> {
        let Standing::Copy(copy) = place.standing(self.environment.state().as_deref()) else {
            return Ok(None);
        };
        if !self.only_reads {
            return Err(Failure::copy(&copy));
        }
        self.warn(&format!(
            "{copy}; to make it a repository of its own: weald doctor --adopt"
        ));
        Ok(Some(copy))
    }
}
