//! Seeding an agent's private state with copies of the user's own.
//!
//! The private folder was written by an agent before, so the host writes there only through a [`Door`]: no link is
//! followed, and whatever lies in the way is replaced or refused. Files are copied anew at each start; a folder once,
//! because an agent may have added to it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use weald_git::Door;

use super::{Brief, DriverError};
use weald_control::files::read_small_bytes;

/// The largest file that is copied.
const FILE_LIMIT: u64 = 16 << 20;

/// How many files of a folder are copied, and how deep it is looked into.
const FOLDER_FILES: usize = 2000;
const FOLDER_DEPTH: usize = 8;

/// How much of a folder is copied.
const FOLDER_BYTES: u64 = 64 << 20;

/// Who may read a copy.
const OWN: u32 = 0o600;
const OWN_PROGRAM: u32 = 0o700;

/// From the user's folder into a private one.
pub(super) struct Seed<'a> {
    driver: &'static str,
    from: Option<PathBuf>,
    home: &'a Path,
    door: Door,
    notes: Vec<String>,
}

/// How much of a folder may still be copied.
struct Room {
    files: usize,
    bytes: u64,
    is_short: bool,
}

impl<'a> Seed<'a> {
    /// From the folder that `variable` names, else from `folder` in the user's home.
    pub(super) fn open(
        driver: &'static str,
        brief: &Brief<'a>,
        variable: &str,
        folder: &str,
    ) -> Result<Self, DriverError> {
        let named = (brief.variable)(variable).filter(|path| !path.is_empty());
        let from = named
            .map(PathBuf::from)
            .or_else(|| brief.user_home.map(|home| home.join(folder)));
        let door = Door::open(brief.home).map_err(|error| DriverError::Seeding {
            driver: driver.to_owned(),
            path: brief.home.to_owned(),
            why: error.to_string(),
        })?;
        Ok(Self {
            driver,
            from: from.filter(|from| from != brief.home),
            home: brief.home,
            door,
            notes: Vec::new(),
        })
    }

    /// What could not be copied.
    pub(super) fn into_notes(self) -> Vec<String> {
        self.notes
    }

    /// Copies a file as it is now; one that the user no longer has is taken away.
    pub(super) fn file(&mut self, name: &str) -> Result<(), DriverError> {
        match self.users(name) {
            Some(bytes) => self.write(name, &bytes, OWN),
            None => self.remove(name),
        }
    }

    /// The same for one that is JSON, with a change. One that is no object is left out.
    pub(super) fn json(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), DriverError> {
        let Some(bytes) = self.users(name) else {
            return self.remove(name);
        };
        let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(&bytes) else {
            self.notes
                .push(format!("{name} is not a JSON object; it was left out"));
            return self.remove(name);
        };
        change(&mut object);
        self.write_json(name, &object)
    }

    /// Brings these fields of one of the user's files into the agent's own file.
    pub(super) fn fields(
        &mut self,
        from: &Path,
        name: &str,
        fields: &[&str],
    ) -> Result<(), DriverError> {
        let of_user = match read_small_bytes(from, FILE_LIMIT) {
            Ok(found) => found,
            Err(error) => {
                self.notes
                    .push(format!("{} was left out: {error}", from.display()));
                None
            }
        };
        let parse = |bytes: &[u8]| serde_json::from_slice::<Map<String, Value>>(bytes).ok();
        let of_user = of_user.and_then(|bytes| parse(&bytes)).unwrap_or_default();
        // An agent wrote it; whatever it is, it is at worst left behind.
        let known = self.door.read(name, FILE_LIMIT).ok();
        let mut known = known.and_then(|bytes| parse(&bytes)).unwrap_or_default();
        for field in fields {
            match of_user.get(*field) {
                Some(value) => known.insert((*field).to_owned(), value.clone()),
                None => known.shift_remove(*field),
            };
        }
        self.write_json(name, &known)
    }

    /// Copies a folder, unless there is one.
    pub(super) fn folder(&mut self, name: &str) -> Result<(), DriverError> {
        let Some(from) = self.from.as_ref().map(|from| from.join(name)) else {
            return Ok(());
        };
        if !from.is_dir() || self.home.join(name).symlink_metadata().is_ok() {
            return Ok(());
        }
        let mut room = Room {
            files: FOLDER_FILES,
            bytes: FOLDER_BYTES,
            is_short: false,
        };
        self.copy_folder(&from, name, FOLDER_DEPTH, &mut room)?;
        if room.is_short {
            let from = from.display();
            self.notes.push(format!(
                "not all of {from} was copied: it is too large or too deep"
            ));
        }
        Ok(())
    }

    fn copy_folder(
        &self,
        from: &Path,
        name: &str,
        depth: usize,
        room: &mut Room,
    ) -> Result<(), DriverError> {
        let Ok(entries) = fs::read_dir(from) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let Ok(called) = entry.file_name().into_string() else {
                continue;
            };
            let (path, place) = (entry.path(), format!("{name}/{called}"));
            // The user's own links are followed: people link to where they keep such things.
            let Ok(found) = path.metadata() else {
                continue;
            };
            if called == ".git" || !(found.is_dir() || found.is_file()) {
                continue;
            }
            let fits = match found.is_dir() {
                true => depth > 1,
                false => room.files > 0 && found.len() <= room.bytes.min(FILE_LIMIT),
            };
            if !fits {
                room.is_short = true;
            } else if found.is_dir() {
                self.copy_folder(&path, &place, depth - 1, room)?;
            } else if let Ok(Some(bytes)) = read_small_bytes(&path, FILE_LIMIT) {
                room.files -= 1;
                room.bytes = room.bytes.saturating_sub(bytes.len() as u64);
                self.write(&place, &bytes, mode_of(&found))?;
            }
        }
        Ok(())
    }

    /// What the user has under this name; what can't be read is told.
    fn users(&mut self, name: &str) -> Option<Vec<u8>> {
        let path = self.from.as_ref()?.join(name);
        read_small_bytes(&path, FILE_LIMIT).unwrap_or_else(|error| {
            self.notes
                .push(format!("{} was left out: {error}", path.display()));
            None
        })
    }

    fn write_json(&self, name: &str, object: &Map<String, Value>) -> Result<(), DriverError> {
        let bytes = serde_json::to_vec_pretty(object).expect("an object of JSON is JSON");
        self.write(name, &bytes, OWN)
    }

    fn write(&self, name: &str, bytes: &[u8], mode: u32) -> Result<(), DriverError> {
        let written = self.door.write_as(name, bytes, mode);
        written.map_err(|error| self.failed(name, &error))
    }

    fn remove(&self, name: &str) -> Result<(), DriverError> {
        let removed = self.door.remove(name);
        removed.map_err(|error| self.failed(name, &error))
    }

    fn failed(&self, name: &str, error: &std::io::Error) -> DriverError {
        DriverError::Seeding {
            driver: self.driver.to_owned(),
            path: self.home.join(name),
            why: error.to_string(),
        }
    }
}

fn mode_of(found: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    match found.permissions().mode() & 0o100 {
        0 => OWN,
        _ => OWN_PROGRAM,
    }
}
