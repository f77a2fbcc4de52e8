//! Deletes a directory that somebody else filled: as deep, wide and closed as it may be.
//!
//! No path is longer than one name, no link is followed, and a handful of descriptors is open at any depth: folders below
//! the first level are moved up into the directory itself and emptied there. So it ends after each folder was read once, and
//! what is remembered is a number a folder that waits. What is mounted somewhere in it is somebody else's and stays.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::ffi::CStr;
use rustix::fs::{AtFlags, CWD, Dir, IFlags, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use crate::mounted::mount_points;

/// How often a directory is read again that others still write to.
const ROUNDS: usize = 64;

/// Deletes a directory with everything in it; a link at its place goes, and what it leads to stays. What is closed is
/// opened first, and flags that forbid it are taken away where this process may. Nothing goes while something is mounted in
/// it.
pub fn delete_folder(path: &Path) -> io::Result<()> {
    refuse_mounts(path)?;
    let top = match open_folder(CWD, path) {
        Ok(top) => top,
        Err(Errno::LOOP | Errno::NOTDIR) if path.is_symlink() => return std::fs::remove_file(path),
        Err(error) => return Err(error.into()),
    };
    let mut deletion = Deletion {
        top,
        waiting: Vec::new(),
        next: 0,
    };
    for _ in 0..ROUNDS {
        deletion.empty_top()?;
        match rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(Errno::PERM) if unlock(&deletion.top) => {}
            done => return Ok(done?),
        }
    }
    let words = "it fills up again while it is deleted; something still works in it";
    Err(io::Error::other(words))
}

/// Says what is mounted in a directory. What is mounted later is noticed when it is opened.
fn refuse_mounts(path: &Path) -> io::Result<()> {
    // A link goes by itself, and what is not there holds no mount.
    let real = match path.is_symlink() {
        true => return Ok(()),
        false => path.canonicalize(),
    };
    let Ok(real) = real else {
        return Ok(());
    };
    let found = mount_points().find(|point| point.starts_with(&real));
    found.map_or(Ok(()), |point| {
        let point = point.display();
        let words = format!("{point} is a mount, so nothing was deleted (sudo umount {point})");
        Err(io::Error::new(io::ErrorKind::ResourceBusy, words))
    })
}

struct Deletion {
    top: OwnedFd,
    /// Folders that were moved up, by number.
    waiting: Vec<u64>,
    next: u64,
}

impl Deletion {
    fn empty_top(&mut self) -> io::Result<()> {
        for entry in Dir::read_from(&self.top)? {
            let entry = entry?;
            if is_folder(&self.top, entry.file_name())? {
                self.take_apart(entry.file_name())?;
                while let Some(number) = self.waiting.pop() {
                    self.take_apart(&*name_of(number))?;
                }
            }
        }
        Ok(())
    }

