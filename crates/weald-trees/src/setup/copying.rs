//! Copying from main into a tree: modes, times and links as they are, and no way back into main.
//!
//! Nothing below either root is reached through a link: the kernel refuses that (`openat2`), so a tracked link in the
//! repository can't lead a copy out of the tree. What is there already stays as it is. A folder or a single file is
//! copied beside its place and renamed, so nobody finds half of one.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom, Timespec, Timestamps, fchmod,
    futimens, mkdirat, openat, openat2, renameat_with, seek, symlinkat, unlinkat,
};
use rustix::io::Errno;
use weald_core::setup::{names_its_place, relinked, renamed};
use weald_sandbox::Cancel;

use crate::delete;

/// Fewer files than this are copied by one thread.
const FEW: usize = 64;

/// The largest file that is looked through for its own place.
const LAUNCHER_LIMIT: u64 = 64 * 1024;

/// So much of a file is copied at once.
const AT_ONCE: u64 = 256 << 20;

/// What a folder is called until all of it is there.
const BUILDING: &str = ".weald-new-share";

/// What a single file is called until all of it is there, with a number.
const BUILDING_FILE: &str = ".weald-new-file-";

/// What became of one path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// It is in the tree now.
    Made,
    /// Something of this name was there and stays, or there is nothing to copy.
    Left,
    /// The way to it leads through a link, or through a file.
    Refused,
}

/// From main into one tree.
pub(super) struct Copier<'a> {
    from: &'a Path,
    to: &'a Path,
    main: OwnedFd,
    tree: OwnedFd,
    /// Trees that lie in main, relative to it.
    trees: Option<PathBuf>,
    /// What runs must not see.
    hidden: Vec<PathBuf>,
    cancel: &'a Cancel,
}

/// What is in a folder of main.
#[derive(Default)]
struct Contents {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
    links: Vec<PathBuf>,
}

