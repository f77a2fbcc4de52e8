//! The pool: spares, which are checkouts made before anybody asked, and the donor that further ones are copied from.
//!
//! ```text
//! donor/    tree/ seal     never given away; read while its lock is held
//! spare-…/  tree/ seal     given away by renaming its tree/, so exactly one process gets it
//! new-…/    tree/          in the making, by whoever holds fill.lock
//! ```
//!
//! Only weald writes here, and only `fill` makes anything. A seal says what a tree was made from and how its directory
//! looked then; a spare is taken after an O(1) look at its seal. Whatever does not fit is left alone and evicted later.

mod fill;
mod seal;
mod snapshot;

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use weald_git::{CheckoutIndex, Door, DoorError, copy_checkout};

use super::inner::INFO_FILES;
use super::layout::device_of;
use super::{TreeError, Trees, at, delete};
use weald_control::{files, marker};

pub use fill::Patience;
pub(crate) use seal::{Seal, Settings};

/// How long somebody else's fill is waited for: it may check out a large repository.
const FILL_LIMIT: Duration = Duration::from_secs(600);

/// How long the donor is waited for before a tree is checked out without it.
const COPY_LIMIT: Duration = Duration::from_secs(5);

/// The largest index that is copied.
const INDEX_LIMIT: u64 = 1 << 30;

/// How the files of a tree came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Population {
    /// A spare of the pool.
    Spare,
    /// Copied from the pool's donor.
    Clone,
    /// The donor's subvolume, seen again.
    Snapshot,
    /// Checked out by git.
    Checkout,
}

/// What is in the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Spares that a new tree can take as they are.
    pub ready: usize,
    /// Spares whose base moved since; a new tree takes one and brings it forward.
    pub behind: usize,
    /// How many there should be.
    pub size: u64,
    /// What a new tree starts from, and a spare with it.
    pub base: Option<String>,
    /// Whether there is a donor.
    pub donor: bool,
    /// Where it is; `None` where the trees' file system has no place for one.
    pub path: Option<PathBuf>,
}

/// A pool and what its contents must have been made from.
pub(crate) struct Pool<'t> {
    trees: &'t Trees<'t>,
    path: PathBuf,
    settings: Settings,
    boot: String,
}

