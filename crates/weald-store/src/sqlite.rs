//! The default backend: one SQLite file for all processes of a repository.
//!
//! Invariants: WAL mode; every change is one `BEGIN IMMEDIATE` transaction, begun only by the holder of the turn
//! ([`turn`]), so writers queue in the kernel and never poll; a new database appears by rename, complete or not at all;
//! a database of a newer weald, and a network file system, are refused.
//!
//! `synchronous` is NORMAL, and FULL for completions, removals and landings: a killed process loses nothing either way,
//! only a power cut could.

mod rebuilding;
mod rows;
mod schema;
mod transaction;
mod turn;

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use weald_core::id::Seq;
use weald_core::store::{Clock, Durability, Read, Result, Store, StoreError, Write};

use crate::network::network_kind;
pub use rebuilding::{Rebuilding, Remains};
use transaction::Transaction;
use turn::Turn;

/// The database's name in the private directory.
pub const DATABASE_FILE: &str = "weald.db";

/// Versions before this one can corrupt a database in WAL mode.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How long a writer waits for its turn. A process that was stopped while it held the turn is given this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest log a process leaves behind. Every process that opens a database alone reads the whole log first, so a
/// short one keeps one-shot commands fast.
const LOG_LEFT: u64 = 1024 * 1024;

/// After how many pages SQLite folds the log by itself while processes go on writing.
const LOG_WORKING: u32 = 2_000;

/// How often [`Store::wait`] looks. `PRAGMA data_version` costs a few microseconds.
const POLL: Duration = Duration::from_millis(20);

pub struct SqliteStore {
    connection: Mutex<Connection>,
    path: PathBuf,
    /// The file that was opened, to notice that another one took its place.
    file: Option<(u64, u64)>,
    log: PathBuf,
    has_written: AtomicBool,
    /// `None` where the file system can only be read.
    turn: Option<Turn>,
    clock: Arc<dyn Clock>,
}

impl SqliteStore {
    /// Opens the database in `directory`, making both if they are not there.
    pub fn open(directory: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::open_with_patience(directory, clock, PATIENCE)
    }

    /// The same with another limit for waiting.
    pub fn open_with_patience(
        directory: &Path,
        clock: Arc<dyn Clock>,
        patience: Duration,
    ) -> Result<Self> {
        assert!(
            rusqlite::version_number() >= OLDEST_SQLITE,
            "SQLite {} corrupts WAL files",
            rusqlite::version()
        );
        let existing = directory
            .ancestors()
            .find(|path| path.exists())
            .unwrap_or(directory);
        if let Some(kind) = network_kind(existing) {
            return Err(StoreError::NetworkFileSystem {
                path: directory.to_owned(),
                kind,
            });
        }
        let path = directory.join(DATABASE_FILE);
        let turn = match is_read_only(existing) {
            true => None,
            false => {
                make_directory(directory)?;
                Some(Turn::new(directory, patience)?)
            }
        };
        let connection = match path.symlink_metadata() {
            // SQLite would follow a link, and wait for a FIFO.
            Ok(found) if !found.is_file() => {
                let source = io::Error::other("it is no regular file");
                return Err(StoreError::File { path, source });
            }
            // Not even opened: SQLite would take its log for an older one's and delete it.
            Ok(found) if found.len() == 0 => return Err(empty(&path)),
            Ok(_) => {
                let connected = match &turn {
                    Some(_) => connect(&path, patience),
                    None => connect_read_only(&path),
                };
                connected.map_err(|error| damaged(&path, error))?
            }
            Err(_) => match &turn {
                Some(turn) => create(&path, turn, clock.as_ref(), patience)?,
                None => return Err(StoreError::ReadOnly { path }),
            },
        };
        let file = file_at(&path);
        let version = schema::version(&connection).map_err(|error| damaged(&path, error))?;
        if version == 0 {
            return Err(empty(&path));
        }
        if version != schema::NEWEST {
            let Some(turn) = &turn else {
                return Err(StoreError::ReadOnly { path });
            };
            let _turn = turn.take()?;
            schema::migrate(&connection, clock.now())?;
        }
        Ok(Self {
            connection: Mutex::new(connection),
            log: with_suffix(&path, "-wal"),
            path,
            file,
            has_written: AtomicBool::new(false),
            turn,
            clock,
        })
    }

    /// What SQLite says of the connection: how it journals, how it flushes, whether it checks references.
    pub fn settings(&self) -> Result<(String, i64, i64)> {
        let connection = self.lock();
        let ask = |name: &str| {
            connection
                .pragma_query_value(None, name, |row| row.get(0))
                .map_err(backend)
        };
        let journal = connection
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .map_err(backend)?;
        Ok((journal, ask("synchronous")?, ask("foreign_keys")?))
    }