impl<'a> Copier<'a> {
    /// From main into a tree that is at `place` now and will be at `to`; nothing that is `hidden` comes along.
    pub(super) fn open(
        from: &'a Path,
        place: &Path,
        to: &'a Path,
        hidden: Vec<PathBuf>,
        cancel: &'a Cancel,
    ) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let beside = to.parent().unwrap_or(to);
        let inside = |path: &Path| path.strip_prefix(from).ok().map(Path::to_owned);
        Ok(Self {
            main: openat(CWD, from, flags, Mode::empty())?,
            tree: openat(CWD, place, flags, Mode::empty())?,
            trees: match beside == from {
                true => inside(to),
                false => inside(beside),
            },
            from,
            to,
            hidden,
            cancel,
        })
    }

    /// Whether runs must not see a path, or something that it lies in.
    fn hides(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    /// True for what never goes from main into a tree: repositories, trees, and what runs must not see.
    pub(super) fn is_excluded(&self, path: &Path) -> bool {
        path.components().any(|part| part.as_os_str() == ".git")
            || self.hides(&self.from.join(path))
            || self
                .trees
                .as_ref()
                .is_some_and(|trees| path.starts_with(trees))
    }

    /// Copies files and links; answers how many, and which could not be reached.
    pub(super) fn copy_files(&self, paths: &[PathBuf]) -> io::Result<(u64, Vec<PathBuf>)> {
        let mut parents: Vec<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        parents.sort_unstable();
        parents.dedup();
        let mut closed = HashSet::new();
        for parent in parents {
            match self.folder(parent) {
                Ok(folder) => sweep(&folder),
                Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => {
                    closed.insert(parent);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let is_open = |path: &&PathBuf| path.parent().is_none_or(|parent| !closed.contains(parent));
        let (reachable, refused): (Vec<_>, Vec<_>) = paths.iter().partition(is_open);
        let (made, number) = (AtomicUsize::new(0), AtomicUsize::new(0));
        each(&reachable, |path| {
            let copied = match self.kind(path)? {
                Kind::Link => self.copy_link(path, path)?,
                Kind::File => {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    self.copy_whole_file(path, &format!("{BUILDING_FILE}{number}"))?
                }
                Kind::Folder | Kind::Other => false,
            };
            made.fetch_add(usize::from(copied), Ordering::Relaxed);
            Ok(())
        })?;
        let refused = refused.into_iter().cloned().collect();
        Ok((made.into_inner() as u64, refused))
    }

    /// Copies a folder with everything in it but what is `left_out`.
    pub(super) fn copy_folder(
        &self,
        path: &Path,
        left_out: &HashSet<PathBuf>,
    ) -> io::Result<Copied> {
        let Some((parent, name)) = self.place(path)? else {
            return Ok(Copied::Refused);
        };
        if openat(
            &parent,
            name,
            OFlags::PATH | OFlags::NOFOLLOW,
            Mode::empty(),
        )
        .is_ok()
        {
            return Ok(Copied::Left);
        }
        // In the tree's own repository, where git does not see it; a linked tree has none.
        let shelf = openat2(&self.tree, ".git", FOLDER, Mode::empty(), INSIDE);
        let (shelf, building) = match shelf {
            Ok(shelf) => (shelf, Path::new(".git").join(BUILDING)),
            Err(_) => (parent.try_clone()?, path.with_file_name(BUILDING)),
        };
        // What a kill left behind. By the descriptor: no link on the way is followed.
        let _ = delete(&below(&shelf));
        let copied = self.fill(path, &building, left_out);
        let renamed = copied.and_then(|()| {
            let flags = RenameFlags::NOREPLACE;
            Ok(renameat_with(&shelf, BUILDING, &parent, name, flags)?)
        });
        match renamed {
            Ok(()) => Ok(Copied::Made),
            Err(error) => {
                let _ = delete(&below(&shelf));
                Err(error)
            }
        }
    }

    /// A link to main's own.
    pub(super) fn link(&self, path: &Path) -> io::Result<Copied> {
        let Some((parent, name)) = self.place(path)? else {
            return Ok(Copied::Refused);
        };
        match symlinkat(self.from.join(path), &parent, name) {
            Ok(()) => Ok(Copied::Made),
            Err(Errno::EXIST) => Ok(Copied::Left),
            Err(error) => Err(error.into()),
        }
    }

    /// What git in the tree shall not see as untracked: rules for folders don't speak of links. What an agent put there
    /// that is no file of the tree's own is not written: a FIFO would keep the host waiting.
    pub(super) fn exclude(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
        let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o644);
        let file = openat2(&self.tree, ".git/info/exclude", flags, mode, INSIDE)?;
        let mut file = File::from(file);
        let found = file.metadata()?;
        if !found.is_file() || found.nlink() != 1 {
            return Ok(());
        }
        file.write_all(format!("/{}\n", path.display()).as_bytes())
    }

    /// What is at a path of main.
    pub(super) fn kind(&self, path: &Path) -> io::Result<Kind> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let parent = path.parent().unwrap_or(Path::new(""));
        let (Ok(folder), Some(name)) = (self.open_main(parent, flags), path.file_name()) else {
            return Ok(Kind::Other);
        };
        match openat(&folder, name, flags, Mode::empty()) {
            Ok(found) => {
                let kind = File::from(found).metadata()?.file_type();
                Ok(match (kind.is_file(), kind.is_dir(), kind.is_symlink()) {
                    (true, ..) => Kind::File,
                    (_, true, _) => Kind::Folder,
                    (.., true) => Kind::Link,
                    _ => Kind::Other,
                })
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Kind::Other),
            Err(error) => Err(error.into()),
        }
    }

    /// Everything of a folder, into another one of the tree.
    fn fill(&self, from: &Path, to: &Path, left_out: &HashSet<PathBuf>) -> io::Result<()> {
        let contents = self.walk(from, left_out)?;
        let moved = |path: &Path| match path.strip_prefix(from) {
            Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
            Ok(rest) => to.join(rest),
            Err(_) => to.to_owned(),
        };
        for folder in &contents.folders {
            let parent = self.folder(to_parent(&moved(folder)))?;
            let target = moved(folder);
            let name = target.file_name().unwrap_or_default();
            mkdirat(&parent, name, Mode::RWXU)?;
        }
        each(&contents.files, |path| {
            self.copy_file(path, &moved(path)).map(drop)
        })?;
        each(&contents.links, |path| {
            self.copy_link(path, &moved(path)).map(drop)
        })?;
        // Modes and times last, the innermost first: writing into a folder changes them.
        for folder in contents.folders.iter().rev() {
            let found = self.from.join(folder).symlink_metadata()?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let made = openat2(&self.tree, moved(folder), flags, Mode::empty(), INSIDE)?;
            keep_stat(&made, &found)?;
        }
        Ok(())
    }

    fn walk(&self, top: &Path, left_out: &HashSet<PathBuf>) -> io::Result<Contents> {
        let mut contents = Contents::default();
        let mut open = vec![top.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(self.from.join(&folder))? {
                let entry = entry?;
                let path = folder.join(entry.file_name());
                if self.is_excluded(&path) || left_out.contains(&path) {
                    continue;
                }
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    open.push(path);
                } else if kind.is_file() {
                    contents.files.push(path);
                } else if kind.is_symlink() {
                    contents.links.push(path);
                }
            }
            contents.folders.push(folder);
        }
        // A folder comes before what is in it.
        contents.folders.sort_unstable();
        Ok(contents)
    }

    /// A folder of the tree and the name in it that a path leads to; `None` where a link or a file is on the way.
    fn place<'p>(&self, path: &'p Path) -> io::Result<Option<(OwnedFd, &'p std::ffi::OsStr)>> {
        let name = path.file_name().unwrap_or_default();
        match self.folder(to_parent(path)) {
            Ok(parent) => Ok(Some((parent, name))),
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A folder of the tree, made with main's mode where it is missing.
    fn folder(&self, path: &Path) -> Result<OwnedFd, Errno> {
        if path.as_os_str().is_empty() {
            return openat2(&self.tree, ".", FOLDER, Mode::empty(), INSIDE);
        }
        match openat2(&self.tree, path, FOLDER, Mode::empty(), INSIDE) {
            Err(Errno::NOENT) => {}
            found => return found,
        }
        let parent = self.folder(to_parent(path))?;
        let name = path.file_name().unwrap_or_default();
        let mode = self.from.join(path).symlink_metadata();
        let mode = mode.map_or(0o755, |found| found.mode() & 0o777) | 0o700;
        match mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        openat(&parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
    }

    fn open_main(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        openat2(&self.main, path, flags, Mode::empty(), INSIDE)
    }

    /// Copies a file beside its place and renames it, so that a kill leaves no half of one. True if it was made.
    fn copy_whole_file(&self, path: &Path, building: &str) -> io::Result<bool> {
        let Some((parent, name)) = self.place(path)? else {
            return Ok(false);
        };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if openat(&parent, name, flags, Mode::empty()).is_ok()
            || !self.copy_file(path, &path.with_file_name(building))?
        {
            return Ok(false);
        }
        match renameat_with(&parent, building, &parent, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(error) => {
                let _ = unlinkat(&parent, building, AtFlags::empty());
                match error {
                    Errno::EXIST => Ok(false),
                    error => Err(error.into()),
                }
            }
        }
    }

    /// True if it was made.
    fn copy_file(&self, from: &Path, to: &Path) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut source = File::from(self.open_main(from, flags)?);
        let found = source.metadata()?;
        if !found.is_file() {
            return Ok(false);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut made = match openat2(&self.tree, to, flags, Mode::RUSR | Mode::WUSR, INSIDE) {
            Ok(made) => File::from(made),
            Err(Errno::EXIST) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let written = self
            .pour(from, &mut source, &mut made, &found)
            .and_then(|()| keep_stat(&made, &found));
        if written.is_err() {
            // Half a file is worse than none.
            if let Ok(Some((parent, name))) = self.place(to) {
                let _ = unlinkat(&parent, name, AtFlags::empty());
            }
        }
        written.map(|()| true)
    }

    /// The content: shared by the file system where it can, with the tree's own place in what names its place.
    fn pour(
        &self,
        path: &Path,
        source: &mut File,
        made: &mut File,
        found: &fs::Metadata,
    ) -> io::Result<()> {
        let size = found.len();
        if size <= LAUNCHER_LIMIT && names_its_place(path) {
            let mut bytes = Vec::new();
            source.read_to_end(&mut bytes)?;
            let bytes = renamed(&bytes, self.from, self.to).unwrap_or(bytes);
            return made.write_all(&bytes);
        }
        let is_sparse = found.blocks() * 512 < size;
        match is_sparse || size > AT_ONCE {
            true => pour_parts(source, made, self.cancel),
            false => io::copy(source, made).map(drop),
        }
    }

    fn copy_link(&self, from: &Path, to: &Path) -> io::Result<bool> {
        let mut target = fs::read_link(self.from.join(from))?;
        if target.is_absolute()
            && let (Some(parent), Some(name)) = (target.parent(), target.file_name())
            && let Ok(parent) = parent.canonicalize()
            && parent.starts_with(self.from)
        {
            // Into main by another name of it.
            target = parent.join(name);
        }
        let Some((parent, name)) = self.place(to)? else {
            return Ok(false);
        };
        match symlinkat(relinked(self.from, from, &target), &parent, name) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// A large file part by part, so that `cancel` ends it. Holes stay holes: what takes little room in main takes as little in
/// the worktree.
fn pour_parts(source: &mut File, made: &mut File, cancel: &Cancel) -> io::Result<()> {
    let mut at = 0;
    loop {
        at = match seek(&*source, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Behind that place there is a hole, or nothing.
            Err(Errno::NXIO) => break,
            // This file system does not say where its holes are.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) if at == 0 => {
                return io::copy(source, made).map(drop);
            }
            Err(error) => return Err(error.into()),
        };
        let start = at;
        let end = seek(&*source, SeekFrom::Hole(start))?;
        while at < end {
            if let Some(signal) = cancel.asked() {
                let why = format!("stopped by signal {signal}");
                return Err(io::Error::other(why));
            }
            seek(&*source, SeekFrom::Start(at))?;
            seek(&*made, SeekFrom::Start(at))?;
            let copied = io::copy(&mut source.take((end - at).min(AT_ONCE)), made)?;
            if copied == 0 {
                // It was cut short meanwhile.
                return made.set_len(at);
            }
            at += copied;
        }
    }
    // It may have another length by now than when the copy began.
    made.set_len(source.metadata()?.len().max(at))
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    /// Something that is not copied, or nothing.
    Other,
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

const INSIDE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

fn to_parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// What is being copied into an open folder, as a path.
fn below(folder: &OwnedFd) -> PathBuf {
    opened(folder).join(BUILDING)
}

fn opened(folder: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Takes away the half files that a kill left in a folder. One tree is set up by one process at a time.
fn sweep(folder: &OwnedFd) {
    for entry in fs::read_dir(opened(folder)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(BUILDING_FILE));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            let _ = unlinkat(folder, &name, AtFlags::empty());
        }
    }
}

fn keep_stat(made: impl AsFd, found: &fs::Metadata) -> io::Result<()> {
    fchmod(
        &made,
        Mode::from_raw_mode(found.permissions().mode() & 0o777),
    )?;
    let time = |seconds: i64, nanoseconds: i64| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    };
    Ok(futimens(&made, &times)?)
}

/// Does the same with each, by several threads if there are many; the first error ends it.
fn each<T: Sync>(items: &[T], work: impl Fn(&T) -> io::Result<()> + Sync) -> io::Result<()> {
    if items.len() < FEW {
        return items.iter().try_for_each(work);
    }
    let threads = thread::available_parallelism().map_or(2, |count| count.get().min(8));
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<io::Error>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = work(item) {
                        next.store(items.len(), Ordering::Relaxed);
                        failed
                            .lock()
                            .unwrap_or_else(|poisoned| poisoned.into_inner())
                            .get_or_insert(error);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    failed
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .map_or(Ok(()), Err)
}
