//! What a tree takes on its disk, which folders in it a build makes again, and deleting those.
//!
//! No link is followed, hard links count once, and what is below a mount is another disk's. A folder counts as made by a
//! build only if it has such a name, git ignores it, it holds nothing tracked, no repository (bare or not) and no mount, and
//! is in no repository but the tree's own. It is renamed to a place that git does not see before it is deleted: half of
//! one is never left under its name.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirEntry, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{OFlags, statfs};
use serde::{Deserialize, Serialize};
use weald_core::eviction::Regenerable;
use weald_sandbox::shared_extents;

use super::{Access, InsideError, Job, Workplace, read_capped};
use crate::delete;
use crate::untrusted::{BYTES, MANY, Reply, SOME, is_path, keep_paths};

/// File systems that can share parts of files, and tell.
const SHARING: [i64; 2] = [0x9123_683E, 0x5846_5342];

/// File systems that can't share anything: ext, tmpfs.
const PLAIN: [i64; 2] = [0xEF53, 0x0102_1994];

/// How many shared parts are told; with more, nothing is told of them.
const RANGES: usize = 200_000;

/// How many folders are named.
const FOLDERS: usize = 1_000;

/// Where folders wait that are being deleted: in the tree's repository.
const EVICTED: &str = "weald-evicted";

/// And where that is elsewhere: in the tree, where this keeps git from seeing it.
const HIDDEN: &str = ".weald-evicted";
const MARK: &str = "# weald: everything here is being deleted\n*\n";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageWish {
    /// Names of folders that a build makes again.
    pub regenerable: Vec<String>,
    /// How long it may take.
    pub millis: u64,
}

/// What a tree takes on its disk.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Usage {
    /// In bytes; what it shares with itself counts as often as it is there.
    pub bytes: u64,
    /// How much of that others may have, too; `None` where the file system does not tell.
    pub shared: Option<u64>,
    /// Which parts of the disk those are, in order and apart.
    pub ranges: Vec<(u64, u64)>,
    /// Folders that a build makes again.
    pub regenerable: Vec<Regenerable>,
    /// Whether all of it was counted.
    pub is_whole: bool,
}

/// A folder with a name of one that a build makes.
struct Folder {
    path: String,
    bytes: u64,
    frees: u64,
    /// Something in it that nobody can make again, perhaps.
    is_odd: bool,
}

/// A file with several names. Deleting a folder frees it if all of them are in there.
struct Link {
    bytes: u64,
    names: u64,
    /// Names that were seen in one folder, or outside of all.
    seen: u64,
    inside: Option<usize>,
}

/// What something in a tree belongs to.
#[derive(Clone, Copy)]
enum Within {
    Tree,
    /// Another repository, of which the tree's own knows nothing.
    Repository,
    /// A folder with such a name.
    Folder(usize),
}

impl Within {
    fn folder(self) -> Option<usize> {
        match self {
            Self::Folder(place) => Some(place),
            Self::Tree | Self::Repository => None,
        }
    }

    /// The same, or what this says of something that belongs to the tree itself so far.
    fn or(self, other: impl FnOnce() -> Option<Self>) -> Self {
        match self {
            Self::Tree => other().unwrap_or(self),
            Self::Repository | Self::Folder(_) => self,
        }
    }
}

struct Walk<'w> {
    root: &'w Path,
    names: &'w [String],
    device: u64,
    deadline: Instant,
    links: HashMap<u64, Link>,
    tells: bool,
    shared: u64,
    ranges: Vec<(u64, u64)>,
    bytes: u64,
    folders: Vec<Folder>,
}

/// Adds up what the tree takes, what it shares, and which folders in it a build makes again.
#[derive(Serialize, Deserialize)]
pub struct MeasureUsage(pub UsageWish);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageReply {
    pub usage: Usage,
    /// When somebody was last at it, in seconds.
    pub touched_at: Option<i64>,
}

/// Puts folders aside of which it is certain, now, that a build makes them again.
#[derive(Serialize, Deserialize)]
pub struct Evict {
    pub wish: UsageWish,
    pub paths: Vec<String>,
}

