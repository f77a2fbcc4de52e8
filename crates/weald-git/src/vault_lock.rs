//! The lock on the vault: one process at a time feeds it or keeps it up.
//!
//! The kernel frees the lock of a process that ended. One that is merely stopped would block everybody for ever, so a
//! holder writes its name into the file and touches it every few seconds; who waits ends a holder that was silent for longer
//! than the lease. It is ended, not overruled: two upkeeps at once could each drop what the other one counts on. A process
//! that holds the lock without its name in the file is not weald's: nobody waits for it longer than a few beats.
//!
//! A holder that cannot be ended from here, on another machine say, is named in the refusal (`vault_busy`).

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::OFlags;

use crate::vault::{Vault, VaultError};

/// How often a holder says that it lives, at the least.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The longest name that is read.
const NAME_LIMIT: u64 = 4096;

/// Ends the process of this name; true when it is proven gone.
type Ending = dyn Fn(&str) -> bool + Send + Sync;

/// Whether somebody asked for the end.
type Interrupted = dyn Fn() -> bool + Send + Sync;

/// The process that holds a lock, in words, if it is not the one of this name.
type Stranger = dyn Fn(&File, &str) -> Option<String> + Send + Sync;

/// How long a waiting process takes to notice a signal.
const NOTICE: Duration = Duration::from_millis(100);

/// How a process holds the vault, and what it does about others that are silent.
#[derive(Clone)]
pub struct Keeper {
    /// This process, for `end` of others.
    pub name: String,
    /// How long a holder may be silent.
    pub lease: Duration,
    pub end: Arc<Ending>,
    /// Finds one that did not sign.
    pub stranger: Arc<Stranger>,
    /// Whether waiting is to end.
    pub is_interrupted: Arc<Interrupted>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("name", &self.name)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

impl Vault {
    /// Runs `work` while no other process feeds or keeps up the vault.
    pub(crate) fn locked<T>(
        &self,
        work: impl FnOnce() -> Result<T, VaultError>,
    ) -> Result<T, VaultError> {
        let failed = VaultError::file(&self.lock);
        let lock = open(&self.lock).map_err(&failed)?;
        let lock = match (lock.try_lock(), &self.keeper) {
            (Ok(()), _) => lock,
            (Err(TryLockError::Error(error)), _) => return Err(failed(error)),
            (Err(TryLockError::WouldBlock), None) => {
                lock.lock().map_err(&failed)?;
                lock
            }
            (Err(TryLockError::WouldBlock), Some(keeper)) => self.wait(lock, keeper)?,
        };
        let Some(keeper) = &self.keeper else {
            return work();
        };
        sign(&lock, &keeper.name).map_err(&failed)?;
        let (done, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(|| {
                let ended = ended;
                while ended.recv_timeout(beat(keeper)) == Err(mpsc::RecvTimeoutError::Timeout) {
                    // A beat that is missed is made up for by the next one.
                    let _ = lock.write_all_at(keeper.name.as_bytes(), 0);
                }
            });
            let worked = work();
            drop(done);
            worked
        })
    }

    /// Waits in the kernel's queue; meanwhile a holder that is silent for longer than the lease is ended.
    fn wait(&self, lock: File, keeper: &Keeper) -> Result<File, VaultError> {
        let failed = VaultError::file(&self.lock);
        let watched = lock.try_clone().map_err(&failed)?;
        let (sender, receiver) = mpsc::channel();
        // If nobody waits for it any more, the lock is freed as soon as it is had.
        thread::spawn(move || sender.send(lock.lock().map(|()| lock)));
        let mut seen = (last_beat(&watched), Instant::now());
        let (mut looked, mut stranger) = (Instant::now(), None);
        loop {
            match receiver.recv_timeout(NOTICE.min(beat(keeper))) {
                Ok(locked) => return locked.map_err(&failed),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(failed(io::Error::other("waiting for it was given up")));
                }
            }
            if (keeper.is_interrupted)() {
                return Err(failed(io::ErrorKind::Interrupted.into()));
            }
            if looked.elapsed() < beat(keeper) {
                continue;
            }
            looked = Instant::now();
            self.refuse_stranger(&watched, keeper, &mut stranger)?;
            let beat_at = last_beat(&watched);
            if beat_at != seen.0 {
                seen = (beat_at, Instant::now());
            }
            let silent = beat_at.and_then(|at| at.elapsed().ok()).unwrap_or_default();
            // Also seen to be silent by this process, since a clock may jump and a machine may sleep.
            if silent < keeper.lease || seen.1.elapsed() < 2 * beat(keeper) {
                continue;
            }
            let holder = name_in(&self.lock);
            if !(keeper.end)(&holder) {
                return Err(VaultError::Held { holder, silent });
            }
            seen = (beat_at, Instant::now());
        }
    }

    /// Gives up on a process that holds the lock for some beats without having signed; `known` is who that was, and since
    /// when.
    fn refuse_stranger(
        &self,
        lock: &File,
        keeper: &Keeper,
        known: &mut Option<(String, Instant)>,
    ) -> Result<(), VaultError> {
        let Some(holder) = (keeper.stranger)(lock, &name_in(&self.lock)) else {
            *known = None;
            return Ok(());
        };
        match known {
            Some((before, since)) if *before == holder => match since.elapsed() {
                silent if silent < 3 * beat(keeper) => Ok(()),
                silent => Err(VaultError::Held { holder, silent }),
            },
            _ => {
                *known = Some((holder, Instant::now()));
                Ok(())
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    let mut options = OpenOptions::new();
    plain(options.create(true).truncate(false).write(true), path)
}

/// Opens nothing but a file: a link in its place is not followed, a FIFO not waited for.
fn plain(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// Says who holds the lock; the time of writing is the first beat.
fn sign(lock: &File, name: &str) -> io::Result<()> {
    lock.set_len(0)?;
    lock.write_all_at(name.as_bytes(), 0)
}

fn name_in(path: &Path) -> String {
    let mut name = String::new();
    let opened = plain(OpenOptions::new().read(true), path);
    let read = opened.and_then(|file| file.take(NAME_LIMIT).read_to_string(&mut name));
    read.map(|_| name).unwrap_or_default()
}

fn beat(keeper: &Keeper) -> Duration {
    HEARTBEAT.min(keeper.lease / 3)
}

fn last_beat(lock: &File) -> Option<SystemTime> {
    lock.metadata().and_then(|found| found.modified()).ok()
}
