//! Small files: read with a bound, replaced as a whole, edited under a lock.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Opens a file of weald's own: a link in its place is not followed, and nothing but a regular file is waited for or written.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use rustix::io::Errno;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits() as i32).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => io::Error::other("it is a symbolic link"),
        // A FIFO that nobody reads.
        Some(Errno::NXIO) => io::Error::other("it is not a regular file"),
        _ => error,
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Whether two paths lead to one directory.
pub fn same_directory(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    number(one).is_some() && number(one) == number(other)
}

/// Whether a program can be started from there: a file, or a link to one, that may be executed.
pub fn is_program(path: &Path) -> bool {
    let found = path.metadata();
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Opens a lock of weald's own, made if there is none. The error names it: it stands for something else.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let opened = open_own(options.create(true).truncate(false).write(true), path);
    opened.map_err(|error| {
        let name = path.file_name().unwrap_or_default().display();
        io::Error::new(error.kind(), format!("its lock {name}: {error}"))
    })
}

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
        return Err(io::Error::other("it is not a regular file"));
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
    read_small_bytes(path, u64::MAX)
}

/// Writes a file beside its place and renames it there: others see the old one or the new one.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_bytes(path, text.as_bytes())
}

/// The same for any bytes.
pub fn replace_bytes(path: &Path, text: &[u8]) -> io::Result<()> {
    replace_with(path, text, |_| Ok(()))
}

/// The same, with the mode of what was there.
pub fn replace_like(path: &Path, text: &[u8]) -> io::Result<()> {
    let known = path.metadata().ok().map(|found| found.permissions());
    replace_with(path, text, |file| {
        known.map_or(Ok(()), |mode| file.set_permissions(mode))
    })
}

/// The same, with the owner and the mode of what was there; fails if they can't be kept.
pub fn replace_as_owned(path: &Path, text: &[u8]) -> io::Result<()> {
    let known = path.metadata().ok();
    replace_with(path, text, |file| {
        let Some(known) = &known else {
            return Ok(());
        };
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (known.uid(), known.gid()) {
            fchown(file, Some(known.uid()), Some(known.gid()))
                .map_err(|error| io::Error::new(error.kind(), "its owner can't be kept"))?;
        }
        // After the owner, whose change takes bits off.
        file.set_permissions(known.permissions())
    })
}

/// The same for a file that nobody else reads.
pub fn replace_private(path: &Path, text: &[u8]) -> io::Result<()> {
    replace_with(path, text, |file| {
        file.set_permissions(fs::Permissions::from_mode(0o600))
    })
}

fn replace_with(
    path: &Path,
    text: &[u8],
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    // By thread: two of this process may write the same file.
    name.push(format!(
        ".{}.new",
        rustix::thread::gettid().as_raw_nonzero()
    ));
    let building = PathBuf::from(name);
    // A new file only: whatever lies there, a link too, is not written through.
    let _ = fs::remove_file(&building);
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&building);
    let written = made
        .and_then(|mut file| {
            prepare(&file)?;
            file.write_all(text)
        })
        .and_then(|()| fs::rename(&building, path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&building);
    })
}

/// How long an edit may take that another one waits for.
const EDIT_LIMIT: Duration = Duration::from_secs(20);

/// Takes a lock, and waits no longer than `limit`: then the error names the process that holds it.
pub fn lock_within(file: &File, limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_micros(200);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                let message = format!("locked by {} for {limit:?}", holder_of(file));
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The process that holds a lock on a file, in words.
fn holder_of(file: &File) -> String {
    let unseen = || "a process that can't be seen from here".to_owned();
    holder_pid(file).map_or_else(unseen, described)
}

/// The process that holds a lock on a file, by the kernel's own list.
pub fn holder_pid(file: &File) -> Option<u32> {
    let number = file.metadata().map(|found| found.ino()).unwrap_or(0);
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    weald_core::store::lock_holder(&table, number)
}

/// A process in words.
pub fn described(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("process {pid} ({})", name.trim())
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
    let lock = open_lock(&PathBuf::from(name))?;
    lock_within(&lock, EDIT_LIMIT)?;
    let done = edit();
    (&lock).flush()?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn x18_a_wait_for_a_lock_ends_and_names_who_holds_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a.lock");
        let held = open_lock(&path).unwrap();
        lock_within(&held, Duration::ZERO).unwrap();
        let other = open_lock(&path).unwrap();
        let error = lock_within(&other, Duration::from_millis(30)).unwrap_err();
        let me = format!("process {}", std::process::id());
        assert!(error.to_string().contains(&me), "{error}");
        drop(held);
        lock_within(&other, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_program_is_a_file_that_may_be_executed() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in [("text", 0o644), ("program", 0o711)] {
            fs::write(at(name), "").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
            symlink(name, at(&format!("to-{name}"))).unwrap();
        }
        symlink("nothing", at("to-nothing")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        for (name, is) in [
            ("program", true),
            ("to-program", true),
            ("text", false),
            ("to-text", false),
            ("to-nothing", false),
            ("nothing", false),
            ("folder", false),
        ] {
            assert_eq!(is_program(&at(name)), is, "{name}");
        }
    }
}
