//! Things that nobody has to wait for now, but that are done before the command ends.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Work in the background of one command. Dropping it waits for all of it.
#[derive(Default)]
pub(crate) struct Chores(Mutex<Vec<JoinHandle<()>>>);

impl Chores {
    /// Does `work` beside everything else.
    pub(crate) fn begin(&self, work: impl FnOnce() + Send + 'static) {
        let started = thread::spawn(work);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|chore| !chore.is_finished());
        all.push(started);
    }
}

impl Drop for Chores {
    fn drop(&mut self) {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for chore in all.drain(..) {
            // One that was lost left something for `doctor`.
            let _ = chore.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::Chores;

    #[test]
    fn the_end_waits_for_all_of_them() {
        let done = Arc::new(AtomicU32::new(0));
        let chores = Chores::default();
        for _ in 0..8 {
            let done = Arc::clone(&done);
            chores.begin(move || {
                std::thread::sleep(Duration::from_millis(20));
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        drop(chores);
        assert_eq!(done.load(Ordering::Relaxed), 8);
    }
}