    /// Deletes a folder of the directory, and moves the folders in it up.
    fn take_apart(&mut self, name: impl rustix::path::Arg + Copy) -> io::Result<()> {
        let folder = match open_folder(self.top.as_fd(), name) {
            // Somebody else was quicker, or put something else there, which the next round finds.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(()),
            opened => opened?,
        };
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            if is_folder(&folder, entry.file_name())? {
                self.move_up(&folder, entry.file_name())?;
            }
        }
        match rustix::fs::unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
            Err(Errno::PERM) if unlock(&folder) | unlock(&self.top) => {
                Ok(rustix::fs::unlinkat(&self.top, name, AtFlags::REMOVEDIR)?)
            }
            // What others put there meanwhile is found by the next round.
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            done => Ok(done?),
        }
    }

    fn move_up(&mut self, folder: &OwnedFd, name: &CStr) -> io::Result<()> {
        // A folder can be moved elsewhere by a process that may write it.
        let mut locked = false;
        loop {
            let number = self.next;
            let moved = rustix::fs::renameat(folder, name, &self.top, &*name_of(number));
            match moved {
                Ok(()) => {
                    self.next += 1;
                    self.waiting.push(number);
                    return Ok(());
                }
                // Somebody has that name already.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => self.next += 1,
                Err(Errno::NOENT) => return Ok(()),
                Err(Errno::ACCESS | Errno::PERM) if !locked => {
                    locked = true;
                    let below = open_folder(folder.as_fd(), name)?;
                    let _ = unlock(&below) | unlock(folder) | unlock(&self.top);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What a folder is called that was moved up.
fn name_of(number: u64) -> String {
    format!(".weald-deleting-{number}")
}

/// Deletes an entry that is no folder or an empty one; true if it is one with something in it.
fn is_folder(folder: &OwnedFd, name: &CStr) -> io::Result<bool> {
    if matches!(name.to_bytes(), b"." | b"..") {
        return Ok(false);
    }
    let mut locked = false;
    loop {
        let gone = rustix::fs::unlinkat(folder, name, AtFlags::empty());
        let is_folder = match gone {
            Ok(()) | Err(Errno::NOENT) => return Ok(false),
            Err(Errno::ISDIR) => true,
            // What POSIX says of a folder, and Linux of what is immutable.
            Err(Errno::PERM) => {
                let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir()
            }
            Err(error) => return Err(error.into()),
        };
        if is_folder {
            let emptied = rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR);
            return Ok(!matches!(emptied, Ok(()) | Err(Errno::NOENT)));
        }
        if locked {
            return Err(Errno::PERM.into());
        }
        locked = true;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) {
            unlock(&file);
        }
        unlock(folder);
    }
}

/// Opens a folder, by no link, so that it can be read and written.
fn open_folder(at: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(at, name, flags | OFlags::RDONLY, Mode::empty());
    let folder = match open() {
        Err(Errno::ACCESS) => {
            // Its mode is changed through a descriptor: a name could be a link by then.
            let path = rustix::fs::openat(at, name, flags | OFlags::PATH, Mode::empty())?;
            let own = format!("/proc/self/fd/{}", path.as_raw_fd());
            rustix::fs::chmod(own, Mode::RWXU)?;
            open()?
        }
        opened => opened?,
    };
    let asked = StatxFlags::MODE;
    let found = rustix::fs::statx(&folder, "", AtFlags::EMPTY_PATH, asked)?;
    if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        return Err(Errno::XDEV);
    }
    let mode = Mode::from_raw_mode(found.stx_mode.into());
    if !mode.contains(Mode::RWXU) {
        // Where it may not be changed, what follows says why.
        let _ = rustix::fs::fchmod(&folder, Mode::RWXU);
    }
    Ok(folder)
}

/// Takes the flags away that keep something from being changed; true if there were some.
fn unlock(file: &OwnedFd) -> bool {
    let kept = IFlags::IMMUTABLE | IFlags::APPEND;
    match rustix::fs::ioctl_getflags(file) {
        Ok(flags) if flags.intersects(kept) => {
            rustix::fs::ioctl_setflags(file, flags.difference(kept)).is_ok()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Makes folders in folders, deeper than any path.
    fn deep(top: &Path, levels: usize) {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = rustix::fs::open(top, flags, Mode::empty()).unwrap();
        for level in 0..levels {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            let below = rustix::fs::openat(&at, "d", flags, Mode::empty()).unwrap();
            if level % 1000 == 0 {
                let made = OFlags::CREATE | OFlags::WRONLY;
                rustix::fs::openat(&at, "file", made, Mode::RUSR).unwrap();
            }
            at = below;
        }
    }

    /// In memory where that can be had: a disk takes minutes for so many folders.
    #[test]
    fn x22_twenty_thousand_levels_and_many_entries_go_with_few_descriptors() {
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let home = home.unwrap();
        let top = home.path().join("top");
        fs::create_dir(&top).unwrap();
        for number in 0..200_000 {
            let folder = top.join(format!("wide/{}", number / 2000));
            if number % 2000 == 0 {
                fs::create_dir_all(&folder).unwrap();
            }
            File::create(folder.join(number.to_string())).unwrap();
        }
        deep(&top, 20_000);
        let before = getrlimit(Resource::Nofile);
        let few = Rlimit {
            current: Some(64),
            ..before
        };
        setrlimit(Resource::Nofile, few).unwrap();
        let deleted = delete_folder(&top);
        setrlimit(Resource::Nofile, before).unwrap();
        deleted.unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn x22_odd_entries_go_and_what_links_lead_to_stays() {
        let home = tempfile::tempdir().unwrap();
        let (top, outside) = (home.path().join("top"), home.path().join("outside"));
        fs::create_dir_all(outside.join("kept")).unwrap();
        fs::create_dir_all(top.join("a/b/c/closed/below")).unwrap();
        // Names that are taken already: by a folder, a file and an empty folder.
        fs::create_dir_all(top.join(".weald-deleting-0/full")).unwrap();
        fs::write(top.join(".weald-deleting-1"), "").unwrap();
        fs::create_dir(top.join(".weald-deleting-2")).unwrap();
        for place in ["a/link", "a/b/link", "link"] {
            symlink(&outside, top.join(place)).unwrap();
        }
        rustix::fs::mkfifoat(CWD, top.join("a/fifo"), Mode::RUSR).unwrap();
        std::os::unix::net::UnixListener::bind(top.join("a/s")).unwrap();
        fs::write(top.join("a/b/name\n\u{1b}\u{fffd}"), "x").unwrap();
        for (place, mode) in [("a/b/c/closed", 0), ("a/b/c", 0o100), ("a", 0o400)] {
            fs::set_permissions(top.join(place), Permissions::from_mode(mode)).unwrap();
        }
        delete_folder(&top).unwrap();
        assert!(!top.exists());
        assert!(outside.join("kept").exists());
        let link = home.path().join("link");
        symlink(&outside, &link).unwrap();
        delete_folder(&link).unwrap();
        assert!(!link.is_symlink() && outside.join("kept").exists());
        fs::write(&link, "a file").unwrap();
        assert!(delete_folder(&link).is_err());
        assert!(link.exists());
        assert_eq!(
            delete_folder(&top).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    /// In a mount namespace of a thread's own, which needs root.
    #[test]
    fn x22_what_is_mounted_in_it_stays() {
        let home = tempfile::tempdir().unwrap();
        let (top, outside) = (home.path().join("top"), home.path().join("outside"));
        fs::create_dir_all(top.join("deep/mounted")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "x").unwrap();
        let (from, to) = (outside.clone(), top.join("deep/mounted"));
        let target = top.clone();
        let looked = std::thread::spawn(move || {
            if crate::sys::unshare(libc::CLONE_NEWNS).is_err() {
                return io::Result::Ok(None);
            }
            crate::sys::make_mounts_private()?;
            crate::sys::attach_mount(&crate::sys::clone_mount(&from)?, &to)?;
            let before = delete_folder(&target).map_err(|error| error.to_string());
            let opened = open_folder(CWD, &to).map(|_| ());
            Ok(Some((before, opened)))
        });
        let Some((refused, opened)) = looked.join().unwrap().unwrap() else {
            return weald_testkit::skipped("a mount namespace needs root");
        };
        let refused = refused.unwrap_err();
        assert!(refused.contains("deep/mounted"), "{refused}");
        assert_eq!(opened, Err(Errno::XDEV));
        assert!(outside.join("precious").exists());
        delete_folder(&top).unwrap();
    }

    #[test]
    fn x22_what_is_immutable_goes_where_this_process_may() {
        let home = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let top = home.path().join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        for place in ["a/b/file", "a/file", "file"] {
            fs::write(top.join(place), "x").unwrap();
        }
        let mut locked = 0;
        for place in ["a/b/file", "a/b", "a", "file", ""] {
            let file: OwnedFd = File::open(top.join(place)).unwrap().into();
            let flags = rustix::fs::ioctl_getflags(&file);
            let set =
                flags.and_then(|it| rustix::fs::ioctl_setflags(&file, it | IFlags::IMMUTABLE));
            locked += usize::from(set.is_ok());
        }
        if locked == 0 {
            weald_testkit::skipped("nothing can be made immutable here");
        }
        delete_folder(&top).unwrap();
        assert!(!top.exists());
    }
}
