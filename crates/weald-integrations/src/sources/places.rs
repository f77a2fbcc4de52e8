//! How far each tracker is up to date, and up to where it was shown what went wrong: `source.json` of the private directory.
//!
//! Every tracker has a place of its own, so going to another one and back reports nothing again. What can't be read begins
//! at the newest event: to report everything again would undo what people did over there since.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::id::Seq;
use weald_core::source::Tracker;

use weald_control::files;
use weald_control::journal;

const PLACES_FILE: &str = "source.json";

/// Held while the file is changed, which takes no time.
const PLACES_LOCK: &str = "source.json.lock";

/// Held while a tracker is updated.
const UPDATE_LOCK: &str = "source.lock";

/// Where one tracker is in the log.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Place {
    /// Up to here it knows everything.
    pub told: Seq,
    /// The last time that an update failed.
    pub failed: Seq,
    /// Up to here somebody was shown what failed.
    pub shown: Seq,
}

impl Place {
    fn at(newest: Seq) -> Self {
        Self {
            told: newest,
            failed: newest,
            shown: newest,
        }
    }

    /// Whether something failed that nobody was shown.
    pub fn has_unshown(self) -> bool {
        self.failed > self.shown
    }
}

type Places = BTreeMap<String, Place>;

/// The place of a tracker, if it is known.
pub(super) fn place(private: &Path, tracker: Tracker) -> Option<Place> {
    read(private).get(tracker.as_str()).copied()
}

/// Makes sure that there is a place, by default at the newest event. One beyond it is of another log.
pub(super) fn begin(private: &Path, tracker: Tracker, newest: Seq) -> io::Result<()> {
    let is_known = |place: Option<Place>| place.is_some_and(|place| place.told <= newest);
    if is_known(place(private, tracker)) {
        return Ok(());
    }
    edit(private, |places| {
        let name = tracker.as_str();
        if !is_known(places.get(name).copied()) {
            places.insert(name.to_owned(), Place::at(newest));
        }
    })
}

/// Changes the place of a tracker, and gives what it was. Without one nothing changes.
pub(super) fn change(
    private: &Path,
    tracker: Tracker,
    change: impl FnOnce(&mut Place),
) -> io::Result<Option<Place>> {
    edit(private, |places| {
        let place = places.get_mut(tracker.as_str())?;
        let before = *place;
        change(place);
        Some(before)
    })
}

/// The right to update, for as long as it is held; none while another process has it.
pub(super) fn alone(private: &Path) -> io::Result<Option<File>> {
    let lock = open(private, UPDATE_LOCK)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

fn edit<T>(private: &Path, change: impl FnOnce(&mut Places) -> T) -> io::Result<T> {
    let lock = open(private, PLACES_LOCK)?;
    journal::lock(&lock)?;
    let mut places = read(private);
    let done = change(&mut places);
    let text = serde_json::to_string(&places).expect("plain fields");
    files::replace(&private.join(PLACES_FILE), &text)?;
    Ok(done)
}

fn open(private: &Path, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).write(true).truncate(false);
    files::open_own(options, &private.join(name))
}

fn read(private: &Path) -> Places {
    let text = files::read_small(&private.join(PLACES_FILE), 4096);
    let text = text.ok().flatten().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}
