//! Seeding an agent's private state with copies of the user's own.
//!
//! The private folder was written by an agent before, so the host writes there only through a [`Door`]: no link is
//! followed, and whatever lies in the way is replaced or refused. Files are copied anew at each start; a folder once,
//! because an agent may have added to it.
//!
//! The host reads what the sandbox hides, and others may have put links among the user's skills. So a file is copied only
//! if its real path is hidden from no run, and what lies in an entry of a folder only if it is really in there.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use weald_core::secrets::{login_files_of, places};
use weald_git::Door;

use super::{Brief, DriverError};

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
    unseen: Unseen,
    notes: Vec<String>,
}

/// How much of a folder may still be copied.
struct Room {
    files: usize,
    bytes: u64,
    is_short: bool,
    left_out: Vec<PathBuf>,
}

/// What runs do not see, so that no copy of it may reach them.
struct Unseen {
    places: Vec<Place>,
    /// The files that the driver logs in with; they are hidden, and copied on purpose.
    logins: Vec<PathBuf>,
    /// The user's folder, as the kernel names it.
    source: Option<PathBuf>,
}

/// A hidden file or folder.
struct Place {
    /// Where its name is, which may be a link.
    entry: PathBuf,
    real: PathBuf,
}

impl Unseen {
    fn new(driver: &str, brief: &Brief<'_>, source: Option<&Path>) -> Self {
        let place = |path: &PathBuf| Place {
            entry: entry_of(path),
            real: path.canonicalize().unwrap_or_else(|_| path.clone()),
        };
        let variable = |name: &str| (brief.variable)(name).map(PathBuf::from);
        let logins = login_files_of(driver).iter().copied();
        let logins = places(logins, brief.user_home, variable);
        Self {
            places: brief.hidden.iter().map(place).collect(),
            logins: logins.iter().map(|path| entry_of(path)).collect(),
            source: source.and_then(|source| source.canonicalize().ok()),
        }
    }

    /// Whether a real path is hidden. For a login, its own file and those of the driver are not.
    fn holds(&self, real: &Path, login: Option<&Path>) -> bool {
        let login = login.map(entry_of);
        let is_login = |place: &Place| {
            let login = login.as_ref();
            login.is_some_and(|own| *own == place.entry || self.logins.contains(&place.entry))
        };
        // The user's own folder was named to be copied from, even if all of it is hidden.
        let is_source = |place: &Place| {
            let source = self.source.as_ref();
            source.is_some_and(|it| it.starts_with(&place.real) && real.starts_with(it))
        };
        let is_hidden =
            |place: &Place| real.starts_with(&place.real) && !is_login(place) && !is_source(place);
        // Files in /proc show weald's own environment and memory.
        real.starts_with("/proc") || self.places.iter().any(is_hidden)
    }

    /// Reads a file that is not hidden and, if `within` is given, really lies in there; `None` if there is none. What was
    /// opened is checked, so a link that changes meanwhile leads nowhere else.
    fn read(
        &self,
        path: &Path,
        within: Option<&Path>,
        login: Option<&Path>,
    ) -> io::Result<Option<(Vec<u8>, Metadata)>> {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut options = OpenOptions::new();
        let file = match options.read(true).custom_flags(nonblocking).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let real = real_path(&file, &found)?;
        if self.holds(&real, login) {
            return Err(io::Error::other("it is hidden from runs"));
        }
        if within.is_some_and(|folder| !real.starts_with(folder)) {
            return Err(io::Error::other("it is a link out of its folder"));
        }
        if found.len() > FILE_LIMIT {
            return Err(io::Error::other(format!(
                "it is larger than {FILE_LIMIT} bytes"
            )));
        }
        let mut bytes = Vec::new();
        file.take(FILE_LIMIT).read_to_end(&mut bytes)?;
        Ok(Some((bytes, found)))
    }
}

