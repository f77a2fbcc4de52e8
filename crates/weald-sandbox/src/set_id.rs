//! Takes from files what would let other users run them with the rights of whoever made them.
//!
//! The filter of system calls refuses set-user-id modes, and set-group-id ones of new files. `chmod` may set the group's
//! bit, which directories of shared repositories need; so files that got it are found when the run has ended.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::ffi::CStr;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::policy::Policy;

/// The bits.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

/// Folders below this are closed to others instead of being searched.
const DEEPEST: usize = 200;

/// A time as files have it: seconds and nanoseconds.
type Moment = (i64, i64);

/// What a run may write and others can reach. Dropping it strips the files in there that the run changed.
pub struct Reachable {
    folders: Vec<PathBuf>,
    search: Search,
}

/// What is looked for.
#[derive(Default)]
struct Search {
    /// Whatever had such a bit before keeps it.
    since: Option<Moment>,
    /// Folders that the run did not see: device and inode.
    unseen: Vec<(u64, u64)>,
}

impl Reachable {
    /// What there is of it when a run begins.
    pub fn of(policy: &Policy) -> Option<Self> {
        let folders = policy.write.iter().filter(|path| is_reachable(path));
        let folders: Vec<_> = folders.filter(|_| !policy.read_only).cloned().collect();
        // The clock that times of files come from.
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let masked = policy.mask.iter().filter_map(|path| path.metadata().ok());
        let search = Search {
            since: Some((now.tv_sec, now.tv_nsec)),
            unseen: masked.map(|found| (found.dev(), found.ino())).collect(),
        };
        (!folders.is_empty()).then_some(Self { folders, search })
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        for folder in &self.folders {
            // What can't be read by its owner was not made by the run.
            let _ = strip_in(folder, &self.search);
        }
    }
}

/// Takes set-user-id and set-group-id bits from the files below a directory. Directories keep theirs. No link is followed;
/// a folder that can't be searched is closed to others.
pub fn strip_set_id(folder: &Path) -> io::Result<()> {
    strip_in(folder, &Search::default())
}

fn strip_in(folder: &Path, search: &Search) -> io::Result<()> {
    strip(&open_folder(CWD, folder)?, search, 0)
}

fn strip(folder: &OwnedFd, search: &Search, depth: usize) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => kind_of(folder, name)?,
            known => known,
        };
        match kind {
            FileType::Directory => strip_below(folder, name, search, depth)?,
            FileType::RegularFile => strip_file(folder, name, search)?,
            _ => {}
        }
    }
    Ok(())
}

fn kind_of(folder: &OwnedFd, name: &CStr) -> io::Result<FileType> {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode))
}

fn strip_below(folder: &OwnedFd, name: &CStr, search: &Search, depth: usize) -> io::Result<()> {
    if depth < DEEPEST
        && let Ok(below) = open_folder(folder.as_fd(), name)
    {
        let found = rustix::fs::fstat(&below)?;
        return match search.unseen.contains(&(found.st_dev, found.st_ino)) {
            true => Ok(()),
            false => strip(&below, search, depth + 1),
        };
    }
    let handle = open_handle(folder, name)?;
    let found = handle.metadata()?;
    match found.is_dir() && is_own(&found) {
        true => set_mode(&handle, found.mode() & 0o700),
        false => Ok(()),
    }
}

fn strip_file(folder: &OwnedFd, name: &CStr, search: &Search) -> io::Result<()> {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if found.st_mode & SET_ID == 0 {
        return Ok(());
    }
    let handle = open_handle(folder, name)?;
    let found = handle.metadata()?;
    let is_new = search
        .since
        .is_none_or(|since| (found.ctime(), found.ctime_nsec()) >= since);
    match found.is_file() && is_new && is_own(&found) {
        true => set_mode(&handle, found.mode() & 0o7777 & !SET_ID),
        false => Ok(()),
    }
}

/// Files of others were not made by the run.
fn is_own(found: &std::fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

fn open_folder(at: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
}

fn open_handle(folder: &OwnedFd, name: &CStr) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?.into())
}

fn set_mode(handle: &File, mode: u32) -> io::Result<()> {
    let named = format!("/proc/self/fd/{}", handle.as_raw_fd());
    std::fs::set_permissions(named, PermissionsExt::from_mode(mode))
}

/// Whether every folder on the way lets somebody else through.
fn is_reachable(path: &Path) -> bool {
    let mut found = path.ancestors().map(Path::metadata);
    found.all(|found| found.is_ok_and(|found| found.mode() & 0o011 != 0))
}