/// Those that were put aside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvictReply {
    pub gone: Vec<String>,
}

/// Deletes what was put aside.
#[derive(Serialize, Deserialize)]
pub struct ClearEvicted;

impl Job for MeasureUsage {
    type Reply = UsageReply;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<UsageReply, InsideError> {
        let touched_at = at.touched_at();
        Ok(UsageReply {
            usage: at.measure_usage(&self.0)?,
            touched_at,
        })
    }
}

impl Reply for UsageReply {
    fn checked(mut self) -> Option<Self> {
        let usage = &mut self.usage;
        usage.bytes = usage.bytes.min(BYTES);
        usage.shared = usage.shared.map(|shared| shared.min(BYTES));
        usage.ranges = apart(std::mem::take(&mut usage.ranges));
        usage.regenerable.retain(|folder| is_path(&folder.path));
        usage.regenerable.truncate(SOME);
        for folder in &mut usage.regenerable {
            folder.bytes = folder.bytes.min(BYTES);
            folder.frees = folder.frees.min(folder.bytes);
        }
        Some(self)
    }
}

impl Job for Evict {
    type Reply = EvictReply;
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<EvictReply, InsideError> {
        let touched = at.work_tree.metadata()?.modified()?;
        let place = at.waiting_place()?;
        let known = at.measure_usage(&self.wish)?.regenerable;
        let is_known = |path: &&String| known.iter().any(|one| one.path == **path);
        let mut gone = Vec::new();
        for path in self.paths.iter().filter(is_known) {
            let aside = place.join(gone.len().to_string());
            if fs::rename(at.work_tree.join(path), &aside).is_ok() {
                gone.push(path.clone());
            }
        }
        at.was_touched(touched)?;
        Ok(EvictReply { gone })
    }
}

impl Reply for EvictReply {
    fn checked(mut self) -> Option<Self> {
        keep_paths(&mut self.gone, MANY);
        Some(self)
    }
}

impl Job for ClearEvicted {
    type Reply = ();
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<(), InsideError> {
        let touched = at.work_tree.metadata()?.modified()?;
        clear(&at.evicted())?;
        Ok(at.was_touched(touched)?)
    }
}

impl Workplace {
    /// Making room is no use of the tree: its top folder tells when somebody last worked there.
    fn was_touched(&self, at: SystemTime) -> io::Result<()> {
        File::open(&self.work_tree)?.set_modified(at)
    }

    /// Where folders wait to be deleted.
    fn evicted(&self) -> PathBuf {
        match self.git_dir.starts_with(&self.work_tree) {
            true => self.git_dir.join(EVICTED),
            false => self.work_tree.join(HIDDEN),
        }
    }

    /// An empty folder that git does not see, on the tree's own mount. What a kill left of an earlier one is cleared.
    fn waiting_place(&self) -> Result<PathBuf, InsideError> {
        let place = self.evicted();
        let mark = place.join(".gitignore");
        if place.symlink_metadata().is_ok() {
            let said = read_capped(&mark, 1024).unwrap_or_default();
            if !place.symlink_metadata()?.is_dir() || said != MARK.as_bytes() {
                let place = place.display();
                let why = format!("{place} is in the way, and is not weald's");
                return Err(InsideError::Damaged(why));
            }
            clear(&place)?;
        }
        // Complete or not there: a mark that is half-written would be nobody's. What has that name already may be somebody's.
        let making = free_folder(&place)?;
        fs::write(making.join(".gitignore"), MARK)?;
        fs::rename(&making, &place)?;
        Ok(place)
    }

    fn measure_usage(&self, wish: &UsageWish) -> Result<Usage, InsideError> {
        let kind = statfs(&self.work_tree).map(|found| found.f_type);
        let is = |known: &[i64]| kind.is_ok_and(|kind| known.contains(&kind));
        let mut walk = Walk {
            root: &self.work_tree,
            names: &wish.regenerable,
            device: self.work_tree.symlink_metadata()?.dev(),
            deadline: Instant::now() + Duration::from_millis(wish.millis),
            links: HashMap::new(),
            tells: is(&SHARING),
            shared: 0,
            ranges: Vec::new(),
            bytes: 0,
            folders: Vec::new(),
        };
        let is_whole = walk.walk();
        walk.settle_links();
        let tells = walk.tells || is(&PLAIN);
        let folders = std::mem::take(&mut walk.folders);
        Ok(Usage {
            bytes: walk.bytes,
            shared: tells.then_some(walk.shared),
            ranges: apart(walk.ranges),
            // What was not seen whole may hold anything.
            regenerable: match is_whole {
                true => self.certain(folders)?,
                false => Vec::new(),
            },
            is_whole,
        })
    }

