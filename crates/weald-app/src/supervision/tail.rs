//! An agent's log as it grows: its transcript for people, or its output as it came.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use weald_control::agents::{Entry, TRANSCRIPT_FILE};
use weald_core::agent::AgentId;

use super::telling::{Look, Telling};
use crate::Ground;
use crate::agents::drivers::{Driver, driver_for};
use crate::agents::{event_of, older};
use crate::screen::clean;
use crate::{Failure, LOG_FILE, agent_folder, open_own};

/// How many entries are kept for an answer in JSON.
const ENTRIES: usize = 10_000;

/// How output without a stream is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// As it came, with its colours.
    Told,
    /// The same without colours.
    Cleaned,
    /// Every byte of the log, also of a stream, where no terminal reads it.
    Raw,
}

/// The end of an agent's log.
pub struct Tail {
    folder: PathBuf,
    /// What is read; unknown until the agent has written something.
    source: Option<Source>,
    driver: Option<Box<dyn Driver>>,
    line: Vec<u8>,
    form: Shape,
    /// Whether the older half is read first.
    is_whole: bool,
    telling: Telling,
    /// The newest entries that were shown.
    entries: VecDeque<Entry>,
}

struct Source {
    file: Growing,
    is_transcript: bool,
}

impl Tail {
    /// The log of an agent, from its beginning.
    pub fn new(ground: &Ground, id: AgentId) -> Result<Self, Failure> {
        let view = ground.engine.agent_view(&ground.place, id)?;
        let driver = driver_for(ground.config(), Some(&view.agent.driver), &[]).ok();
        let is_interactive = view.agent.interactive;
        let tree = match view.agent.in_main {
            true => Some(ground.place.root()),
            false => view.path,
        };
        let tree = tree.and_then(|path| path.to_str().map(str::to_owned));
        Ok(Self {
            folder: agent_folder(&ground.place, id),
            source: None,
            driver: driver.filter(|driver| driver.has_stream() && !is_interactive),
            line: Vec::new(),
            form: Shape::Told,
            is_whole: false,
            telling: Telling::new(view.agent.started_at, tree),
            entries: VecDeque::new(),
        })
    }

    /// The same with what was put aside, without colours unless it is wanted as it came.
    pub fn whole(self, raw: bool) -> Self {
        Self {
            form: if raw { Shape::Raw } else { Shape::Cleaned },
            is_whole: true,
            ..self
        }
    }

    /// The same for readers who want it in this way.
    pub fn shown(mut self, look: Look) -> Self {
        self.telling.look = look;
        self
    }

    /// Whether it shows the log as it is.
    pub fn is_raw(&self) -> bool {
        self.form == Shape::Raw
    }

    /// The last whole lines of what came since the last time; all of them without a number.
    pub fn news_of(&mut self, lines: Option<usize>) -> Result<Vec<u8>, Failure> {
        Ok(last_lines(&self.news()?, lines).to_vec())
    }

    /// The same with a line that has no end yet.
    pub fn all_of(&mut self, lines: Option<usize>) -> Result<Vec<u8>, Failure> {
        let mut all = self.news()?;
        if self.driver.is_none() || self.is_raw() {
            all.append(&mut self.line);
        }
        Ok(last_lines(&all, lines).to_vec())
    }

