//! Showing what a job in a tree says while it takes its time: a hook that tests for minutes should not look like a hang.

use std::io::{self, Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// For how long nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most that is shown: an agent chooses the hooks, and where this is shown may be a file.
const SHOWN: usize = 64 * 1024;

/// How much of what went wrong is kept.
const ERROR_LIMIT: u64 = 4096;

/// Reads a stream to its end and answers its start. Once that takes longer than a moment, the announcement is shown,
/// then what was said so far, then what comes, up to a limit.
pub(super) fn overheard(
    mut from: impl Read + Send + 'static,
    announcement: &str,
    narration: fn() -> Box<dyn Write + Send>,
) -> String {
    let (sender, pieces) = mpsc::sync_channel::<Vec<u8>>(16);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let due = Instant::now() + PATIENCE;
    let mut heard = Vec::new();
    let mut shown: Option<Box<dyn Write + Send>> = None;
    loop {
        let wait = match shown {
            None => due.saturating_duration_since(Instant::now()),
            Some(_) => Duration::MAX,
        };
        let piece = match pieces.recv_timeout(wait) {
            Ok(piece) => piece,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let before = heard.len();
        heard.extend(piece.into_iter().take(SHOWN - before));
        // With nobody left to read it, the job still goes to its end.
        if let Some(out) = &mut shown {
            let _ = out.write_all(&heard[before..]).and_then(|()| out.flush());
        } else if Instant::now() >= due {
            let out = shown.insert(narration());
            let _ = writeln!(out, "{announcement}").and_then(|()| out.write_all(&heard));
            let _ = out.flush();
        }
    }
    heard.truncate(ERROR_LIMIT as usize);
    String::from_utf8_lossy(&heard).trim().to_owned()
}

/// Reads a stream to its end and answers its start.
pub(super) fn capped_text(from: impl Read) -> String {
    let mut bytes = Vec::new();
    let mut from = from;
    let _ = (&mut from).take(ERROR_LIMIT).read_to_end(&mut bytes);
    let _ = io::copy(&mut from, &mut io::sink());
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
