//! Small files: read with a bound, replaced as a whole, edited under a lock.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Reads a text file of at most `limit` bytes; `None` if there is none. Waits on no FIFO and reads no device.
pub fn read_small(path: &Path, limit: u64) -> io::Result<Option<String>> {
    let Some(bytes) = read_small_bytes(path, limit)? else {
        return Ok(None);
    };
    let odd = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    String::from_utf8(bytes).map(Some).map_err(odd)
}

/// The same for any bytes.
pub fn read_small_bytes(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if found.len() > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Reads a regular file of any size; `None` if there is none. Waits on no FIFO.
pub fn read_bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    let mut file = match options.read(true).custom_flags(nonblocking).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Writes a file beside its place and renames it there: others see the old one or the new one.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_bytes(path, text.as_bytes())
}

/// The same for any bytes.
pub fn replace_bytes(path: &Path, text: &[u8]) -> io::Result<()> {
    replace_with(path, text, None)
}

/// The same, with the mode of what was there.
pub fn replace_like(path: &Path, text: &[u8]) -> io::Result<()> {
    let known = path.metadata().ok().map(|found| found.permissions());
    replace_with(path, text, known)
}

fn replace_with(path: &Path, text: &[u8], mode: Option<fs::Permissions>) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let building = PathBuf::from(name);
    // A new file only: whatever lies there, a link too, is not written through.
    let _ = fs::remove_file(&building);
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&building);
    let written = made
        .and_then(|mut file| {
            mode.map_or(Ok(()), |mode| file.set_permissions(mode))?;
            file.write_all(text)
        })
        .and_then(|()| fs::rename(&building, path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&building);
    })
}

/// Runs `edit` while no other process edits `path`. Makes the directory, for nobody else to see, if there is none.
pub fn edit_alone<T>(path: &Path, edit: impl FnOnce() -> T) -> io::Result<T> {
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock: File = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(PathBuf::from(name))?;
    lock.lock()?;
    let done = edit();
    (&lock).flush()?;
    Ok(done)
}
