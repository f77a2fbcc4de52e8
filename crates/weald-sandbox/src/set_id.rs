//! Takes from files what would let other users run them with the rights of the user who made them.
//!
//! The filter of system calls refuses set-user-id modes, and set-group-id ones of new files. `chmod` may set the group's
//! bit, which directories of shared repositories need; so files that got it are found when the run has ended.
//!
//! What a run left may be as deep, wide and closed as it likes: a handful of descriptors is open at any depth, folders that
//! their owner may not search are opened for the search, and one problem does not end it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::ffi::CStr;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::folders;
use crate::policy::{Level, Policy};

const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

/// What an owner needs to search a folder.
const SEARCHED: u32 = libc::S_IRUSR | libc::S_IXUSR;

/// A time as files have it: seconds and nanoseconds.
type Moment = (i64, i64);

type Identity = (u64, u64);

/// What a run may write. Files in there that the run changed are stripped when it has ended, if others can reach them then.
pub struct Reachable {
    folders: Vec<Written>,
    /// When the run began.
    since: Moment,
    /// Folders that the run did not see.
    unseen: Vec<Identity>,
}

/// A folder that a run may write.
struct Written {
    path: PathBuf,
    /// Holds on to it, whatever becomes of its name.
    folder: OwnedFd,
    /// Files that had such a bit before the run keep it. Not where nobody else could use it until the run opened the way,
    /// and not where only runs write: an earlier one may have planted it.
    keeps_old: bool,
}

/// What is looked for.
#[derive(Default)]
struct Search<'s> {
    /// Whatever had such a bit before keeps it.
    since: Option<Moment>,
    unseen: &'s [Identity],
}

impl Reachable {
    /// What there is to write when a run begins.
    pub fn of(policy: &Policy) -> Option<Self> {
        let given = policy.write.iter().filter(|_| !policy.read_only);
        let revealed = policy.reveal.iter().filter(|it| it.writable);
        let shared = given.chain(revealed.map(|it| &it.path));
        let shared = shared.filter_map(|path| Written::open(path, is_reachable(path)));
        let mut folders: Vec<_> = shared.collect();
        // At level landlock the way to these can be opened by `chmod`. What a run at level full left in the layer is there, too.
        let own = match policy.level {
            Level::Full => Vec::new(),
            Level::Landlock => folders::writable(policy),
        };
        let own = own.iter().filter_map(|path| path.ancestors().nth(2));
        let mut own: Vec<_> = own.chain(policy.tmp.as_deref()).collect();
        own.dedup();
        folders.extend(
            own.into_iter()
                .filter_map(|path| Written::open(path, false)),
        );
        // The clock that times of files come from.
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let masked = policy.mask.iter().filter(|_| policy.level == Level::Full);
        let masked = masked.filter_map(|path| path.metadata().ok());
        let reachable = Self {
            folders,
            since: (now.tv_sec, now.tv_nsec),
            unseen: masked.map(|found| (found.dev(), found.ino())).collect(),
        };
        (!reachable.folders.is_empty()).then_some(reachable)
    }

    /// Strips what the run left.
    pub fn strip(mut self) -> io::Result<()> {
        self.strip_all()
    }

    fn strip_all(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for it in std::mem::take(&mut self.folders) {
            let name = std::fs::read_link(named(&it.folder));
            if !is_reachable(&name.unwrap_or_else(|_| it.path.clone())) {
                continue;
            }
            let search = Search {
                since: it.keeps_old.then_some(self.since),
                unseen: &self.unseen,
            };
            let stripped = open_top(&it.folder).and_then(|top| search.strip(top));
            result = result.and(stripped.map_err(|error| unsearched(&it.path, &error)));
        }
        result
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        // After a run that did not even end as it should there is nobody left to report to.
        let _ = self.strip_all();
    }
}

impl Written {
    fn open(path: &Path, keeps_old: bool) -> Option<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = File::options().read(true).custom_flags(flags).open(path);
        let folder = folder.ok()?.into();
        Some(Self {
            path: path.to_owned(),
            folder,
            keeps_old,
        })
    }
}

fn unsearched(path: &Path, error: &io::Error) -> io::Error {
    let path = path.display();
    let words = format!(
        "{path} could not be searched for programs that other users would run with your rights ({error}); look for them with: \
         find {path} -type f -perm /6000"
    );
    io::Error::new(error.kind(), words)
}

