//! A database that is made again: built in a folder beside the one in place, and put there by renames.
//!
//! Nothing is deleted: what was in place before is kept as `weald.db.lost-N`, with its log. Writers wait meanwhile, and a
//! process that had the old one open is refused its next write.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use weald_core::event::Event;
use weald_core::store::{Clock, Result, StoreError, Succession};

use super::turn::{Turn, TurnGuard};
use super::{DATABASE_FILE, PATIENCE, SqliteStore, backend, make_directory, schema, with_suffix};

/// Where a database is built.
const FOLDER: &str = "rebuilt";

/// A database in the making. Dropped, it leaves the one in place as it is.
pub struct Rebuilding {
    directory: PathBuf,
    _turn: TurnGuard,
}

/// What can be read of the database in place.
pub struct Remains {
    /// The database, if nothing is wrong with it.
    pub store: Option<SqliteStore>,
    /// Events of its log, as many as can be read.
    pub events: Vec<Event>,
    /// What is wrong with it.
    pub problem: Option<String>,
}

impl Rebuilding {
    /// Waits for the writers' turn, and begins an empty database beside the one in `directory`.
    pub fn begin(directory: &Path, clock: Arc<dyn Clock>) -> Result<(Self, SqliteStore)> {
        make_directory(directory)?;
        let turn = Turn::new(directory, PATIENCE)?.take()?;
        let rebuilding = Self {
            directory: directory.to_owned(),
            _turn: turn,
        };
        rebuilding.clear()?;
        let store = SqliteStore::open(&rebuilding.folder(), clock)?;
        Ok((rebuilding, store))
    }

    /// Puts the folder of `directory` aside as `away` if `is_free` says, under the writers' turn, that nothing needs it. A
    /// process that has the database open is refused its next write.
    pub fn retire(
        directory: &Path,
        away: &Path,
        is_free: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        let _turn = Turn::new(directory, PATIENCE)?.take()?;
        if !is_free()? {
            return Ok(false);
        }
        let above = directory.parent().unwrap_or(directory);
        fs::rename(above, away).map_err(StoreError::file(away))?;
        Ok(true)
    }

    fn folder(&self) -> PathBuf {
        self.directory.join(FOLDER)
    }

    /// What the database in place holds; it is not changed. Nobody writes to it while this is there.
    pub fn remains(&self, clock: Arc<dyn Clock>) -> Remains {
        let path = self.directory.join(DATABASE_FILE);
        let nothing = |problem: &str| Remains {
            store: None,
            events: Vec::new(),
            problem: Some(problem.to_owned()),
        };
        match fs::metadata(&path) {
            Err(_) => return nothing("it is gone"),
            Ok(found) if found.len() == 0 => return nothing("it is empty"),
            Ok(_) => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let Ok(connection) = Connection::open_with_flags(&path, flags) else {
            return nothing("it can't be opened");
        };
        // Closing it must not fold the log: this one only looks.
        let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        let events = readable_events(&connection);
        match check(connection) {
            Err(error) => Remains {
                store: None,
                events,
                problem: Some(error.to_string()),
            },
            Ok(()) => match SqliteStore::open(&self.directory, clock) {
                Ok(store) => Remains {
                    store: Some(store),
                    events,
                    problem: None,
                },
                Err(error) => Remains {
                    store: None,
                    events,
                    problem: Some(error.to_string()),
                },
            },
        }
    }

    /// A name that nobody has; or, after a kill between two renames, the one whose log is still in place.
    fn place_aside(&self, path: &Path) -> PathBuf {
        let aside = |number: u32| with_suffix(path, &format!(".lost-{number}"));
        let is_free = |number: &u32| {
            let parts = ["", "-wal", "-shm"].map(|suffix| with_suffix(&aside(*number), suffix));
            parts.iter().all(|part| part.symlink_metadata().is_err())
        };
        let free = (1..).find(is_free);
        let free = free.unwrap_or(1);
        let before = free.checked_sub(1).filter(|number| *number > 0).map(aside);
        match before {
            Some(before) if !path.exists() && !with_suffix(&before, "-wal").exists() => before,
            _ => aside(free),
        }
    }

    fn clear(&self) -> Result<()> {
        match fs::remove_dir_all(self.folder()) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(StoreError::File {
                path: self.folder(),
                source,
            }),
            _ => Ok(()),
        }
    }
}

impl Succession for Rebuilding {
    // Its store is dropped by now: the last to close takes the log away.
    fn seal(&self) -> Result<()> {
        let built = self.folder().join(DATABASE_FILE);
        let connection = Connection::open(&built).map_err(backend)?;
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(backend)?;
        connection.close().map_err(|(_, error)| backend(error))?;
        sync(&built)
    }

    fn set_aside(&self) -> Result<Option<PathBuf>> {
        let path = self.directory.join(DATABASE_FILE);
        let kept = self.place_aside(&path);
        let mut moved = None;
        // The log goes after the database: one that is found without it would pass for whole.
        for suffix in ["", "-wal", "-shm"] {
            let (from, to) = (with_suffix(&path, suffix), with_suffix(&kept, suffix));
            match fs::rename(&from, &to) {
                // Of a database that is gone, its log may be what is left.
                Ok(()) if kept.exists() => moved = Some(kept.clone()),
                Ok(()) => moved = moved.or(Some(to)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::File { path: from, source }),
            }
        }
        Ok(moved)
    }

    fn put_in_place(self: Box<Self>) -> Result<()> {
        let path = self.directory.join(DATABASE_FILE);
        let built = self.folder().join(DATABASE_FILE);
        fs::rename(&built, &path).map_err(StoreError::file(&path))?;
        sync(&self.directory)
    }
}

impl Drop for Rebuilding {
    fn drop(&mut self) {
        // What is left is cleared by the next one.
        let _ = self.clear();
    }
}

/// Whether a database is whole and of this version: another one would have to be changed first.
fn check(connection: Connection) -> Result<()> {
    let said: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(backend)?;
    let version = schema::version(&connection)?;
    match (said.as_str(), version == schema::NEWEST) {
        ("ok", true) => Ok(()),
        ("ok", false) => Err(StoreError::Backend(format!("it has schema {version}"))),
        (said, _) => Err(StoreError::Backend(said.to_owned())),
    }
}

/// What of the log can be read; a record that can't is left out.
fn readable_events(connection: &Connection) -> Vec<Event> {
    let mut found = Vec::new();
    let Ok(mut statement) = connection.prepare("SELECT doc FROM events ORDER BY seq") else {
        return found;
    };
    let Ok(mut rows) = statement.query([]) else {
        return found;
    };
    while let Ok(Some(row)) = rows.next() {
        let doc = row.get::<_, String>(0).ok();
        found.extend(doc.and_then(|doc| serde_json::from_str(&doc).ok()));
    }
    found
}

fn sync(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(StoreError::file(path))
}
