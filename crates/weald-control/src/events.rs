//! Reading the log, from the store or from a journal file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use weald_core::cloud_event::CloudEvent;
use weald_core::event::Event;
use weald_core::id::Seq;
use weald_core::store::{EventFilter, StoreError};

use crate::engine::Engine;
use crate::files::open_own;

/// How much of a journal's end [`read_journal_end`] looks at.
const END: u64 = 64 * 1024;

/// One line of a journal file.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalLine {
    Event(Box<CloudEvent>),
    /// A line that is none: torn by a crash, or written by somebody else.
    Torn {
        /// Where it begins in the file.
        offset: u64,
        text: String,
    },
}

impl Engine {
    pub fn events(&self, filter: &EventFilter) -> Result<Vec<Event>, StoreError> {
        self.look(|tx| tx.events(filter))
    }

    /// How long the log is.
    pub fn last_seq(&self) -> Result<Seq, StoreError> {
        self.look(|tx| tx.last_seq())
    }

    /// Waits until the log is longer than `after`, at most `timeout`.
    pub fn wait_for_events(&self, after: Seq, timeout: Duration) -> Result<Seq, StoreError> {
        self.store().wait(after, timeout)
    }
}

/// Reads a journal file line by line. A line that is no event is given as such; nothing stops the reading.
pub fn read_journal(path: &Path) -> io::Result<impl Iterator<Item = io::Result<JournalLine>>> {
    Ok(lines(BufReader::new(File::open(path)?), 0))
}

/// The same for the last lines of a file of any size.
pub fn read_journal_end(path: &Path) -> io::Result<impl Iterator<Item = io::Result<JournalLine>>> {
    let mut file = BufReader::new(open_own(OpenOptions::new().read(true), path)?);
    let mut offset = file.get_ref().metadata()?.len().saturating_sub(END);
    if offset > 0 {
        file.seek(SeekFrom::Start(offset))?;
        // The first line is cut by the window, not torn.
        offset += file.read_until(b'\n', &mut Vec::new())? as u64;
    }
    Ok(lines(file, offset))
}

fn lines(reader: impl BufRead, mut offset: u64) -> impl Iterator<Item = io::Result<JournalLine>> {
    reader.split(b'\n').map(move |bytes| {
        let bytes = bytes?;
        let start = offset;
        offset += bytes.len() as u64 + 1;
        Ok(match serde_json::from_slice(&bytes) {
            Ok(event) => JournalLine::Event(Box::new(event)),
            Err(_) => {
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
                JournalLine::Torn {
                    offset: start,
                    text,
                }
            }
        })
    })
}
