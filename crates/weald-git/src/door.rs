//! Opening and writing files in a directory that somebody else may write.
//!
//! Nothing is followed: no link, no mount, no way up. Nothing is waited for: a FIFO or a device is no file here. What is
//! larger than the caller's limit is refused. All by the kernel (`openat2`), so there is no moment between a check and
//! the use.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, renameat,
    unlinkat,
};

/// Why a file behind the door was not read.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// It is not there.
    #[error("{} is not there", .path.display())]
    Absent {
        /// Relative to the door.
        path: PathBuf,
    },
    /// It is a link, a FIFO, a device, a directory, or too large.
    #[error("{} is not a small regular file: {reason}", .path.display())]
    Odd {
        /// Relative to the door.
        path: PathBuf,
        reason: String,
    },
}

pub(crate) const STRICT: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Opens what is below a directory without following a link. Inside a sandbox the filter refuses `openat2`, whose arguments
/// it can't read; there each part of the path is opened by itself, and none of them may be a link.
fn open_strictly(directory: &OwnedFd, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    use rustix::io::Errno;
    match openat2(directory, path, flags, Mode::empty(), STRICT) {
        Err(Errno::NOSYS) => {}
        opened => return opened,
    }
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let Some((last, folders)) = parts.split_last() else {
        return Err(Errno::NOENT);
    };
    if path.starts_with('/') || parts.iter().any(|part| matches!(*part, "." | "..")) {
        return Err(Errno::XDEV);
    }
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = directory.try_clone().map_err(|_| Errno::MFILE)?;
    for part in folders {
        folder = openat(&folder, *part, way, Mode::empty())?;
    }
    let opened = openat(&folder, *last, flags | OFlags::NOFOLLOW, Mode::empty())?;
    match FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(opened),
    }
}

/// A directory of somebody else's.
#[derive(Debug)]
pub struct Door {
    pub(crate) directory: OwnedFd,
    device: u64,
    inode: u64,
    born: Option<u64>,
}

/// What shows that a file was written, or another one put in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileTrace {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileTrace {
    /// When it was written, in seconds since 1970.
    pub fn written(&self) -> i64 {
        self.modified.0
    }
}

/// When a file was made, in nanoseconds since 1970, if the file system says.
pub fn born(found: &std::fs::Metadata) -> Option<u64> {
    let since = found
        .created()
        .ok()?
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?;
    u64::try_from(since.as_nanos()).ok()
}

/// The file system of a directory, as it is called after the next start of the machine, too: btrfs gives each subvolume
/// another device number with every mount, and all their tops the same number.
pub fn device(path: &Path, found: &std::fs::Metadata) -> u64 {
    const BTRFS: i64 = 0x9123_683E;
    let is_anonymous = rustix::fs::major(found.dev()) == 0;
    let is_btrfs =
        is_anonymous && rustix::fs::statfs(path).is_ok_and(|system| system.f_type == BTRFS);
    match is_btrfs.then(|| rustix::fs::statvfs(path)) {
        Some(Ok(system)) => system.f_fsid,
        _ => found.dev(),
    }
}