/// Takes set-user-id and set-group-id bits from the files below a directory. Directories keep theirs. No link is followed;
/// a folder that can't be searched is closed to others.
pub fn strip_set_id(folder: &Path) -> io::Result<()> {
    let written = Written::open(folder, false);
    let written = written.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOTDIR))?;
    Search::default().strip(open_top(&written.folder)?)
}

/// A folder that is searched, with what is to be done when that is over.
struct Opened {
    identity: Identity,
    /// The mode that it gets back.
    mode: Option<u32>,
    /// Folders in it that wait.
    below: Vec<CString>,
}

impl Search<'_> {
    /// Goes down into each folder and up again; answers the first problem.
    fn strip(&self, top: (OwnedFd, Option<u32>)) -> io::Result<()> {
        let mut problem = Ok(());
        let (mut at, mode) = top;
        let mut way = vec![self.look_through(&at, mode, &mut problem)?];
        while let Some(last) = way.last_mut() {
            if let Some(name) = last.below.pop() {
                match self.enter(&at, &name) {
                    Ok(Some((below, mode))) => {
                        match self.look_through(&below, mode, &mut problem) {
                            Ok(opened) => {
                                way.push(opened);
                                at = below;
                            }
                            Err(error) => note(&mut problem, error),
                        }
                    }
                    Ok(None) => {}
                    Err(error) => note(&mut problem, error),
                }
                continue;
            }
            let mode = last.mode;
            way.pop();
            // Before the mode, which may keep this process from going up.
            let above = match way.last() {
                Some(above) => Some(go_up(&at, above.identity)?),
                None => None,
            };
            if let Some(mode) = mode
                && let Err(error) = set_mode(&at, mode)
            {
                note(&mut problem, error);
            }
            at = above.unwrap_or(at);
        }
        problem
    }

    /// Strips the files in a folder, and remembers the folders.
    fn look_through(
        &self,
        folder: &OwnedFd,
        mode: Option<u32>,
        problem: &mut io::Result<()>,
    ) -> io::Result<Opened> {
        let mut below = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    note(problem, error.into());
                    break;
                }
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(folder, name),
                known => Ok(known),
            };
            let done = match kind {
                Ok(FileType::Directory) => {
                    below.push(name.to_owned());
                    Ok(())
                }
                Ok(FileType::RegularFile) => self.strip_file(folder, name),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                note(problem, error);
            }
        }
        Ok(Opened {
            identity: identity_of(folder)?,
            mode,
            below,
        })
    }

    /// Opens a folder in another one; `None` for one that the run did not see, that is somebody else's, or that is closed.
    fn enter(&self, folder: &OwnedFd, name: &CStr) -> io::Result<Option<(OwnedFd, Option<u32>)>> {
        let handle = match open_handle(folder, name) {
            // Somebody takes things away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let found = handle.metadata()?;
        if !found.is_dir() || self.unseen.contains(&(found.dev(), found.ino())) {
            return Ok(None);
        }
        let handle = OwnedFd::from(handle);
        match open_top(&handle) {
            Ok(opened) => Ok(Some(opened)),
            Err(_) if !is_own(&found) => Ok(None),
            // Nobody else gets further either.
            Err(_) => set_mode(&handle, found.mode() & 0o700).map(|()| None),
        }
    }

    fn strip_file(&self, folder: &OwnedFd, name: &CStr) -> io::Result<()> {
        let found = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            found => found?,
        };
        if found.st_mode & SET_ID == 0 {
            return Ok(());
        }
        let handle = open_handle(folder, name)?;
        let found = handle.metadata()?;
        let is_new = self
            .since
            .is_none_or(|since| (found.ctime(), found.ctime_nsec()) >= since);
        match found.is_file() && is_new && is_own(&found) {
            true => set_mode(&handle.into(), found.mode() & 0o7777 & !SET_ID),
            false => Ok(()),
        }
    }
}

/// Keeps the first problem.
fn note(problem: &mut io::Result<()>, error: io::Error) {
    if problem.is_ok() {
        *problem = Err(error);
    }
}

fn kind_of(folder: &OwnedFd, name: &CStr) -> io::Result<FileType> {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode))
}

fn identity_of(folder: &OwnedFd) -> io::Result<Identity> {
    let found = rustix::fs::fstat(folder)?;
    Ok((found.st_dev, found.st_ino))
}

