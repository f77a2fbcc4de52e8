//! The files of a git directory, without git: read in bounds and without waiting, written so that they last.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::OFlags;

/// The largest pointer file (`.git`, `commondir`) that is read.
const POINTER_LIMIT: u64 = 64 * 1024;

/// The largest file of refs that is read without git: a run in a linked worktree can write main's.
const TEXT_LIMIT: u64 = 256 << 20;

/// Reads a small regular file; waits on no FIFO, reads no device.
pub(crate) fn read_small(file: &Path) -> io::Result<Vec<u8>> {
    let opened = open(file)?;
    let found = opened.metadata()?;
    if !found.is_file() || found.len() > POINTER_LIMIT {
        return Err(io::Error::other("it is no small regular file"));
    }
    let mut bytes = Vec::new();
    opened.take(POINTER_LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text of refs. What is no regular file is an error (`Unsupported`): opening a named pipe waits for ever.
pub(crate) fn read_text(file: impl AsRef<Path>) -> io::Result<String> {
    let opened = open(file.as_ref())?;
    let found = opened.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it is no regular file",
        ));
    }
    if found.len() > TEXT_LIMIT {
        return Err(io::Error::other("it is no file of usual size"));
    }
    let mut text = String::new();
    opened.take(TEXT_LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    let end = bytes
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    PathBuf::from(OsStr::from_bytes(&bytes[..end]))
}

/// Opens a file to read; on a FIFO it does not wait for a writer.
fn open(file: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(file)
}

/// Makes files and directories survive a power cut, at once: a journal takes them together.
pub(crate) fn sync_together(paths: &[PathBuf]) -> io::Result<()> {
    let sync = |path: &PathBuf| File::open(path)?.sync_all();
    thread::scope(|scope| {
        let started: Vec<_> = paths
            .iter()
            .map(|path| scope.spawn(move || sync(path)))
            .collect();
        let lost = |_| Err(io::Error::other("a thread was lost"));
        let mut ended = started.into_iter();
        ended.try_for_each(|one| one.join().unwrap_or_else(lost))
    })
}

/// Writes a new file that survives a power cut.
pub(crate) fn durable(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Puts a new file in the place of an old one: others see the old one or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let building = PathBuf::from(name);
    durable(&building, bytes)
        .and_then(|()| fs::rename(&building, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&building);
        })
}

pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