impl Door {
    /// Opens the directory itself; a link in its last component is refused.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let directory = File::from(openat(CWD, path, flags, Mode::empty())?);
        let found = directory.metadata()?;
        Ok(Self {
            directory: directory.into(),
            device: device(path, &found),
            inode: found.ino(),
            born: born(&found),
        })
    }

    /// The file system of the directory, its number there, and when it was made.
    pub fn identity(&self) -> (u64, u64, Option<u64>) {
        (self.device, self.inode, self.born)
    }

    /// Reads a regular file of at most `limit` bytes.
    pub fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, DoorError> {
        let odd = |reason: String| DoorError::Odd {
            path: path.into(),
            reason,
        };
        let mut file = self.find(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let found = file.metadata().map_err(|error| odd(error.to_string()))?;
        if !found.is_file() {
            return Err(odd("it is no regular file".to_owned()));
        }
        if found.len() > limit {
            return Err(odd(format!("it is larger than {limit} bytes")));
        }
        // A regular file that gives less than there is room for has ended.
        let mut bytes = vec![0; found.len() as usize + 1];
        let mut length = 0;
        loop {
            let read = file.read(&mut bytes[length..]);
            length += match read.map_err(|error| odd(error.to_string()))? {
                0 => break,
                read => read,
            };
            if length <= found.len() as usize {
                break;
            }
        }
        bytes.truncate(length.min(found.len() as usize));
        Ok(bytes)
    }

    /// Opens a regular file to be read, however large it is.
    pub fn open_file(&self, path: &str) -> Result<File, DoorError> {
        let file = self.find(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        match file.metadata().is_ok_and(|found| found.is_file()) {
            true => Ok(file),
            false => Err(DoorError::Odd {
                path: path.into(),
                reason: "it is no regular file".to_owned(),
            }),
        }
    }

    /// True when there is nothing at `path`, whatever it would be.
    pub fn is_absent(&self, path: &str) -> bool {
        matches!(self.find(path, OFlags::PATH), Err(DoorError::Absent { .. }))
    }

    /// The names in a folder, each with whether it is a folder; `None` if it can't be read, or holds more than `limit`.
    pub fn names(&self, path: &str, limit: usize) -> Option<Vec<(String, bool)>> {
        let folder = self.find(path, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        let mut names = Vec::new();
        for entry in Dir::new(folder).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name().to_str().ok()?.to_owned();
            if !matches!(name.as_str(), "." | "..") {
                names.push((name, entry.file_type() == FileType::Directory));
            }
            if names.len() > limit {
                return None;
            }
        }
        Some(names)
    }

    /// True when `path` is a directory, reached without a link.
    pub fn has_directory(&self, path: &str) -> bool {
        self.find(path, OFlags::PATH | OFlags::DIRECTORY).is_ok()
    }

    /// What shows later whether `path` was changed; `None` if there is none.
    pub fn trace(&self, path: &str) -> Option<FileTrace> {
        let found = self.find(path, OFlags::PATH).ok()?.metadata().ok()?;
        Some(FileTrace {
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }

    /// How long ago `path` was changed; `None` if there is none.
    pub fn age(&self, path: &str) -> Option<std::time::Duration> {
        let found = self.find(path, OFlags::PATH).ok()?.metadata().ok()?;
        found.modified().ok()?.elapsed().ok()
    }

    /// Writes a file: beside its place, then renamed there. Folders on the way are made; a link in the way is refused.
    pub fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_as(path, bytes, 0o666)
    }

    /// The same, with the permissions that it gets at most.
    pub fn write_as(&self, path: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        let building = format!("{name}.{}.new", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let _ = unlinkat(&folder, &building, AtFlags::empty());
        let mode = Mode::from_bits_retain(mode);
        let made = openat(&folder, &building, flags | OFlags::CLOEXEC, mode)?;
        let written = File::from(made)
            .write_all(bytes)
            .and_then(|()| Ok(renameat(&folder, &building, &folder, name)?));
        written.inspect_err(|_| {
            let _ = unlinkat(&folder, &building, AtFlags::empty());
        })
    }

    /// Writes a file at `building` by `fill`, and moves it to `path` once it is on disk; what is there is replaced. Folders
    /// on both ways are made; a link in the way is refused.
    pub fn place<E: From<io::Error>>(
        &self,
        building: &str,
        path: &str,
        fill: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<(), E> {
        let (workshop, temporary) = self.folder_of(building)?;
        let (folder, name) = self.folder_of(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_bits_retain(0o666);
        let made = openat(&workshop, temporary, flags | OFlags::CLOEXEC, mode);
        let mut file = File::from(made.map_err(io::Error::from)?);
        let placed = fill(&mut file).and_then(|()| {
            file.sync_all()?;
            renameat(&workshop, temporary, &folder, name).map_err(io::Error::from)?;
            for (end, _) in path.match_indices('/') {
                self.sync(&path[..end])?;
            }
            Ok(())
        });
        placed.inspect_err(|_| {
            let _ = unlinkat(&workshop, temporary, AtFlags::empty());
        })
    }

    /// Takes a file or a link away; nothing if there is none.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        match unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a regular file or a folder survive a power cut; nothing if there is none.
    pub fn sync(&self, path: &str) -> io::Result<()> {
        match self.find(path, OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(file) => file.sync_all(),
            Err(DoorError::Absent { .. }) => Ok(()),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    /// Makes a folder, and those on the way to it.
    pub fn make_folder(&self, path: &str) -> io::Result<()> {
        self.folder_of(&format!("{path}/.")).map(drop)
    }

    /// The folder of a path, made if there is none, and the last part of the path.
    fn folder_of<'a>(&self, path: &'a str) -> io::Result<(OwnedFd, &'a str)> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = self.directory.try_clone()?;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            match mkdirat(&folder, part, Mode::from_bits_retain(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            folder = open_strictly(&folder, part, flags)?;
        }
        Ok((folder, name))
    }

    /// How far an existing `path` leads without leaving: true if all of it stays below.
    pub fn holds(&self, path: &Path) -> io::Result<bool> {
        let found = openat2(
            &self.directory,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        );
        match found {
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::XDEV | rustix::io::Errno::LOOP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn find(&self, path: &str, flags: OFlags) -> Result<File, DoorError> {
        let flags = flags | OFlags::CLOEXEC;
        match open_strictly(&self.directory, path, flags) {
            Ok(fd) => Ok(File::from(fd)),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {
                Err(DoorError::Absent { path: path.into() })
            }
            Err(error) => Err(DoorError::Odd {
                path: path.into(),
                reason: io::Error::from(error).to_string(),
            }),
        }
    }
}
