//! Copying a clean checkout: every file of its index into another directory, in parallel.
//!
//! File times come along, so they are in the past, and the index gets the new files' stat data: the first `git status`
//! reads no file. `copy_file_range` shares the content where the file system can. Directories are made by the same
//! threads on the way.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, copy_file_range, fstat,
    futimens, mkdirat, openat, readlinkat, statat, symlinkat, utimensat,
};
use rustix::io::{Errno, read, write};

use crate::checkout_index::{CheckoutIndex, EntryKind, FileStat, IndexEntry};

/// How many entries a thread takes at a time: neighbours share directories.
const PORTION: usize = 256;

/// More threads than this only wait for each other in the file system.
const THREADS: usize = 8;

/// Copies the files of `index` from the checkout `from` into the directory `to`, which has none of them, and gives the
/// index the stat data of the copies.
pub fn copy_checkout(from: &Path, to: &Path, index: &mut CheckoutIndex) -> io::Result<()> {
    let stats = on_all_cores(index.len(), |places, stats| {
        let mut way = Way::open(from, to)?;
        for place in places {
            let entry = index.entry(place);
            if !entry.is_absent
                && let Some(stat) = way.copy(&entry)?
            {
                stats.push((place, stat));
            }
        }
        Ok(())
    })?;
    for (place, stat) in stats {
        index.set_stat(place, &stat);
    }
    Ok(())
}

/// Sets the times of files of a checkout: `wanted` says which entry gets which. The index follows.
pub fn set_times(
    checkout: &Path,
    index: &mut CheckoutIndex,
    wanted: &[(usize, (i64, u32))],
) -> io::Result<()> {
    let root = openat(CWD, checkout, DIRECTORY, Mode::empty())?;
    let stats = on_all_cores(wanted.len(), |places, stats| {
        for (place, time) in &wanted[places] {
            let entry = index.entry(*place);
            let path = OsStr::from_bytes(entry.path);
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            utimensat(&root, path, &times(*time), flags)?;
            stats.push((*place, file_stat(&statat(&root, path, flags)?)));
        }
        Ok(())
    })?;
    for (place, stat) in stats {
        index.set_stat(place, &stat);
    }
    Ok(())
}

/// The stat data of the files of a checkout that are there, by the place of their entry.
pub fn stats_of(checkout: &Path, index: &CheckoutIndex) -> io::Result<Vec<(usize, FileStat)>> {
    let root = openat(CWD, checkout, DIRECTORY, Mode::empty())?;
    on_all_cores(index.len(), |places, stats| {
        for place in places {
            let path = OsStr::from_bytes(index.entry(place).path);
            if let Ok(stat) = statat(&root, path, AtFlags::SYMLINK_NOFOLLOW) {
                stats.push((place, file_stat(&stat)));
            }
        }
        Ok(())
    })
}

type Stats = Vec<(usize, FileStat)>;

/// Works on `0..count` in portions on every core; the first error ends it.
fn on_all_cores(
    count: usize,
    work: impl Fn(std::ops::Range<usize>, &mut Stats) -> io::Result<()> + Sync,
) -> io::Result<Stats> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let portions = || {
        let mut stats = Vec::new();
        loop {
            let start = next.fetch_add(PORTION, Ordering::Relaxed);
            if start >= count || failed.load(Ordering::Relaxed) {
                return Ok(stats);
            }
            work(start..count.min(start + PORTION), &mut stats)
                .inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(THREADS).min(count.div_ceil(PORTION)).max(1);
    let parts: Vec<io::Result<Stats>> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(portions)).collect();
        let own = portions();
        let joined = others.into_iter().map(|other| {
            other
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a copying thread was lost")))
        });
        std::iter::once(own).chain(joined).collect()
    });
    let mut all = Vec::with_capacity(count);
    for part in parts {
        all.extend(part?);
    }
    Ok(all)
}

const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The directories on the way to the last file, open on both sides: the next file is mostly in the same one.
struct Way {
    roots: (OwnedFd, OwnedFd),
    steps: Vec<(Vec<u8>, OwnedFd, OwnedFd)>,
    buffer: Vec<u8>,
}

