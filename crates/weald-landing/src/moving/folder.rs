//! A directory held by a handle: files below it are looked at and renamed without following a link.
//!
//! Checkouts belong to somebody who may change them at any moment, and a tree's agent may even want to. Every path is
//! resolved by the kernel below the handle; a link or a mount on the way ends it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, chmodat, mkdirat,
    openat, openat2, readlinkat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use weald_git::{FileStat, blob_id};

/// What a file was when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub inode: u64,
    pub mode: u32,
    pub size: i64,
    /// When it was written.
    pub modified: (i64, u64),
    /// When its inode changed; a rename changes that, too.
    pub changed: (i64, u64),
}

impl Stamp {
    /// The same file with the same content, perhaps at another place.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        let content = |stamp: &Self| (stamp.inode, stamp.mode, stamp.size, stamp.modified);
        content(self) == content(other)
    }

    pub(super) fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }
}

#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

const STRICT: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The folders on the way to a path, outermost first.
pub(super) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate();
    ends.filter(|(_, byte)| **byte == b'/')
        .map(|(end, _)| &path[..end])
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b".", path),
    }
}

fn stamp_of(found: &Stat) -> Stamp {
    Stamp {
        inode: found.st_ino,
        mode: found.st_mode,
        size: found.st_size,
        modified: (found.st_mtime, found.st_mtime_nsec),
        changed: (found.st_ctime, found.st_ctime_nsec),
    }
}

