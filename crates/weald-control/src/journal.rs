//! The journal: a JSONL copy of the log, for `tail -f` and for shipping.
//!
//! Derived: the process that commits brings it up to date afterwards, from the place its last line names, so a crash between
//! the two is made good by the next one. It only grows. A torn line (a crash while writing) is closed with a newline and
//! its event written again behind it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use weald_core::Timestamp;
use weald_core::cloud_event::CloudEvent;
use weald_core::id::Seq;
use weald_core::store::{Durability, EventFilter, EventReader, Store, StoreError};

use crate::files::open_own;

/// The journal's name in the private directory.
pub const JOURNAL_FILE: &str = "events.jsonl";

/// Events a batch: bounds memory when the journal is far behind.
const BATCH: u64 = 1_000;

/// How much of the end is read at first to find the last line.
const TAIL: u64 = 16 * 1024;

/// How long a command waits for the journal.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it looks at once before it sleeps between looks: the holder needs less time than a sleep takes.
const LOOKS: usize = 50;

const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// The journal of one repository.
pub struct Journal {
    path: PathBuf,
    source: String,
}

/// How the journal stands to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalState {
    /// It has every event.
    Current,
    Behind,
    /// It ends in the middle of a line.
    Torn,
    /// Its last event is not one of the log.
    Foreign,
    /// It can't be read.
    Broken(String),
}

#[derive(Deserialize)]
struct Place {
    sequence: Seq,
    time: Timestamp,
    #[serde(default)]
    source: String,
}

impl Journal {
    /// The journal in `private`; `source` names the repository in its lines.
    pub fn new(private: &Path, source: String) -> Self {
        Self {
            path: private.join(JOURNAL_FILE),
            source,
        }
    }

    /// Refuses a database that ends before the journal does: working on in it would fork the log and give numbers twice.
    pub fn require_newest(&self, store: &dyn Store) -> Result<(), StoreError> {
        let opened = open_own(OpenOptions::new().read(true), &self.path);
        let place = opened.and_then(|mut file| last_place(&mut file));
        let Ok((Some(place), _)) = place else {
            return Ok(());
        };
        // Whoever writes commits first, so this can only be too new.
        let has = store.read()?.last_seq()?;
        match place.sequence > has {
            true => Err(StoreError::Behind {
                path: self.path.clone(),
                has,
                journal: place.sequence,
            }),
            false => Ok(()),
        }
    }

    /// Brings the journal up to date.
    pub fn catch_up(&self, store: &dyn Store, durability: Durability) -> Result<(), StoreError> {
        let failed = StoreError::file(&self.path);
        let mut options = OpenOptions::new();
        let options = options.create(true).read(true).append(true);
        let mut file = open_own(options, &self.path).map_err(&failed)?;
        lock(&file).map_err(&failed)?;
        let (last, torn) = last_place(&mut file).map_err(&failed)?;
        if let Some(place) = &last
            && !is_event(store.read()?.as_ref(), place.sequence, place.time)?
        {
            return self.set_aside();
        }
        let mut last = last.map_or(Seq(0), |place| place.sequence);
        if torn {
            file.write_all(b"\n").map_err(&failed)?;
        }
        loop {
            let filter = EventFilter::after(last, BATCH);
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
            file.write_all(&lines).map_err(&failed)?;
            last = newest;
        }
        match durability {
            Durability::Power => file.sync_data().map_err(&failed),
            Durability::Process => Ok(()),
        }
    }

    /// How it stands to the log; nothing is changed.
    pub fn state(&self, store: &dyn Store) -> Result<JournalState, StoreError> {
        let is_link = self.path.is_symlink();
        let last = || store.read()?.last_seq();
        let mut file = match self.path.metadata() {
            Err(_) if !is_link && last()? == Seq(0) => return Ok(JournalState::Current),
            Err(_) if !is_link => return Ok(JournalState::Behind),
            Ok(found) if found.is_file() && !is_link => {
                match open_own(OpenOptions::new().read(true), &self.path) {
                    Ok(file) => file,
                    Err(error) => return Ok(JournalState::Broken(error.to_string())),
                }
            }
            _ => return Ok(JournalState::Broken("it is not a regular file".to_owned())),
        };
        let (place, torn) = match last_place(&mut file) {
            Ok(found) => found,
            Err(error) => return Ok(JournalState::Broken(error.to_string())),
        };
        // An event is in the log before it is here, so the log is asked afterwards.
        let last = last()?;
        let copied = place.as_ref().map_or(Seq(0), |place| place.sequence);
        if let Some(place) = &place
            && !is_event(store.read()?.as_ref(), place.sequence, place.time)?
        {
            return Ok(JournalState::Foreign);
        }
        Ok(match (torn, copied < last) {
            (true, _) => JournalState::Torn,
            (false, true) => JournalState::Behind,
            (false, false) => JournalState::Current,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A journal whose last event the database does not know belongs to another one: it is kept under another name.
    fn set_aside(&self) -> Result<(), StoreError> {
        let mut number = 1;
        let free = loop {
            let path = self.path.with_extension(format!("jsonl.{number}"));
            match path.exists() {
                true => number += 1,
                false => break path,
            }
        };
        fs::rename(&self.path, &free).map_err(StoreError::file(&free))?;
        let why = format!(
            "it belongs to another database, so it is kept as {}",
            free.display()
        );
        Err(StoreError::Backend(why))
    }
}

/// The common directory of the repository that wrote the last line of the journal in `private`.
pub(crate) fn last_source(private: &Path) -> Option<PathBuf> {
    let mut file = open_own(OpenOptions::new().read(true), &private.join(JOURNAL_FILE)).ok()?;
    let (place, _) = last_place(&mut file).ok()?;
    path_in(&place?.source)
}

/// The path in a URI, as [`crate::place::Place::source`] writes them.
fn path_in(uri: &str) -> Option<PathBuf> {
    let mut left = uri.strip_prefix("file://")?.bytes();
    let mut path = Vec::new();
    while let Some(byte) = left.next() {
        let byte = match byte {
            b'%' => {
                let digits = [left.next()?, left.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        };
        path.push(byte);
    }
    Some(OsString::from_vec(path).into())
}

/// Whether the log has an event with this place and time.
pub(crate) fn is_event(
    read: &dyn EventReader,
    seq: Seq,
    time: Timestamp,
) -> Result<bool, StoreError> {
    let before = Seq(seq.0.saturating_sub(1));
    let filter = EventFilter::after(before, 1);
    let found = read.events(&filter)?;
    Ok(found
        .first()
        .is_some_and(|event| event.seq == seq && event.time == time))
}

/// Waits for a derived file, but not for ever: a stopped process may have it, and the change itself is committed.
pub fn lock(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    for look in 0.. {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if look < LOOKS => thread::yield_now(),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOOK_AGAIN),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other("another process holds it"))
}

/// The place of the last whole line that is an event, and whether the file ends in the middle of a line.
fn last_place(file: &mut File) -> io::Result<(Option<Place>, bool)> {
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
            Some(place) => return Ok((Some(place), torn)),
            None if start == 0 => return Ok((None, torn)),
            None => window *= 4,
        }
    }
}
