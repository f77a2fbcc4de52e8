//! A line on the terminal while something takes its time, with what it printed last; gone when it is over.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weald_app::progress::Stage;
use weald_app::screen::clean_line;

/// When the line first shows.
const PATIENCE: Duration = Duration::from_millis(500);

/// How much is shown of what something printed: a longer line would wrap.
const SHOWN: usize = 40;

/// Something that goes on. Dropping it takes the line away.
pub struct Progress(Option<(Sender<String>, JoinHandle<()>)>);

impl Progress {
    /// Begins; silent unless somebody watches.
    pub fn start(what: &'static str, is_watched: bool) -> Self {
        if !is_watched {
            return Self(None);
        }
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let started = Instant::now();
            let (mut next, mut newest) = (started + PATIENCE, String::new());
            loop {
                match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Ok(line) => newest = line,
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        let seconds = started.elapsed().as_secs();
                        let _ = write!(io::stderr(), "\r\x1b[K{what} … {seconds}s {newest}");
                        let _ = io::stderr().flush();
                        next += Duration::from_secs(1);
                    }
                }
            }
            if started.elapsed() >= PATIENCE {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        });
        Self(Some((sender, thread)))
    }
}

impl Stage for Progress {
    fn line(&self, text: &str) {
        if let Some((sender, _)) = &self.0 {
            let shown: String = text.chars().take(SHOWN).collect();
            let _ = sender.send(clean_line(&shown));
        }
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