    /// What SQLite finds wrong with the pages of the database; nothing if it is whole.
    pub fn problems(&self) -> Result<Vec<String>> {
        let connection = self.lock();
        let mut statement = connection
            .prepare("PRAGMA quick_check(5)")
            .map_err(backend)?;
        let rows = statement
            .query_map([], |row| row.get::<_, String>(0))
            .map_err(backend)?;
        let lines: Vec<String> = rows
            .collect::<std::result::Result<_, _>>()
            .map_err(backend)?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic while it was held rolled its transaction back on the way out.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SqliteStore {
    /// Folds a long log into the database and empties it. SQLite alone never would: a process that opens a database
    /// alone forgets what was folded before, so with one-shot commands the log would only grow.
    fn drop(&mut self) {
        let is_long = fs::metadata(&self.log).is_ok_and(|log| log.len() > LOG_LEFT);
        if !is_long || !self.has_written.load(Ordering::Relaxed) {
            return;
        }
        // Somebody writes, a reader is in the way, the disk is full: the log stays, and the next writer tries again.
        if let Some(_turn) = self.turn.as_ref().and_then(Turn::try_take) {
            let connection = self.lock();
            let _ = connection.busy_timeout(Duration::ZERO);
            let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }
}

impl Store for SqliteStore {
    fn read(&self) -> Result<Box<dyn Read + '_>> {
        let transaction = Transaction::begin_read(self.lock(), self.clock.now())?;
        Ok(Box::new(transaction))
    }

    fn write(&self, durability: Durability) -> Result<Box<dyn Write + '_>> {
        let Some(turn) = &self.turn else {
            let path = self.path.clone();
            return Err(StoreError::ReadOnly { path });
        };
        let connection = self.lock();
        let turn = turn.take()?;
        if file_at(&self.path) != self.file {
            return Err(StoreError::Replaced {
                path: self.path.clone(),
            });
        }
        // The time is read under the turn: a lease can't look expired because its writer waited.
        self.has_written.store(true, Ordering::Relaxed);
        let transaction = Transaction::begin_write(connection, turn, durability, self.clock.now())?;
        Ok(Box::new(transaction))
    }

    fn sync(&self) -> Result<()> {
        // Whoever folds the log into the database syncs both, so what is not in the log is safe.
        let synced = fs::File::open(&self.log).and_then(|log| log.sync_all());
        match synced {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(StoreError::File {
                path: self.log.clone(),
                source,
            }),
            _ => Ok(()),
        }
    }

    fn wait(&self, after: Seq, timeout: Duration) -> Result<Seq> {
        let deadline = Instant::now() + timeout;
        loop {
            // First, so that what is written behind it is seen as a change.
            let version = data_version(&self.lock())?;
            let last = rows::last_seq(&self.lock())?;
            if last > after || Instant::now() >= deadline {
                return Ok(last);
            }
            while data_version(&self.lock())? == version && Instant::now() < deadline {
                thread::sleep(POLL.min(deadline.saturating_duration_since(Instant::now())));
            }
        }
    }
}

fn data_version(connection: &Connection) -> Result<i64> {
    rows::value(connection, "PRAGMA data_version", [])
}

/// Builds a new database beside its place and renames it there, so that nobody ever opens half of one.
fn create(path: &Path, turn: &Turn, clock: &dyn Clock, patience: Duration) -> Result<Connection> {
    let _turn = turn.take()?;
    if !path.exists() {
        let building = path.with_extension("new");
        for leftover in [
            building.clone(),
            with_suffix(&building, "-wal"),
            with_suffix(&building, "-shm"),
        ] {
            match fs::remove_file(&leftover) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::File {
                        path: leftover,
                        source,
                    });
                }
                _ => {}
            }
        }
        let connection = Connection::open(&building).map_err(backend)?;
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .map_err(backend)?;
        schema::migrate(&connection, clock.now())?;
        connection.close().map_err(|(_, error)| backend(error))?;
        fs::rename(&building, path).map_err(StoreError::file(path))?;
    }
    connect(path, patience)
}

fn make_directory(directory: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
        .create(directory)
        .map_err(StoreError::file(directory))
}

/// Which file is at a path.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn connect(path: &Path, patience: Duration) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(patience)?;
        // Closing the last connection would fold the log, at every end of a one-shot command.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_WORKING)?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    opened().map_err(backend)
}

/// Opens a database on a file system that can only be read. What is in the log counts, too: its index is in memory.
fn connect_read_only(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let log = with_suffix(path, "-wal");
    let has_log = fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte))
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    // Without a log SQLite would want to make one.
    uri.push_str(if has_log { "?mode=ro" } else { "?immutable=1" });
    let connection = Connection::open_with_flags(uri, flags).map_err(backend)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Whether nothing can be written at a path, because of how its file system is mounted.
fn is_read_only(path: &Path) -> bool {
    let flags = rustix::fs::statvfs(path).map(|found| found.f_flag);
    flags.is_ok_and(|flags| flags.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

fn empty(path: &Path) -> StoreError {
    damaged(path, StoreError::Backend("it is empty".to_owned()))
}

/// An error that says which file it is about. What can't be read is never taken for new.
fn damaged(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Backend(message) => StoreError::Damaged {
            path: path.to_owned(),
            message,
        },
        other => other,
    }
}

fn backend(error: rusqlite::Error) -> StoreError {
    StoreError::Backend(error.to_string())
}
