//! The journal: a JSONL copy of the log, for `tail -f` and for shipping.
//!
//! Derived: whoever commits brings it up to date afterwards, from the place its last line names, so a crash between
//! the two is made good by the next one. It only grows. A torn line (a crash while writing) is closed with a newline and
//! its event written again behind it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use weald_core::cloud_event::CloudEvent;
use weald_core::id::Seq;
use weald_core::store::{Durability, EventFilter, Store, StoreError};

/// The journal's name in the private directory.
pub const JOURNAL_FILE: &str = "events.jsonl";

/// Events a batch: bounds memory when the journal is far behind.
const BATCH: u64 = 1_000;

/// How much of the end is read at first to find the last line.
const TAIL: u64 = 16 * 1024;

/// The journal of one repository.
pub struct Journal {
    path: PathBuf,
    source: String,
}

#[derive(Deserialize)]
struct Place {
    sequence: Seq,
}

impl Journal {
    /// The journal in `private`; `source` names the repository in its lines.
    pub fn new(private: &Path, source: String) -> Self {
        Self {
            path: private.join(JOURNAL_FILE),
            source,
        }
    }

    /// Brings the journal up to date.
    pub fn catch_up(&self, store: &dyn Store, durability: Durability) -> Result<(), StoreError> {
        let failed = |source| StoreError::File {
            path: self.path.clone(),
            source,
        };
        let opened = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&self.path);
        let mut file = opened.map_err(failed)?;
        file.lock().map_err(failed)?;
        let (mut last, torn) = last_place(&mut file).map_err(failed)?;
        if torn {
            file.write_all(b"\n").map_err(failed)?;
        }
        loop {
            let filter = EventFilter {
                since: Some(last),
                limit: Some(BATCH),
                ..EventFilter::default()
            };
            let events = store.read()?.events(&filter)?;
            let Some(newest) = events.last().map(|event| event.seq) else {
                break;
            };
            let mut lines = Vec::new();
            for event in events {
                let wrapped = CloudEvent::wrap(event, &self.source);
                serde_json::to_writer(&mut lines, &wrapped).expect("events have text keys");
                lines.push(b'\n');
            }
            file.write_all(&lines).map_err(failed)?;
            last = newest;
        }
        match durability {
            Durability::Power => file.sync_data().map_err(failed),
            Durability::Process => Ok(()),
        }
    }
}

/// The place of the last whole line that is an event, and whether the file ends in the middle of a line.
fn last_place(file: &mut File) -> io::Result<(Seq, bool)> {
    let length = file.metadata()?.len();
    let mut window = TAIL;
    loop {
        let start = length.saturating_sub(window);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        Read::take(&*file, length - start).read_to_end(&mut tail)?;
        let torn = tail.last().is_some_and(|byte| *byte != b'\n');
        let mut lines: Vec<_> = tail.split(|byte| *byte == b'\n').collect();
        lines.pop();
        if start > 0 && !lines.is_empty() {
            lines.remove(0);
        }
        let found = lines
            .iter()
            .rev()
            .find_map(|line| serde_json::from_slice::<Place>(line).ok());
        match found {
            Some(place) => return Ok((place.sequence, torn)),
            None if start == 0 => return Ok((Seq(0), torn)),
            None => window *= 4,
        }
    }
}