/// A path whose folder is as the kernel names it.
fn entry_of(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Where an opened file lies. One that is removed lies nowhere.
fn real_path(file: &File, found: &Metadata) -> io::Result<PathBuf> {
    let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    match real.is_absolute() && found.nlink() > 0 {
        true => Ok(real),
        false => Err(io::Error::other("it is not clear where it lies")),
    }
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
        let from = from.filter(|from| from != brief.home);
        Ok(Self {
            driver,
            unseen: Unseen::new(driver, brief, from.as_deref()),
            from,
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

    /// The same for a text, with a change. One that can't be read as what it is says why, and is left out.
    pub(super) fn text(
        &mut self,
        name: &str,
        change: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<(), DriverError> {
        let Some(bytes) = self.users(name) else {
            return self.remove(name);
        };
        match change(&String::from_utf8_lossy(&bytes)) {
            Ok(text) => self.write(name, text.as_bytes(), OWN),
            Err(why) => {
                self.notes.push(format!("{name} was left out: {why}"));
                self.remove(name)
            }
        }
    }

    /// The same for one that is JSON and holds the driver's login: it is hidden from runs, and copied all the same. One
    /// that is no object is left out.
    pub(super) fn login(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), DriverError> {
        let Some(path) = self.from.as_ref().map(|from| from.join(name)) else {
            return self.remove(name);
        };
        match self.read(&path, Some(&path)) {
            Some(bytes) => self.changed(name, &bytes, change),
            None => self.remove(name),
        }
    }

    /// The same for any other one, made if the user has none.
    pub(super) fn made_json(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), DriverError> {
        let bytes = self.users(name).unwrap_or_else(|| b"{}".to_vec());
        self.changed(name, &bytes, change)
    }

    fn changed(
        &mut self,
        name: &str,
        bytes: &[u8],
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), DriverError> {
        let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(bytes) else {
            self.notes
                .push(format!("{name} is not a JSON object; it was left out"));
            return self.remove(name);
        };
        change(&mut object);
        self.write_json(name, &object)
    }

    /// Changes the agent's own file of this name by what is in one of the user's. Neither has to be there.
    pub(super) fn state(
        &mut self,
        users: Option<&Path>,
        name: &str,
        change: impl FnOnce(&Map<String, Value>, &mut Map<String, Value>),
    ) -> Result<(), DriverError> {
        let of_user = users.and_then(|users| self.read(users, Some(users)));
        let parse = |bytes: &[u8]| serde_json::from_slice::<Map<String, Value>>(bytes).ok();
        let of_user = of_user.and_then(|bytes| parse(&bytes)).unwrap_or_default();
        // An agent wrote it; whatever it is, it is at worst left behind.
        let known = self.door.read(name, FILE_LIMIT).ok();
        let mut known = known.and_then(|bytes| parse(&bytes)).unwrap_or_default();
        change(&of_user, &mut known);
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
            left_out: Vec::new(),
        };
        self.copy_folder(&from, name, None, FOLDER_DEPTH, &mut room)?;
        if room.is_short {
            let from = from.display();
            self.notes.push(format!(
                "not all of {from} was copied: it is too large or too deep"
            ));
        }
        if let Some((first, others)) = room.left_out.split_first() {
            let more = match others.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            self.notes.push(format!(
                "{}{more} not copied: hidden from runs, a link out of its folder, or unreadable",
                first.display()
            ));
        }
        Ok(())
    }

    /// `within` is the real path of the folder's entry that this is in. The entries themselves may be links: people link
    /// to where they keep such things. What lies in one must really be there: somebody else may have made it.
    fn copy_folder(
        &self,
        from: &Path,
        name: &str,
        within: Option<&Path>,
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
            let (Ok(found), Ok(real)) = (path.metadata(), path.canonicalize()) else {
                continue;
            };
            if matches!(called.as_str(), ".git" | ".system") || !(found.is_dir() || found.is_file())
            {
                continue;
            }
            let within = within.unwrap_or(&real);
            if !real.starts_with(within) || self.unseen.holds(&real, None) {
                room.left_out.push(path);
                continue;
            }
            let fits = match found.is_dir() {
                true => depth > 1,
                false => room.files > 0 && found.len() <= room.bytes.min(FILE_LIMIT),
            };
            if !fits {
                room.is_short = true;
            } else if found.is_dir() {
                self.copy_folder(&path, &place, Some(within), depth - 1, room)?;
            } else {
                match self.unseen.read(&path, Some(within), None) {
                    Ok(Some((bytes, found))) => {
                        room.files -= 1;
                        room.bytes = room.bytes.saturating_sub(bytes.len() as u64);
                        self.write(&place, &bytes, mode_of(&found))?;
                    }
                    Ok(None) => {}
                    Err(_) => room.left_out.push(path),
                }
            }
        }
        Ok(())
    }

    /// What the user has under this name; what can't be read is told.
    fn users(&mut self, name: &str) -> Option<Vec<u8>> {
        let path = self.from.as_ref()?.join(name);
        self.read(&path, None)
    }

    fn read(&mut self, path: &Path, login: Option<&Path>) -> Option<Vec<u8>> {
        let read = self.unseen.read(path, None, login);
        let read = read.unwrap_or_else(|error| {
            self.notes
                .push(format!("{} was left out: {error}", path.display()));
            None
        });
        read.map(|(bytes, _)| bytes)
    }

    fn write_json(&self, name: &str, object: &Map<String, Value>) -> Result<(), DriverError> {
        let bytes = serde_json::to_vec_pretty(object).expect("an object of JSON is JSON");
        self.write(name, &bytes, OWN)
    }

    fn write(&self, name: &str, bytes: &[u8], mode: u32) -> Result<(), DriverError> {
        let written = self.door.write_as(name, bytes, mode);
        written.map_err(|error| self.failed(name, &error))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), DriverError> {
        let removed = self.door.remove(name);
        removed.map_err(|error| self.failed(name, &error))
    }

    fn failed(&self, name: &str, error: &io::Error) -> DriverError {
        DriverError::Seeding {
            driver: self.driver.to_owned(),
            path: self.home.join(name),
            why: error.to_string(),
        }
    }
}

/// Removes files from a private folder; answers what could not be removed.
pub(super) fn forget_files(home: &Path, names: &[&str]) -> Vec<String> {
    let failed = names.iter().filter_map(|name| {
        let removed = Door::open(home).and_then(|door| door.remove(name));
        let path = home.join(name);
        let why = |error| format!("{} could not be removed: {error}", path.display());
        removed.err().map(why)
    });
    failed.collect()
}

/// Takes something out of one of its files, if that is there and JSON.
pub(super) fn forget_in(
    home: &Path,
    name: &str,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Option<String> {
    let door = Door::open(home).ok()?;
    let bytes = door.read(name, FILE_LIMIT).ok()?;
    let mut object = serde_json::from_slice::<Map<String, Value>>(&bytes).ok()?;
    change(&mut object);
    let bytes = serde_json::to_vec_pretty(&object).expect("an object of JSON is JSON");
    let path = home.join(name);
    let written = door.write_as(name, &bytes, OWN);
    let why = |error| format!("{} still holds a login: {error}", path.display());
    written.err().map(why)
}

fn mode_of(found: &Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    match found.permissions().mode() & 0o100 {
        0 => OWN,
        _ => OWN_PROGRAM,
    }
}
