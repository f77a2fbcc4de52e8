//! An agent's output: kept in a log that never grows beyond its limit, read line by line for the driver.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard};

use weald_core::Timestamp;
use weald_core::agent::{Barrier, Usage};

use super::Activity;
use super::drivers::{Driver, Observed};
use weald_control::agents::{Entry, Event};
use weald_control::files::open_own;

/// The longest line that a driver sees; what is longer is kept in the log and no more.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// How much of a line beside the stream stands in a transcript, in characters.
const LONGEST_BESIDE: usize = 2000;

/// How much of a text stands in an activity.
const SHORT: usize = 200;

/// News from a stream that the supervisor acts on.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    /// The agent's own conversation.
    Conversation(String),
    Usage(Usage),
    /// A message of a model used this.
    Message {
        id: String,
        model: String,
        usage: Usage,
    },
    /// Its conversation used this of a model.
    Model {
        model: String,
        usage: Usage,
    },
    /// Its provider does not serve it.
    Barred(Barrier),
    /// It says that it is done: its input can be closed.
    Finished {
        ok: bool,
        text: String,
    },
    /// It is no success, whatever it says.
    Unfit(String),
}

/// A log in two halves, of which the older one is dropped.
pub(super) struct Log {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
}

impl Log {
    /// Opens the log of this name in a folder; `limit` holds for both halves together.
    pub(super) fn open(folder: &Path, name: &str, limit: u64) -> io::Result<Self> {
        let path = folder.join(name);
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
            fs::rename(&self.path, older(&self.path))?;
            self.file = appending(&self.path)?;
            self.size = 0;
        }
        let room = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let kept = &bytes[bytes.len().saturating_sub(room)..];
        self.size += kept.len() as u64;
        self.file.write_all(kept)
    }
}

/// Where the older half of a log is.
pub fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    open_own(options.create(true).append(true).mode(0o600), path)
}

/// Everything that an agent's streams end up in.
pub(super) struct Output<'o> {
    kept: Mutex<Kept>,
    driver: &'o dyn Driver,
    news: Sender<News>,
    now: &'o (dyn Fn() -> Timestamp + Sync),
}

struct Kept {
    log: Log,
    /// What the stream means; absent for a driver without one.
    transcript: Option<Log>,
    activity: Activity,
    /// What it said last, in full.
    last_said: String,
}

impl<'o> Output<'o> {
    pub(super) fn new(
        log: Log,
        transcript: Option<Log>,
        driver: &'o dyn Driver,
        news: Sender<News>,
        now: &'o (dyn Fn() -> Timestamp + Sync),
    ) -> Self {
        Self {
            kept: Mutex::new(Kept {
                log,
                transcript,
                activity: Activity::default(),
                last_said: String::new(),
            }),
            driver,
            news,
            now,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nobody panics with it")
    }

    /// What it did last.
    pub(super) fn activity(&self) -> Activity {
        self.kept().activity.clone()
    }

    /// Notes that its tree changed.
    pub(super) fn changed(&self, at: Timestamp) {
        let mut kept = self.kept();
        kept.activity.last_change = Some(at);
        kept.activity.last_activity = Some(at);
    }

    /// Notes something that its stream does not have: what it was given.
    pub(super) fn note(&self, event: Event) {
        let now = (self.now)();
        self.kept().note(now, event);
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
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                if line.len() + part.len() <= LONGEST_LINE {
                    line.extend_from_slice(part);
                } else {
                    is_cut = true;
                }
                if part.ends_with(b"\n") {
                    if !is_cut {
                        self.observe(&line, speaks);
                    }
                    (line, is_cut) = (Vec::new(), false);
                }
            }
        }
        if !line.is_empty() && !is_cut {
            self.observe(&line, speaks);
        }
    }

    /// Notes that it wrote on its terminal; what scrolls off there is kept.
    pub(super) fn wrote(&self, at: Timestamp) {
        let mut kept = self.kept();
        kept.activity.last_output = Some(at);
        kept.activity.last_activity = Some(at);
    }

    /// Keeps output in the log.
    pub(super) fn keep(&self, bytes: &[u8]) {
        let now = (self.now)();
        let mut kept = self.kept();
        // A full disk must not end the agent.
        let _ = kept.log.write(bytes);
        kept.activity.output_bytes += bytes.len() as u64;
        kept.activity.last_output = Some(now);
        kept.activity.last_activity = Some(now);
    }

    fn observe(&self, line: &[u8], speaks: bool) {
        let observed = match speaks {
            true => self.driver.read(line),
            false => vec![Observed::Raw],
        };
        for observed in observed {
            let now = (self.now)();
            let mut kept = self.kept();
            kept.observe(&observed);
            if let Some(event) = event_of(&observed, line) {
                kept.note(now, event);
            }
            drop(kept);
            let news = match observed {
                Observed::Conversation(id) => News::Conversation(id),
                Observed::Usage(usage) => News::Usage(usage),
                Observed::Message { id, model, usage } => News::Message { id, model, usage },
                Observed::Model { model, usage } => News::Model { model, usage },
                Observed::Barred(barrier) => News::Barred(barrier),
                Observed::Finished { ok, text } => News::Finished { ok, text },
                Observed::Unfit(why) => News::Unfit(why),
                _ => continue,
            };
            // Nobody listens once the run is over.
            let _ = self.news.send(news);
        }
    }
}

impl Kept {
    fn observe(&mut self, observed: &Observed) {
        match observed {
            Observed::Called(called) => {
                self.activity.actions += 1;
                self.activity.last_action = one_line(&called.line());
            }
            Observed::Said(text) => self.activity.last_said = one_line(text),
            _ => {}
        }
    }

    fn note(&mut self, at: Timestamp, event: Event) {
        let Some(transcript) = &mut self.transcript else {
            return;
        };
        match &event {
            Event::Said { text, within: None } => self.last_said.clone_from(text),
            // An end repeats the last words as a rule.
            Event::Ended { ok: true, text } if *text == self.last_said || text.is_empty() => return,
            _ => {}
        }
        let entry = Entry {
            at: Some(at),
            event,
        };
        let _ = transcript.write(&entry.line());
    }
}

/// What a transcript has of something observed in a line.
pub fn event_of(observed: &Observed, line: &[u8]) -> Option<Event> {
    Some(match observed.clone() {
        Observed::Said(text) => Event::Said { text, within: None },
        Observed::Within { within, said } => Event::Said {
            text: said,
            within: Some(within),
        },
        Observed::Called(called) => Event::Call {
            id: called.id,
            tool: called.tool,
            detail: called.detail,
            within: called.within,
        },
        Observed::Returned(returned) => Event::Result {
            id: returned.id,
            ok: returned.ok,
            code: returned.code,
            text: returned.text,
        },
        Observed::Complained(text) => Event::Output { text },
        Observed::Finished { ok, text } => Event::Ended { ok, text },
        // Not of the stream: what it says beside it, of errors mostly.
        Observed::Raw if !line.starts_with(b"{") => {
            let text = String::from_utf8_lossy(line);
            let text: String = text.trim_end().chars().take(LONGEST_BESIDE).collect();
            if text.is_empty() {
                return None;
            }
            Event::Output { text }
        }
        _ => return None,
    })
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
    use crate::LOG_FILE;

    #[test]
    fn s5_a_log_keeps_its_newest_half_and_stays_below_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), LOG_FILE, 2000).unwrap();
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
