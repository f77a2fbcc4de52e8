//! Output with a bound: what comes out of a run is passed on up to a limit, and drained after it.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// How much may still be passed on, by all streams of a run together.
pub struct Budget {
    left: AtomicU64,
    cut: AtomicBool,
}

impl Budget {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(bytes),
            cut: AtomicBool::new(false),
        })
    }

    /// True when something was left out.
    pub fn was_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Takes up to `wanted` bytes.
    fn take(&self, wanted: usize) -> usize {
        let spend = |left: u64| Some(left.saturating_sub(wanted as u64));
        let before = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend)
            .unwrap_or(0);
        let taken = before.min(wanted as u64) as usize;
        if taken < wanted {
            self.cut.store(true, Ordering::Relaxed);
        }
        taken
    }
}

/// Passes a stream on, as far as the budget goes. What is over is read and dropped, so that its writer is not blocked.
pub fn pass_on(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    budget: &Arc<Budget>,
) -> JoinHandle<io::Result<()>> {
    let budget = Arc::clone(budget);
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        loop {
            match from.read(&mut buffer)? {
                0 => return to.flush(),
                read => to.write_all(&buffer[..budget.take(read)])?,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_streams_share_one_budget() {
        let budget = Budget::new(150);
        for _ in 0..2 {
            pass_on(io::repeat(b'x').take(100), io::sink(), &budget)
                .join()
                .unwrap()
                .unwrap();
        }
        assert!(budget.was_cut());
        assert_eq!(budget.take(1), 0);
        let roomy = Budget::new(200);
        pass_on(io::repeat(b'x').take(200), io::sink(), &roomy)
            .join()
            .unwrap()
            .unwrap();
        assert!(!roomy.was_cut());
    }
}