    /// Those that git ignores, and that hold nothing that it follows.
    fn certain(&self, mut folders: Vec<Folder>) -> Result<Vec<Regenerable>, InsideError> {
        folders.retain(|folder| !folder.is_odd);
        folders.truncate(FOLDERS);
        if folders.is_empty() {
            return Ok(Vec::new());
        }
        let asked: String = folders
            .iter()
            .map(|folder| format!("{}\0", folder.path))
            .collect();
        let told = self
            .git("check-ignore")
            .args(["-z", "--stdin"])
            .input(asked)
            .output()?;
        let ignored = names(&told.stdout);
        let tracked = self.git("ls-files").args(["-z", "--cached"]).run()?;
        let tracked = names(&tracked);
        let holds = |folder: &Folder, path: &[u8]| {
            let rest = path.strip_prefix(folder.path.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        folders.retain(|folder| {
            ignored.contains(&folder.path.as_bytes())
                && !tracked.iter().any(|path| holds(folder, path))
        });
        let certain = folders.into_iter().map(|folder| Regenerable {
            path: folder.path,
            bytes: folder.bytes,
            frees: folder.frees,
        });
        Ok(certain.collect())
    }
}

impl Walk<'_> {
    /// Sees everything; false when the time was over.
    fn walk(&mut self) -> bool {
        let mut open = vec![(self.root.to_owned(), Within::Tree)];
        while let Some((path, mut within)) = open.pop() {
            if Instant::now() >= self.deadline {
                return false;
            }
            let listed = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            let Ok(entries) = listed else {
                self.distrust(within);
                continue;
            };
            if path != self.root && is_repository(&entries) {
                self.distrust(within);
                within = within.or(|| Some(Within::Repository));
            }
            for entry in entries {
                let path = entry.path();
                let Ok(found) = entry.metadata() else {
                    self.distrust(within);
                    continue;
                };
                self.count(&path, &found, within.folder());
                if !found.is_dir() {
                    continue;
                }
                match found.dev() == self.device {
                    true => {
                        let named = || self.folder(&path, &found).map(Within::Folder);
                        let within = within.or(named);
                        open.push((path, within));
                    }
                    false => self.distrust(within),
                }
            }
        }
        true
    }

    fn distrust(&mut self, within: Within) {
        let folder = within.folder();
        if let Some(folder) = folder.and_then(|place| self.folders.get_mut(place)) {
            folder.is_odd = true;
        }
    }

    /// A folder with the name of one that a build makes, outside of the repository.
    fn folder(&mut self, path: &Path, found: &Metadata) -> Option<usize> {
        let below = path.strip_prefix(self.root).ok()?.to_str()?;
        let name = path.file_name()?.to_str()?;
        let is_named = self.names.iter().any(|known| known == name);
        if below.split('/').any(|part| part == ".git") || !is_named {
            return None;
        }
        self.folders.push(Folder {
            path: below.to_owned(),
            bytes: found.blocks() * 512,
            frees: found.blocks() * 512,
            is_odd: false,
        });
        Some(self.folders.len() - 1)
    }

    fn count(&mut self, path: &Path, found: &Metadata, inside: Option<usize>) {
        if !found.is_dir()
            && let Some(link) = self.links.get_mut(&found.ino())
        {
            link.seen += u64::from(link.inside == inside);
            return;
        }
        let bytes = found.blocks() * 512;
        self.bytes += bytes;
        let mut shared = 0;
        if self.tells && found.is_file() && bytes > 0 {
            let ranges = shared_parts(path).unwrap_or_default();
            shared = ranges
                .iter()
                .map(|(_, length)| length)
                .sum::<u64>()
                .min(bytes);
            self.shared += shared;
            self.ranges.extend(ranges);
        }
        let folder = inside.and_then(|place| self.folders.get_mut(place));
        let has_others = !found.is_dir() && found.nlink() > 1;
        if let Some(folder) = folder {
            folder.bytes += bytes;
            folder.frees += if has_others { 0 } else { bytes - shared };
        }
        if has_others {
            let link = Link {
                bytes: bytes - shared,
                names: found.nlink(),
                seen: 1,
                inside,
            };
            self.links.insert(found.ino(), link);
        }
    }

    /// Adds the files with several names to the folder that has all of them.
    fn settle_links(&mut self) {
        for link in self.links.values().filter(|link| link.seen == link.names) {
            let folder = link.inside.and_then(|place| self.folders.get_mut(place));
            if let Some(folder) = folder {
                folder.frees += link.bytes;
            }
        }
    }
}

/// Whether a folder is a repository's top, or a repository itself.
fn is_repository(entries: &[DirEntry]) -> bool {
    let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
    has(".git") || (has("HEAD") && has("objects") && has("refs"))
}

/// A new, empty folder beside a place. One that a kill left is used up; one with anything in it is left alone.
fn free_folder(place: &Path) -> io::Result<PathBuf> {
    for number in 0..100 {
        let making = match number {
            0 => place.with_extension("new"),
            _ => place.with_extension(format!("new{number}")),
        };
        let mark = making.join(".gitignore");
        let only_mark = |entries: fs::ReadDir| {
            let mut entries = entries.flatten();
            entries.all(|entry| entry.file_name() == ".gitignore")
        };
        let is_folder = making.symlink_metadata().is_ok_and(|found| found.is_dir());
        if is_folder
            && fs::read_dir(&making).is_ok_and(only_mark)
            && read_capped(&mark, 1024).is_some_and(|said| said == MARK.as_bytes())
        {
            fs::remove_file(&mark)?;
            fs::remove_dir(&making)?;
        }
        match fs::create_dir(&making) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| making),
        }
    }
    let why = format!("{} is full of what is not weald's", place.display());
    Err(io::Error::other(why))
}