/// The folder above, if it is still the one that was come from.
fn go_up(folder: &OwnedFd, expected: Identity) -> io::Result<OwnedFd> {
    let above = open_folder(folder.as_fd(), c"..")?;
    match identity_of(&above)? == expected {
        true => Ok(above),
        false => Err(io::Error::other("folders were moved while it was searched")),
    }
}

/// Files of others were not made by the run.
fn is_own(found: &std::fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Opens a folder by a handle. If its owner may not search it, it is opened to its owner first, and its old mode is answered.
fn open_top(handle: &OwnedFd) -> io::Result<(OwnedFd, Option<u32>)> {
    let found = File::from(handle.try_clone()?).metadata()?;
    let mode = found.mode() & 0o7777;
    let is_closed = is_own(&found) && mode & SEARCHED != SEARCHED;
    if is_closed {
        set_mode(handle, mode | 0o700)?;
    }
    let opened = open_folder(handle.as_fd(), c".")?;
    Ok((opened, is_closed.then_some(mode)))
}

fn open_folder(at: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
}

fn open_handle(folder: &OwnedFd, name: &CStr) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?.into())
}

fn named(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

fn set_mode(handle: &OwnedFd, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(named(handle), PermissionsExt::from_mode(mode))
}

/// Whether no folder on the way keeps everybody else out. One that its owner can't look at may let others through.
fn is_reachable(path: &Path) -> bool {
    let mut found = path.ancestors().map(Path::metadata);
    found.all(|found| found.map_or(true, |found| found.mode() & 0o011 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn give(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn plant(path: &Path) {
        fs::write(path, "x").unwrap();
        give(path, 0o2755);
    }

    /// A folder that others reach, in whatever the suite uses.
    fn open_home() -> tempfile::TempDir {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        give(home.path(), 0o755);
        home
    }

    #[test]
    fn x17_a_folder_that_a_run_opened_is_searched_and_one_that_stayed_closed_is_not() {
        let home = open_home();
        let top = home.path().join("top");
        for (begins, ends, old, new) in [
            (0o700, 0o755, 0o755, 0o755),
            (0o700, 0o011, 0o755, 0o755),
            (0o700, 0o700, 0o2755, 0o2755),
            (0o755, 0o755, 0o2755, 0o755),
        ] {
            fs::create_dir(&top).unwrap();
            plant(&top.join("old"));
            give(&top, begins);
            std::thread::sleep(std::time::Duration::from_millis(30));
            let reachable = Reachable::of(&Policy::new(&top)).unwrap();
            plant(&top.join("new"));
            give(&top, ends);
            reachable.strip().unwrap();
            assert_eq!(mode(&top), ends, "{begins:o}, {ends:o}");
            give(&top, 0o700);
            let found = (mode(&top.join("old")), mode(&top.join("new")));
            assert_eq!(found, (old, new), "{begins:o}, {ends:o}");
            fs::remove_dir_all(&top).unwrap();
        }
    }

    #[test]
    fn x17_closed_and_deep_folders_hide_nothing_and_few_descriptors_are_enough() {
        let home = open_home();
        let top = home.path().join("top");
        for number in 0..40 {
            let closed = top.join(format!("b{number}"));
            fs::create_dir_all(closed.join("sub")).unwrap();
            plant(&closed.join("sub/planted"));
            give(&closed, 0o400);
        }
        let mut deep = top.clone();
        deep.extend(["d"; 300]);
        fs::create_dir_all(&deep).unwrap();
        plant(&deep.join("planted"));
        plant(&top.join("planted"));
        let before = getrlimit(Resource::Nofile);
        let open = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        let few = Rlimit {
            current: Some(open + 8),
            ..before
        };
        setrlimit(Resource::Nofile, few).unwrap();
        let stripped = strip_set_id(&top);
        setrlimit(Resource::Nofile, before).unwrap();
        stripped.unwrap();
        let mut planted = vec![deep.join("planted"), top.join("planted")];
        for number in 0..40 {
            let closed = top.join(format!("b{number}"));
            assert_eq!(mode(&closed), 0o400);
            give(&closed, 0o700);
            planted.push(closed.join("sub/planted"));
        }
        for path in planted {
            assert_eq!(mode(&path), 0o755, "{}", path.display());
        }
    }
}
