//! An agent's output: kept in a log that never grows beyond its limit, read line by line for the driver.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::Sender;

use weald_core::Timestamp;
use weald_core::agent::Usage;

use super::drivers::{Driver, Observed};
use super::{Activity, LOG_FILE};
use weald_control::files::open_own;

/// The longest line that a driver sees; what is longer is kept in the log and no more.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// How much of a text stands in an activity.
const SHORT: usize = 200;

/// News from a stream that the supervisor acts on.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    /// The agent's own conversation.
    Conversation(String),
    Usage(Usage),
    /// It says that it is done: its input can be closed.
    Finished {
        ok: bool,
        text: String,
    },
}

/// A log in two halves, of which the older one is dropped.
pub(super) struct Log {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
}

impl Log {
    /// Opens the log of a folder; `limit` holds for both halves together.
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        let path = folder.join(LOG_FILE);
        let file = appending(&path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path,
            file,
            size,
            limit: limit / 2,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.size + bytes.len() as u64 > self.limit && self.size > 0 {
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
            self.file = appending(&self.path)?;
            self.size = 0;
        }
        let room = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let kept = &bytes[bytes.len().saturating_sub(room)..];
        self.size += kept.len() as u64;
        self.file.write_all(kept)
    }
}

fn appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    open_own(options.create(true).append(true).mode(0o600), path)
}

/// Everything that an agent's streams end up in.
pub(super) struct Output<'o> {
    log: Mutex<(Log, Activity)>,
    driver: &'o dyn Driver,
    news: Sender<News>,
    now: &'o (dyn Fn() -> Timestamp + Sync),
}

impl<'o> Output<'o> {
    pub(super) fn new(
        log: Log,
        driver: &'o dyn Driver,
        news: Sender<News>,
        now: &'o (dyn Fn() -> Timestamp + Sync),
    ) -> Self {
        Self {
            log: Mutex::new((log, Activity::default())),
            driver,
            news,
            now,
        }
    }

    /// What it did last.
    pub(super) fn activity(&self) -> Activity {
        self.log.lock().expect("nobody panics with it").1.clone()
    }

    /// Notes that its tree changed.
    pub(super) fn changed(&self, at: Timestamp) {
        let mut locked = self.log.lock().expect("nobody panics with it");
        locked.1.last_change = Some(at);
        locked.1.last_activity = Some(at);
    }

    /// Reads a stream to its end. `speaks` says whether its lines are the driver's.
    pub(super) fn drain(&self, mut stream: impl Read, speaks: bool) {
        let mut buffer = vec![0; 16 * 1024];
        let mut line: Vec<u8> = Vec::new();
        let mut is_cut = false;
        while let Ok(count) = stream.read(&mut buffer) {
            if count == 0 {
                break;
            }
            let bytes = &buffer[..count];
            self.keep(bytes);
            if !speaks {
                continue;
            }
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                if line.len() + part.len() <= LONGEST_LINE {
                    line.extend_from_slice(part);
                } else {
                    is_cut = true;
                }
                if part.ends_with(b"\n") {
                    if !is_cut {
                        self.observe(&line);
                    }
                    (line, is_cut) = (Vec::new(), false);
                }
            }
        }
        if !line.is_empty() && !is_cut {
            self.observe(&line);
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let now = (self.now)();
        let mut locked = self.log.lock().expect("nobody panics with it");
        let (log, activity) = &mut *locked;
        // A full disk must not end the agent.
        let _ = log.write(bytes);
        activity.output_bytes += bytes.len() as u64;
        activity.last_output = Some(now);
        activity.last_activity = Some(now);
    }

    fn observe(&self, line: &[u8]) {
        for observed in self.driver.read(line) {
            let mut locked = self.log.lock().expect("nobody panics with it");
            let activity = &mut locked.1;
            let news = match observed {
                Observed::Action(text) => {
                    activity.actions += 1;
                    activity.last_action = one_line(&text);
                    None
                }
                Observed::Said(text) => {
                    activity.last_said = one_line(&text);
                    None
                }
                Observed::Conversation(id) => Some(News::Conversation(id)),
                Observed::Usage(usage) => Some(News::Usage(usage)),
                Observed::Finished { ok, text } => Some(News::Finished { ok, text }),
                Observed::Raw => None,
            };
            drop(locked);
            if let Some(news) = news {
                // Nobody listens once the run is over.
                let _ = self.news.send(news);
            }
        }
    }
}

fn one_line(text: &str) -> String {
    // What a terminal would obey is replaced where it is shown.
    let line = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c });
    line.take(SHORT).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_a_log_keeps_its_newest_half_and_stays_below_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), 2000).unwrap();
        for number in 0..100 {
            log.write(format!("{number:049}\n").as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let (old, new) = (read("output.log.1"), read(LOG_FILE));
        assert!(old.len() + new.len() <= 2000);
        assert!(new.ends_with(&format!("{:049}\n", 99)));
        log.write(&[b'x'; 10_000]).unwrap();
        assert!(read(LOG_FILE).len() <= 1000);
    }
}