/// Deletes what waits, and last what keeps git from seeing it.
fn clear(place: &Path) -> io::Result<()> {
    for entry in fs::read_dir(place)?.flatten() {
        if entry.file_name() != ".gitignore" {
            delete(&entry.path())?;
        }
    }
    fs::remove_file(place.join(".gitignore"))?;
    fs::remove_dir(place)
}

fn shared_parts(path: &Path) -> io::Result<Vec<(u64, u64)>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let file: File = options
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    shared_extents(file.as_fd())
}

/// The same parts in order and apart; none if there are too many.
pub fn apart(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, length) in ranges {
        match joined.last_mut() {
            Some(last) if start <= last.0.saturating_add(last.1) => {
                let end = start
                    .saturating_add(length)
                    .max(last.0.saturating_add(last.1));
                last.1 = end - last.0;
            }
            // What would go on after the last byte ends there, so that lengths can be added.
            _ => joined.push((start, length.min(u64::MAX - start))),
        }
    }
    match joined.len() > RANGES {
        true => Vec::new(),
        false => joined,
    }
}

fn names(list: &[u8]) -> HashSet<&[u8]> {
    list.split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l14_shared_parts_count_once() {
        for (ranges, expected) in [
            (vec![], vec![]),
            (vec![(0, 10), (0, 10)], vec![(0, 10)]),
            (vec![(20, 5), (0, 10), (5, 10)], vec![(0, 15), (20, 5)]),
            (vec![(0, 10), (10, 10)], vec![(0, 20)]),
            (vec![(0, 100), (10, 10)], vec![(0, 100)]),
            (
                vec![(u64::MAX - 1, u64::MAX), (0, 1)],
                vec![(0, 1), (u64::MAX - 1, 1)],
            ),
        ] {
            assert_eq!(apart(ranges.clone()), expected, "{ranges:?}");
        }
    }
}
