//! Whose turn it is to write.
//!
//! SQLite's own waiting sleeps and tries again, so a process can be passed over for seconds. Here writers queue on a
//! `flock` of a file: the kernel wakes one waiter at a time, about in the order they came, and lets go of the lock when
//! its holder dies.
//!
//! Transactions are `BEGIN IMMEDIATE` all the same, so a program that opens the file without queueing is safe, too.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use weald_core::store::{Result, StoreError, lock_holder};

/// How often a writer looks before it queues.
const LOOKS: usize = 20;

/// The queue of writers.
pub struct Turn {
    file: File,
    patience: Duration,
}

/// Held while writing; the next in the queue goes on when it is dropped.
pub struct TurnGuard(File);

impl Turn {
    /// The queue of the database in `directory`.
    pub fn new(directory: &Path, patience: Duration) -> Result<Self> {
        let path = directory.join("write.lock");
        // A link is not followed, and nobody is waited for but by the lock.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .custom_flags(flags.bits() as i32)
            .open(&path);
        let file = opened.map_err(StoreError::file(path))?;
        Ok(Self { file, patience })
    }

    /// Takes the turn if nobody has it.
    pub fn try_take(&self) -> Option<TurnGuard> {
        let file = self.file.try_clone().ok()?;
        file.try_lock().ok().map(|()| TurnGuard(file))
    }

    /// Waits for the turn.
    pub fn take(&self) -> Result<TurnGuard> {
        let file = self.file.try_clone().map_err(unexpected)?;
        // A transaction takes less time than starting a thread, so look a few times first.
        for _ in 0..LOOKS {
            match file.try_lock() {
                Ok(()) => return Ok(TurnGuard(file)),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
                Err(TryLockError::Error(error)) => return Err(unexpected(error)),
            }
        }
        // A blocking lock has no time limit of its own, so a thread waits and this one watches the clock.
        let (sender, receiver) = mpsc::channel();
        let waiter = move || {
            let locked = file.lock().map(|()| TurnGuard(file));
            // If nobody waits any more the guard is dropped here, and with it the lock.
            let _ = sender.send(locked);
        };
        thread::Builder::new().spawn(waiter).map_err(unexpected)?;
        match receiver.recv_timeout(self.patience) {
            Ok(locked) => locked.map_err(unexpected),
            Err(_) => Err(StoreError::Busy {
                waited: self.patience,
                holder: self.holder(),
            }),
        }
    }

    /// Who has the turn, by the kernel's own list.
    fn holder(&self) -> Option<u32> {
        let inode = self.file.metadata().ok()?.ino();
        lock_holder(&fs::read_to_string("/proc/locks").ok()?, inode)
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        // The description is shared with the queue, so closing this copy would not unlock. It can't fail on a file.
        let _ = self.0.unlock();
    }
}

fn unexpected(error: std::io::Error) -> StoreError {
    StoreError::Backend(format!("the queue of writers: {error}"))
}
