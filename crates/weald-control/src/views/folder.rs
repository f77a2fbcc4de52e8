//! Writing in the main checkout: no link is followed, and a file is there as a whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

/// A directory that is really where its path says.
pub(super) struct Folder(OwnedFd);

/// A file in the making. Dropped without [`Building::settle`] it leaves nothing.
pub(super) struct Building {
    folder: Folder,
    file: Option<File>,
    temporary: String,
    name: String,
}

const OPEN: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW);

impl Folder {
    /// The folder of a file below `root`, made if it is not there, and the file's name in it.
    pub(super) fn of<'p>(root: &Path, path: &'p str) -> io::Result<(Self, &'p str)> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let flags = OFlags::CLOEXEC | OFlags::DIRECTORY | OFlags::RDONLY;
        let mut folder = Self(openat(CWD, root, flags, Mode::empty())?);
        for part in above.split('/').filter(|part| !part.is_empty()) {
            folder = folder.enter(part)?;
        }
        Ok((folder, name))
    }

    /// Makes a folder below `root`.
    pub(super) fn make(root: &Path, path: &str) -> io::Result<()> {
        let (folder, name) = Self::of(root, path)?;
        folder.enter(name).map(drop)
    }

    fn enter(&self, name: &str) -> io::Result<Self> {
        match mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OPEN | OFlags::DIRECTORY | OFlags::RDONLY;
        match openat(&self.0, name, flags, Mode::empty()) {
            Ok(folder) => Ok(Self(folder)),
            Err(Errno::LOOP | Errno::NOTDIR) => Err(io::Error::other(format!(
                "{name} is not a directory, and weald does not follow links there"
            ))),
            Err(error) => Err(error.into()),
        }
    }

    /// A regular file, to write at its end.
    pub(super) fn append(&self, name: &str) -> io::Result<File> {
        let flags = OPEN | OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK;
        let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Begins a file beside its place.
    pub(super) fn build(self, name: &str) -> io::Result<Building> {
        let temporary = format!(".{name}.{}.new", std::process::id());
        let _ = unlinkat(&self.0, &*temporary, AtFlags::empty());
        let flags = OPEN | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let made = openat(&self.0, &*temporary, flags, Mode::from_raw_mode(0o666))?;
        Ok(Building {
            folder: self,
            file: Some(File::from(made)),
            temporary,
            name: name.to_owned(),
        })
    }

    /// Puts a file in its place.
    pub(super) fn replace(self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut building = self.build(name)?;
        building.file().write_all(bytes)?;
        building.settle().map(drop)
    }

    /// Makes a link, unless something has its name.
    pub(super) fn link(&self, name: &str, target: &Path) -> io::Result<()> {
        match symlinkat(target, &self.0, name) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a file, or a link itself.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Deletes a folder below `root` if it is empty, and then those above it.
    pub(super) fn remove_empty(root: &Path, path: &str) {
        let mut path = path;
        while !path.is_empty() {
            let removed = Self::of(root, path)
                .and_then(|(folder, name)| Ok(unlinkat(&folder.0, name, AtFlags::REMOVEDIR)?));
            if removed.is_err() {
                return;
            }
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// Gives whatever has this name another one, and answers it.
    pub(super) fn move_aside(&self, name: &str) -> io::Result<String> {
        for number in 1..1000_u32 {
            let aside = match number {
                1 => format!("{name}.before-weald"),
                number => format!("{name}.before-weald-{number}"),
            };
            match renameat_with(&self.0, name, &self.0, &*aside, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                moved => return Ok(moved.map(|()| aside)?),
            }
        }
        Err(io::Error::other("there is no free name to keep it under"))
    }
}

impl Building {
    pub(super) fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("taken by settle alone")
    }

    /// Puts it in its place.
    pub(super) fn settle(mut self) -> io::Result<File> {
        renameat(
            &self.folder.0,
            &*self.temporary,
            &self.folder.0,
            &*self.name,
        )?;
        Ok(self.file.take().expect("taken here alone"))
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = unlinkat(&self.folder.0, &*self.temporary, AtFlags::empty());
        }
    }
}
