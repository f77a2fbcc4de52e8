//! A line on the terminal while something takes its time; gone when it is over.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// When the line first shows.
const PATIENCE: Duration = Duration::from_millis(500);

/// Something that goes on. Dropping it takes the line away.
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Begins; silent unless somebody watches.
    pub fn start(what: &'static str, is_watched: bool) -> Self {
        if !is_watched {
            return Self(None);
        }
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let started = Instant::now();
            let mut wait = PATIENCE;
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(wait) {
                let seconds = started.elapsed().as_secs();
                let _ = write!(io::stderr(), "\r{what} … {seconds}s ");
                let _ = io::stderr().flush();
                wait = Duration::from_secs(1);
            }
            if started.elapsed() >= PATIENCE {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        });
        Self(Some((sender, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}
