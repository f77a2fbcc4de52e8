//! A process that is asked to end while it waits or tests takes its own landings out of the queue. What is being moved goes
//! to its end first.

use weald_core::id::LandingId;
use weald_core::queue::QueueHolder;
use weald_core::session::ProcessState;

use super::LandError;
use crate::Landings;

impl Landings<'_> {
    /// Refuses to begin anything more once the end was asked for.
    pub(super) fn go_on(&self) -> Result<(), LandError> {
        match self.trees.host.cancel.asked() {
            None => Ok(()),
            Some(signal) => Err(LandError::Interrupted(signal)),
        }
    }

    /// Takes those out of the queue that still wait or are tested; answers how many.
    pub fn withdraw(&self, ids: &[LandingId]) -> Result<usize, LandError> {
        let mut count = 0;
        for id in ids {
            match self.drop_landing(*id) {
                Ok(_) => count += 1,
                // It has ended, or another process moves it.
                Err(LandError::Rule(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Whether whoever holds the queue is proven gone: then nobody works it.
    pub fn is_gone(&self, holder: &QueueHolder) -> bool {
        self.trees.engine.processes.state(&holder.process) == ProcessState::Gone
    }
}