impl Way {
    fn open(from: &Path, to: &Path) -> io::Result<Self> {
        Ok(Self {
            roots: (
                openat(CWD, from, DIRECTORY, Mode::empty())?,
                openat(CWD, to, DIRECTORY, Mode::empty())?,
            ),
            steps: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// Copies one entry; a submodule is an empty directory and has no stat data.
    fn copy(&mut self, entry: &IndexEntry<'_>) -> io::Result<Option<FileStat>> {
        let (directory, name) = match entry.path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&entry.path[..slash], &entry.path[slash + 1..]),
            None => (&entry.path[..0], entry.path),
        };
        self.walk(directory)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let (from, to) = self.here();
        let name = OsStr::from_bytes(name);
        let copied = match entry.kind {
            EntryKind::Submodule => make_directory(to, name).map(|()| None),
            EntryKind::Link => copy_link(from, to, name, entry, &mut buffer).map(Some),
            EntryKind::File => copy_file(from, to, name, entry, 0o666, &mut buffer).map(Some),
            EntryKind::Executable => copy_file(from, to, name, entry, 0o777, &mut buffer).map(Some),
        };
        self.buffer = buffer;
        Ok(copied?.map(|stat| file_stat(&stat)))
    }

    fn here(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        match self.steps.last() {
            Some((_, from, to)) => (from.as_fd(), to.as_fd()),
            None => (self.roots.0.as_fd(), self.roots.1.as_fd()),
        }
    }

    /// Goes to a directory, making it on the one side.
    fn walk(&mut self, directory: &[u8]) -> io::Result<()> {
        let is_above = |above: &[u8]| {
            directory.starts_with(above)
                && directory.get(above.len()).is_none_or(|byte| *byte == b'/')
        };
        while self
            .steps
            .last()
            .is_some_and(|(above, ..)| !is_above(above))
        {
            self.steps.pop();
        }
        let mut reached = self.steps.last().map_or(0, |(above, ..)| above.len());
        while reached < directory.len() {
            let start = if reached == 0 { 0 } else { reached + 1 };
            let rest = &directory[start..];
            let end = start
                + rest
                    .iter()
                    .position(|byte| *byte == b'/')
                    .unwrap_or(rest.len());
            let name = OsStr::from_bytes(&directory[start..end]);
            let (from, to) = self.here();
            make_directory(to, name)?;
            let from = openat(from, name, DIRECTORY, Mode::empty())?;
            let to = openat(to, name, DIRECTORY, Mode::empty())?;
            self.steps.push((directory[..end].to_vec(), from, to));
            reached = end;
        }
        Ok(())
    }
}

fn make_directory(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    match mkdirat(at, name, Mode::from_bits_retain(0o777)) {
        // Another thread was faster.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn copy_link(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    name: &OsStr,
    entry: &IndexEntry<'_>,
    buffer: &mut Vec<u8>,
) -> io::Result<Stat> {
    let target = match readlinkat(from, name, Vec::new()) {
        // Without `core.symlinks` it is a file that holds the target.
        Err(Errno::INVAL) => return copy_file(from, to, name, entry, 0o666, buffer),
        target => target?,
    };
    symlinkat(&target, to, name)?;
    utimensat(to, name, &times(entry.modified), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(statat(to, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn copy_file(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    name: &OsStr,
    entry: &IndexEntry<'_>,
    mode: u32,
    buffer: &mut Vec<u8>,
) -> io::Result<Stat> {
    let source = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let copy = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let source = openat(from, name, source, Mode::empty())?;
    let copy = openat(to, name, copy, Mode::from_bits_retain(mode))?;
    copy_content(&source, &copy, u64::from(entry.size), buffer)?;
    futimens(&copy, &times(entry.modified))?;
    let stat = fstat(&copy)?;
    match stat.st_size as u32 == entry.size {
        true => Ok(stat),
        false => Err(io::Error::other(format!(
            "{} has another length than its index says",
            name.display()
        ))),
    }
}

/// Copies to the end of the source. What the file system won't do by itself is read and written.
fn copy_content(
    source: &OwnedFd,
    copy: &OwnedFd,
    expected: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    const AT_ONCE: usize = 1 << 30;
    let mut copied = 0;
    loop {
        // A length that fits into the index was seen by git; a longer file is copied until nothing comes.
        if copied == expected && expected < u64::from(u32::MAX) {
            return Ok(());
        }
        match copy_file_range(source, None, copy, None, AT_ONCE) {
            Ok(0) if copied == 0 && expected > 0 => break,
            Ok(0) => return Ok(()),
            Ok(length) => copied += length as u64,
            Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) if copied == 0 => {
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    buffer.resize(1 << 17, 0);
    loop {
        let length = read(source, &mut buffer[..])?;
        let mut rest = &buffer[..length];
        if rest.is_empty() {
            return Ok(());
        }
        while !rest.is_empty() {
            let written = write(copy, rest)?;
            rest = &rest[written..];
        }
    }
}

fn times(modified: (i64, u32)) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: modified.0,
            tv_nsec: modified.1.into(),
        },
    }
}

fn file_stat(stat: &Stat) -> FileStat {
    FileStat {
        changed: (stat.st_ctime, stat.st_ctime_nsec as u32),
        modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
        device: stat.st_dev,
        inode: stat.st_ino,
        user: stat.st_uid,
        group: stat.st_gid,
        size: stat.st_size as u64,
    }
}
