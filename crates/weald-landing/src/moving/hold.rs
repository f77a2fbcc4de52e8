//! Holding a target still: for a landing that somebody outran again and again.
//!
//! Commits in the checkout of the target need its index; while a landing has that, the target stays where it is.

use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingStatus};

use super::super::LandError;
use super::checkout::Checkout;
use super::index_lock::{self, IndexLock};
use crate::Landings;

/// The checkout of a target is held until this is dropped, or until the landing it is for has moved it.
#[derive(Debug)]
pub(crate) struct TargetHold {
    _lock: IndexLock,
}

impl Landings<'_> {
    /// Lets nobody commit in the checkout of `target`; `None` if it is checked out nowhere. Only for as long as a merge takes.
    pub(crate) fn hold_target(
        &self,
        landing: LandingId,
        target: &str,
    ) -> Result<Option<TargetHold>, LandError> {
        if self.sealed_on(target)?.is_some() {
            return Ok(None);
        }
        let checkout = self.checkout_of(target)?;
        let lock = checkout.map(|checkout| self.lock_index(&checkout, landing));
        Ok(lock.transpose()?.map(|_lock| TargetHold { _lock }))
    }

    /// Takes the index of a checkout. Only who works the queue makes such a lock, and that is this process: one of another
    /// landing that is not being moved, or one that another process made for this landing, is left over.
    pub(super) fn lock_index(
        &self,
        checkout: &Checkout,
        landing: LandingId,
    ) -> Result<IndexLock, LandError> {
        if let Some(holder) = index_lock::holder(&checkout.git_dir)
            && !index_lock::is_own(&checkout.git_dir, landing)
        {
            let is_its = |open: &Landing| open.id == holder && open.status == LandingStatus::Moving;
            if holder == landing || !self.queue()?.open.iter().any(is_its) {
                return IndexLock::take_over(&checkout.git_dir, landing);
            }
        }
        IndexLock::take(&checkout.git_dir, landing, self.lock_wait())
    }
}