/// Takes a lock together with others who read; false if somebody writes for longer than `limit`.
fn shared_within(lock: &File, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        match lock.try_lock_shared() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// The files of a tree, as they came from the pool.
pub(crate) struct Taken {
    /// The commit that is checked out.
    pub base: String,
    /// Whether its repository says what a new one would say.
    pub is_current: bool,
    pub population: Population,
}

impl Pool<'_> {
    fn entries(&self, prefix: &str) -> Vec<PathBuf> {
        let listed = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let named = listed.filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.starts_with(prefix))
        });
        named.map(|entry| entry.path()).collect()
    }

    /// Spares that could be taken now, with their seals.
    fn spares(&self) -> Vec<(PathBuf, Seal)> {
        let sealed = |spare: PathBuf| {
            let seal = Seal::read(&spare)?;
            self.accepts(&seal, &spare).then_some((spare, seal))
        };
        self.entries("spare-")
            .into_iter()
            .filter_map(sealed)
            .collect()
    }

    fn accepts(&self, seal: &Seal, holder: &Path) -> bool {
        seal.settings.files == self.settings.files
            && seal.boot == self.boot
            && seal.fits(&holder.join("tree"))
    }

    fn donor(&self) -> PathBuf {
        self.path.join("donor")
    }

    /// Moves a spare's tree to `to`; one that holds `base` is preferred.
    pub(crate) fn take(&self, base: &str, to: &Path) -> Option<Taken> {
        let mut spares = self.spares();
        spares.sort_by_key(|(_, seal)| seal.base != base);
        for (spare, seal) in spares {
            let tree = spare.join("tree");
            // Another process may be faster.
            if renameat_with(CWD, &tree, CWD, to, RenameFlags::NOREPLACE).is_ok() {
                let _ = delete(&spare);
                return Some(Taken {
                    is_current: seal.settings == self.settings,
                    base: seal.base,
                    population: Population::Spare,
                });
            }
        }
        None
    }

    /// Copies the donor to `to`, which must not exist. `None` where there is no donor that fits.
    pub(crate) fn copy(&self, to: &Path) -> io::Result<Option<Taken>> {
        let lock = self.lock("donor.lock")?;
        if !shared_within(&lock, COPY_LIMIT)? {
            return Ok(None);
        }
        let donor = self.donor();
        let Some(seal) = Seal::read(&donor).filter(|seal| self.accepts(seal, &donor)) else {
            return Ok(None);
        };
        let from = donor.join("tree");
        let population =
            match snapshot::is_subvolume(&from) && snapshot::snapshot(&from, to).is_ok() {
                true => Population::Snapshot,
                false => {
                    let theirs = Door::open(&from.join(".git"))?;
                    let index = theirs.read("index", INDEX_LIMIT).ok();
                    let sha256 = seal.base.len() == 64;
                    let Some(index) = index.and_then(|bytes| CheckoutIndex::parse(bytes, sha256))
                    else {
                        return Ok(None);
                    };
                    fs::create_dir(to)?;
                    copy_tree(&from, &theirs, to, index)?;
                    Population::Clone
                }
            };
        Ok(Some(Taken {
            is_current: seal.settings == self.settings,
            base: seal.base,
            population,
        }))
    }

    fn lock(&self, name: &str) -> io::Result<File> {
        files::open_lock(&self.path.join(name))
    }

    /// A lock that this process alone holds, however long others still need it.
    fn lock_alone(&self, name: &str) -> Result<File, TreeError> {
        let locked = self.lock(name).and_then(|lock| {
            files::lock_within(&lock, FILL_LIMIT)?;
            Ok(lock)
        });
        locked.map_err(at(&self.path))
    }
}

/// Copies files and repository of a sealed checkout that nobody has worked in.
fn copy_tree(from: &Path, theirs: &Door, to: &Path, mut index: CheckoutIndex) -> io::Result<()> {
    let ours = to.join(".git");
    for directory in ["objects/info", "objects/pack", "refs/heads", "info", "logs"] {
        fs::create_dir_all(ours.join(directory))?;
    }
    let files = ["HEAD", "config", "objects/info/alternates"];
    for file in files.into_iter().chain(INFO_FILES) {
        match theirs.read(file, INDEX_LIMIT) {
            Ok(bytes) => fs::write(ours.join(file), bytes)?,
            Err(DoorError::Absent { .. }) => {}
            Err(error) => return Err(io::Error::other(error.to_string())),
        }
    }
    copy_checkout(from, to, &mut index)?;
    fs::write(ours.join("index"), index.to_bytes())
}

impl Trees<'_> {
    /// The pool for trees in `root`, made if there is none: beside the vault, or with the trees where those are on a
    /// file system of their own. `None` when it is switched off or has no place.
    pub(crate) fn pool(&self, root: &Path, commit: &str) -> Result<Option<Pool<'_>>, TreeError> {
        match self.config.pool_size {
            0 => Ok(None),
            _ => self.pool_at(root, commit),
        }
    }

    fn pool_at(&self, root: &Path, commit: &str) -> Result<Option<Pool<'_>>, TreeError> {
        let home = self.common_dir().join("weald");
        let path = match device_of(&home) == device_of(root) {
            true => home.join("pool"),
            false if root.join(marker::MARKER).is_file() => root.join(".pool"),
            false => return Ok(None),
        };
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(at(&path))?;
        let boot = self.me().map(|me| me.boot_id).unwrap_or_default();
        Ok(Some(Pool {
            trees: self,
            settings: self.pool_settings(commit)?,
            path: path.canonicalize().map_err(at(&path))?,
            boot,
        }))
    }
}
