//! An agent's log as it grows: its stream as the driver understands it, anything else as it came.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use weald_core::agent::AgentId;

use crate::Ground;
use crate::agents::drivers::{Driver, Observed, driver_for};
use crate::screen::clean;
use crate::{Failure, LOG_FILE, agent_folder, open_own};

/// How a log is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A stream as its driver understands it, anything else as it came, with its colours.
    Told,
    /// The same without colours.
    Cleaned,
    /// Every byte, where no terminal reads it.
    Raw,
}

/// The end of an agent's log.
pub struct Tail {
    path: PathBuf,
    file: Option<(File, u64)>,
    driver: Option<Box<dyn Driver>>,
    line: Vec<u8>,
    form: Shape,
    /// Where the older half is, until it was read.
    older: Option<PathBuf>,
}

impl Tail {
    /// The log of an agent, from its beginning.
    pub fn new(ground: &Ground, id: AgentId) -> Result<Self, Failure> {
        let agent = ground.engine.agent(id)?;
        let driver = driver_for(ground.config(), Some(&agent.driver), &[]).ok();
        let driver = driver.filter(|driver| driver.has_stream());
        Ok(Self {
            path: agent_folder(&ground.place, id).join(LOG_FILE),
            file: None,
            driver,
            line: Vec::new(),
            form: Shape::Told,
            older: None,
        })
    }

    /// The same with what was put aside, without colours unless it is wanted as it came.
    pub fn whole(self, raw: bool) -> Self {
        Self {
            form: if raw { Shape::Raw } else { Shape::Cleaned },
            older: Some(self.path.with_extension("log.1")),
            ..self
        }
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
        all.append(&mut self.line);
        Ok(last_lines(&all, lines).to_vec())
    }

    /// What came since the last time.
    pub fn news(&mut self) -> Result<Vec<u8>, Failure> {
        let mut news = Vec::new();
        if let Some(older) = self.older.take()
            && let Ok(bytes) = std::fs::read(older)
        {
            news.extend(self.formed(bytes));
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
            news.extend(self.formed(bytes));
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

    /// What is shown of these bytes; the start of a line waits for its end.
    fn formed(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let is_plain = self.driver.is_none() && self.form == Shape::Told;
        if self.form == Shape::Raw || is_plain {
            return bytes;
        }
        self.line.extend(bytes);
        let whole = self.line.iter().rposition(|byte| *byte == b'\n');
        let rest = self.line.split_off(whole.map_or(0, |end| end + 1));
        let lines = std::mem::replace(&mut self.line, rest);
        match &self.driver {
            None => clean(&String::from_utf8_lossy(&lines)).into_bytes(),
            Some(driver) => {
                let lines = lines.split_inclusive(|byte| *byte == b'\n');
                let told = lines.map(|line| told(driver.as_ref(), line));
                told.collect::<String>().into_bytes()
            }
        }
    }
}

/// A line of a stream, for people.
fn told(driver: &dyn Driver, line: &[u8]) -> String {
    let mut text = String::new();
    for one in driver.read(line) {
        match one {
            Observed::Said(said) => text.push_str(&format!("{}\n", clean(&said))),
            Observed::Action(action) => text.push_str(&format!("  > {}\n", clean(&action))),
            // Not of the stream: what it says beside it, of errors mostly.
            Observed::Raw if !line.starts_with(b"{") => {
                let line = String::from_utf8_lossy(line);
                text.push_str(&format!("{}\n", clean(line.trim_end())));
            }
            _ => {}
        }
    }
    text
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