fn stat_of(found: &Stat) -> FileStat {
    FileStat {
        changed: (found.st_ctime, found.st_ctime_nsec as u32),
        modified: (found.st_mtime, found.st_mtime_nsec as u32),
        device: found.st_dev,
        inode: found.st_ino,
        user: found.st_uid,
        group: found.st_gid,
        size: found.st_size as u64,
    }
}

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, FLAGS, Mode::empty())?))
    }

    fn parent<'p>(&self, path: &'p [u8]) -> rustix::io::Result<(OwnedFd, &'p [u8])> {
        let (folder, name) = split(path);
        // The kernel may want another try when something is renamed meanwhile.
        for _ in 0..16 {
            match openat2(&self.0, folder, FLAGS, Mode::empty(), STRICT) {
                Err(Errno::AGAIN) => {}
                opened => return Ok((opened?, name)),
            }
        }
        Err(Errno::AGAIN)
    }

    /// What is at a path; `None` if nothing is, or nothing that could be reached without a link.
    pub(super) fn stamp(&self, path: &[u8]) -> io::Result<Option<Stamp>> {
        Ok(self.look(path)?.map(|(stamp, _)| stamp))
    }

    /// The same, and what an index keeps of it.
    pub(super) fn look(&self, path: &[u8]) -> io::Result<Option<(Stamp, FileStat)>> {
        let found = self
            .parent(path)
            .and_then(|(folder, name)| statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW));
        match found {
            Ok(found) => Ok(Some((stamp_of(&found), stat_of(&found)))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The id that git would give to what is at a path, as it is there; `None` if that is nothing that can be read.
    pub(super) fn blob_id(&self, path: &[u8], is_sha256: bool) -> io::Result<Option<String>> {
        let Some(stamp) = self.stamp(path)? else {
            return Ok(None);
        };
        let id = match FileType::from_raw_mode(stamp.mode) {
            FileType::Symlink => {
                let (folder, name) = self.parent(path)?;
                let target = readlinkat(&folder, name, Vec::new())?.into_bytes();
                blob_id(target.as_slice(), target.len() as u64, is_sha256)?
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = match openat2(&self.0, path, flags, Mode::empty(), STRICT) {
                    Err(Errno::ACCESS | Errno::LOOP | Errno::NOENT) => return Ok(None),
                    opened => File::from(opened?),
                };
                blob_id(file, stamp.size as u64, is_sha256)?
            }
            _ => return Ok(None),
        };
        Ok(Some(id))
    }

    /// The names in a directory.
    pub(super) fn names(&self, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let folder = openat2(&self.0, path, FLAGS, Mode::empty(), STRICT)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Makes a folder; one that is there is fine.
    pub(super) fn make(&self, path: &[u8], mode: Option<u32>) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        let bits = Mode::from_bits_retain(mode.unwrap_or(0o777) & 0o7777);
        match mkdirat(&folder, name, bits) {
            Ok(()) => match mode {
                // Not what the umask left of it, but what it was.
                Some(_) => Ok(chmodat(&folder, name, bits, AtFlags::empty())?),
                None => Ok(()),
            },
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a folder away if it is empty; answers whether it is gone.
    pub(super) fn remove_empty(&self, path: &[u8]) -> io::Result<bool> {
        let removed = self
            .parent(path)
            .and_then(|(folder, name)| unlinkat(&folder, name, AtFlags::REMOVEDIR));
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::BUSY) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames a file to a free place in another folder; answers false if it is taken.
    pub(super) fn give(&self, path: &[u8], to: &Self, place: &[u8]) -> io::Result<bool> {
        match self.rename(path, to, place, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(false),
            other => other.map(|()| true).map_err(Into::into),
        }
    }

    /// Lets two files change places.
    pub(super) fn exchange(&self, path: &[u8], with: &Self, place: &[u8]) -> io::Result<()> {
        Ok(self.rename(path, with, place, RenameFlags::EXCHANGE)?)
    }

    fn rename(
        &self,
        path: &[u8],
        to: &Self,
        place: &[u8],
        flags: RenameFlags,
    ) -> rustix::io::Result<()> {
        let (from_folder, from_name) = self.parent(path)?;
        let (to_folder, to_name) = to.parent(place)?;
        renameat_with(&from_folder, from_name, &to_folder, to_name, flags)
    }

    /// Makes the entries of a folder survive a power cut; one that is gone needs nothing.
    pub(super) fn sync(&self, path: &[u8]) -> io::Result<()> {
        match openat2(&self.0, path, FLAGS, Mode::empty(), STRICT) {
            Ok(folder) => File::from(folder).sync_all(),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a regular file survive a power cut; links are part of their folder.
    pub(super) fn sync_file(&self, path: &[u8]) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat2(&self.0, path, flags, Mode::empty(), STRICT) {
            Ok(file) => File::from(file).sync_all(),
            Err(Errno::LOOP | Errno::NOENT | Errno::ACCESS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_followed_and_nothing_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (home.path().join("one"), home.path().join("two"));
        fs::create_dir_all(one.join("d")).unwrap();
        fs::create_dir(&two).unwrap();
        symlink(&two, one.join("link")).unwrap();
        fs::write(one.join("d/a"), "a").unwrap();
        fs::write(two.join("b"), "b").unwrap();
        let (from, to) = (Folder::open(&one).unwrap(), Folder::open(&two).unwrap());
        assert!(from.stamp(b"d/a").unwrap().is_some());
        assert!(from.stamp(b"link/b").unwrap().is_none());
        assert!(from.stamp(b"d/a/x").unwrap().is_none());
        assert!(!from.give(b"d/a", &to, b"b").unwrap());
        assert!(from.make(b"link/new", None).is_err());
        let before = from.stamp(b"d/a").unwrap().unwrap();
        from.exchange(b"d/a", &to, b"b").unwrap();
        assert!(to.stamp(b"b").unwrap().unwrap().is_same_file(&before));
        assert_eq!(fs::read(one.join("d/a")).unwrap(), b"b");
        assert!(!from.remove_empty(b"d").unwrap());
        assert!(from.give(b"d/a", &to, b"c").unwrap());
        assert!(from.remove_empty(b"d").unwrap());
        assert!(Folder::open(&one.join("link")).is_err());
    }

    #[test]
    fn the_folders_on_the_way() {
        let found: Vec<_> = ancestors(b"a/b/c").collect();
        assert_eq!(found, [&b"a"[..], &b"a/b"[..]]);
        assert_eq!(ancestors(b"a").count(), 0);
    }
}