    /// The newest entries of those that were shown.
    pub fn entries(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries).into()
    }

    /// What came since the last time.
    pub fn news(&mut self) -> Result<Vec<u8>, Failure> {
        if self.source.is_none() {
            self.source = self.found();
        }
        let Some(source) = &mut self.source else {
            return Ok(Vec::new());
        };
        let is_transcript = source.is_transcript;
        let mut news = Vec::new();
        for bytes in source.file.news()? {
            news.extend(self.formed(bytes, is_transcript));
        }
        Ok(news)
    }

    /// The transcript, if there is one and it is wanted, or else the log.
    fn found(&self) -> Option<Source> {
        let transcript = self.folder.join(TRANSCRIPT_FILE);
        let is_transcript = self.driver.is_some() && !self.is_raw() && transcript.exists();
        let path = match is_transcript {
            true => transcript,
            false => self.folder.join(LOG_FILE),
        };
        path.exists().then(|| Source {
            file: Growing::new(path, self.is_whole),
            is_transcript,
        })
    }

    /// What is shown of these bytes; the start of a line waits for its end.
    fn formed(&mut self, bytes: Vec<u8>, is_transcript: bool) -> Vec<u8> {
        let is_plain = self.driver.is_none() && self.form == Shape::Told;
        if self.is_raw() || is_plain {
            return bytes;
        }
        self.line.extend(bytes);
        let whole = self.line.iter().rposition(|byte| *byte == b'\n');
        let rest = self.line.split_off(whole.map_or(0, |end| end + 1));
        let lines = std::mem::replace(&mut self.line, rest);
        let Some(driver) = &self.driver else {
            return clean(&String::from_utf8_lossy(&lines)).into_bytes();
        };
        let mut text = String::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let entries: Vec<Entry> = match is_transcript {
                true => Entry::read(line).into_iter().collect(),
                // An earlier version kept its stream alone.
                false => {
                    let observed = driver.read(line);
                    let events = observed.iter().filter_map(|one| event_of(one, line));
                    events.map(|event| Entry { at: None, event }).collect()
                }
            };
            for entry in entries {
                text.push_str(&self.telling.told(&entry));
                if self.entries.len() == ENTRIES {
                    self.entries.pop_front();
                }
                self.entries.push_back(entry);
            }
        }
        text.into_bytes()
    }
}

/// A log of two halves that grows.
struct Growing {
    path: PathBuf,
    file: Option<(File, u64)>,
    /// Where the older half is, until it was read.
    older: Option<PathBuf>,
}

impl Growing {
    fn new(path: PathBuf, is_whole: bool) -> Self {
        Self {
            older: is_whole.then(|| older(&path)),
            path,
            file: None,
        }
    }

    /// What came since the last time, piece by piece.
    fn news(&mut self) -> Result<Vec<Vec<u8>>, Failure> {
        let mut news = Vec::new();
        if let Some(older) = self.older.take()
            && let Ok(bytes) = std::fs::read(older)
        {
            news.push(bytes);
        }
        loop {
            if self.file.is_none() {
                let Ok(file) = open_own(OpenOptions::new().read(true), &self.path) else {
                    return Ok(news);
                };
                let number = file.metadata()?.ino();
                self.file = Some((file, number));
            }
            let Some((file, number)) = &mut self.file else {
                return Ok(news);
            };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let is_current = std::fs::metadata(&self.path).is_ok_and(|now| now.ino() == *number);
            news.push(bytes);
            if is_current {
                return Ok(news);
            }
            // It was put aside for a new one.
            self.file = None;
            if !self.path.exists() {
                return Ok(news);
            }
        }
    }
}

fn last_lines(bytes: &[u8], lines: Option<usize>) -> &[u8] {
    let Some(lines) = lines else { return bytes };
    let ends = bytes
        .iter()
        .enumerate()
        .rev()
        .skip_while(|(place, _)| *place + 1 == bytes.len())
        .filter(|(_, byte)| **byte == b'\n');
    match (
        lines,
        ends.map(|(place, _)| place).nth(lines.saturating_sub(1)),
    ) {
        (0, _) => &[],
        (_, Some(place)) => &bytes[place + 1..],
        (_, None) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_are_counted_from_the_end() {
        let all = b"one\ntwo\nthree\n";
        assert_eq!(last_lines(all, None), all);
        assert_eq!(last_lines(all, Some(2)), b"two\nthree\n");
        assert_eq!(last_lines(all, Some(9)), all);
        assert_eq!(last_lines(all, Some(0)), b"");
        assert_eq!(last_lines(b"one\ntwo", Some(1)), b"two");
        assert_eq!(last_lines(b"", Some(3)), b"");
    }
}
