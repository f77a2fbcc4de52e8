//! The vault: weald's own bare repository that trees borrow objects from and imports go into.
//!
//! Invariants: what a ref in it leads to is complete in it, whatever happens in main (of a partial clone: but for blobs of
//! older history that main never had); nothing is ever pruned. It is fed
//! from main under a lock: packs by hard link (copied where links don't work), loose objects as one pack. Feeding trusts
//! main and checks nothing; what comes from trees is checked (`packs`).
//!
//! Of a pack that holds little news only the news is copied, so repacking main does not grow the vault.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git_files::{durable, read_small, read_text, replace};
use crate::object_stores::{ids_of_pack, loose_objects, object_stores, packs_of};
use crate::process::{Git, GitError};
use crate::reference::{Commit, MainRef};
use crate::refs::{Expected, RefChange, update_refs};
use crate::repository::has_object;
use crate::small_packs::FEW_OBJECTS;
use crate::steps::step;
use crate::vault_lock::Keeper;

/// How often a feed begins again when main is being repacked under it.
const ATTEMPTS: usize = 8;

/// How long packing loose objects may take.
const TIME_LIMIT: Duration = Duration::from_secs(1800);

/// Why the vault can't be used.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// git did not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// A process holds it, is silent, and can't be ended from here.
    #[error("the vault is held, and its holder has been silent for {}s: {holder}", .silent.as_secs())]
    Held {
        /// What it says of itself.
        holder: String,
        silent: Duration,
    },
    /// Main itself lacks an object.
    #[error("the repository lacks {object}, which {name} needs")]
    Incomplete {
        object: String,
        /// What was asked for.
        name: String,
    },
    /// A partial clone whose missing objects can't be had.
    #[error("this is a partial clone, and {missing} files of {name} could not be fetched: {why}")]
    Partial {
        missing: usize,
        /// What was asked for.
        name: String,
        /// What the remote said.
        why: String,
    },
}

impl VaultError {
    /// What becomes of an error about a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl Fn(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            path: path.clone(),
            source,
        }
    }
}

/// What of a pack of main is not in the vault.
enum News {
    Nothing,
    /// A small part: it is copied, because the rest is here.
    Few(Vec<String>),
    /// Most of it: the pack is linked.
    Much,
}

/// The vault of one repository.
#[derive(Debug, Clone)]
pub struct Vault {
    pub(crate) path: PathBuf,
    pub(crate) main: PathBuf,
    pub(crate) lock: PathBuf,
    pub(crate) keeper: Option<Keeper>,
}

impl Vault {
    /// The vault of the repository `common_dir`; nothing is made yet.
    pub fn of(common_dir: &Path) -> Self {
        let home = common_dir.join("weald");
        Self {
            path: home.join("vault"),
            main: common_dir.to_owned(),
            lock: home.join("private").join("vault.lock"),
            keeper: None,
        }
    }

    /// The vault of a submodule that main has in `modules/<name>`; it keeps what trees need of that one.
    pub fn of_submodule(common_dir: &Path, name: &str) -> Self {
        let whole = Self::of(common_dir);
        Self {
            path: whole.path.join("modules").join(name),
            main: common_dir.join("modules").join(name),
            ..whole
        }
    }

    /// The same for a process that is known by name to those who wait for it, and that ends holders that are silent.
    pub fn kept_by(mut self, keeper: Keeper) -> Self {
        self.keeper = Some(keeper);
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its objects, which trees borrow.
    pub fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// A git command on it.
    pub fn git(&self, name: &str) -> Git {
        Git::new(&self.path, name)
    }

    /// Whether an object is here.
    pub fn has_object(&self, id: &str) -> Result<bool, GitError> {
        has_object(&self.path, id)
    }

    /// Makes sure that everything main's `refs` and `wanted` need is here; makes the vault on first use. Answers what a
    /// person should know once.
    pub fn require(&self, refs: &[MainRef], wanted: &[&str]) -> Result<Option<String>, VaultError> {
        if self.has(refs, wanted) {
            return Ok(None);
        }
        self.locked(|| {
            if self.has(refs, wanted) {
                return Ok(None);
            }
            let first = !self.path.join("HEAD").exists();
            if first {
                self.make()?;
            }
            step("vault.made");
            let notice = self.feed(first, refs, wanted)?;
            step("vault.fed");
            self.require_objects(refs, wanted)?;
            self.pin(wanted)?;
            step("vault.pinned");
            self.write(&self.path.join("fed"), stamp(refs).as_bytes())?;
            Ok(notice)
        })
    }

    /// Whether all of these are known to be complete here: by the refs of the last feed, and pins.
    pub fn has(&self, refs: &[MainRef], wanted: &[&str]) -> bool {
        let fed = read_text(self.path.join("fed"));
        let known = |id: &str| refs.iter().any(|known| known.commit == id) || self.is_pinned(id);
        fed.is_ok_and(|fed| fed == stamp(refs)) && wanted.iter().all(|id| known(id))
    }

    /// An empty bare repository, renamed into place when it is whole.
    fn make(&self) -> Result<(), VaultError> {
        let building = self.path.with_extension("new");
        let _ = fs::remove_dir_all(&building);
        let made = || -> io::Result<()> {
            for directory in ["objects/info", "objects/pack", "refs/main"] {
                fs::create_dir_all(building.join(directory))?;
            }
            durable(&building.join("HEAD"), b"ref: refs/heads/none\n")
        };
        made().map_err(VaultError::file(&building))?;
        self.write(&building.join("config"), self.config()?.as_bytes())?;
        step("vault.building");
        if let Some(above) = self.path.parent() {
            fs::create_dir_all(above).map_err(VaultError::file(above))?;
        }
        fs::rename(&building, &self.path).map_err(VaultError::file(&self.path))?;
        // git takes it for given everywhere but in its own checks, so no feed would bring it.
        self.git("hash-object")
            .args(["-w", "-t", "tree", "/dev/null"])
            .run()?;
        Ok(())
    }

    pub(crate) fn config(&self) -> Result<String, VaultError> {
        let format = Git::new(&self.main, "rev-parse")
            .args(["--show-object-format"])
            .run()?;
        let (version, extension) = match format.trim_ascii() {
            b"sha256" => (1, "[extensions]\n\tobjectformat = sha256\n"),
            _ => (0, ""),
        };
        Ok(format!(
            "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}\
             [gc]\n\tauto = 0\n\tpruneExpire = never\n[maintenance]\n\tauto = false\n"
        ))
    }

    /// Brings every object of main here. Loose ones are listed before packs, and packs until two listings agree, so an
    /// object that moves from one to the other meanwhile is not missed.
    pub(crate) fn feed(
        &self,
        first: bool,
        refs: &[MainRef],
        wanted: &[&str],
    ) -> Result<Option<String>, VaultError> {
        let stores = object_stores(&self.main);
        let mut notice = None;
        for _ in 0..2 {
            let loose = self.missing(loose_objects(&stores))?;
            let before = packs_of(&[self.objects()]);
            let copied = self.link_packs(&stores, first)?;
            notice = notice.or(copied);
            // Only a pack that came by now can hold one of them.
            let loose = match packs_of(&[self.objects()]) == before {
                true => loose,
                false => self.missing(loose)?,
            };
            // Gone meanwhile: a gc packed it, and the next listing finds the pack.
            if loose.is_empty() || self.pack_objects(&loose).is_ok() {
                self.copy_shallow()?;
                return Ok(notice);
            }
        }
        // A gc prunes loose objects as fast as they are listed. What refs lead to can't be pruned, only moved.
        self.feed_reachable(refs, wanted)?;
        self.copy_shallow()?;
        Ok(notice)
    }

    /// Brings what `refs` and `wanted` lead to, and nothing else of main.
    fn feed_reachable(&self, refs: &[MainRef], wanted: &[&str]) -> Result<(), VaultError> {
        let named = refs.iter().map(|known| known.commit.as_str());
        let tips: BTreeSet<&str> = named.chain(wanted.iter().copied()).collect();
        let list: Vec<_> = tips.into_iter().collect();
        // What a partial clone never had is left out.
        let absent = match self.main_is_partial() {
            true => "--missing=allow-any",
            false => "--missing=error",
        };
        let answer = Git::new(&self.main, "rev-list")
            .args(["--objects", "--no-object-names", absent, "--stdin"])
            .input(list.join("\n") + "\n")
            .limit(TIME_LIMIT)
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let missing = self.missing(text.lines().map(str::to_owned).collect())?;
        match missing.is_empty() {
            true => Ok(()),
            false => self.pack_objects(&missing),
        }
    }

    /// Those of `ids` that are not here.
    pub(crate) fn missing(&self, ids: Vec<String>) -> Result<Vec<String>, VaultError> {
        if ids.is_empty() {
            return Ok(ids);
        }
        let answer = self
            .git("cat-file")
            .args(["--batch-check=%(objectname)"])
            .input(ids.join("\n") + "\n")
            .limit(TIME_LIMIT)
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let missing = text
            .lines()
            .filter_map(|line| line.strip_suffix(" missing"));
        Ok(missing.map(str::to_owned).collect())
    }

    /// Copies objects of main into one pack here; few of them as they are.
    fn pack_objects(&self, ids: &[String]) -> Result<(), VaultError> {
        let receive = match (self.main_is_partial(), ids.len() < FEW_OBJECTS) {
            // Only a pack can say that it leads to what is not here.
            (true, _) => self.git("index-pack").args(["--stdin", "--promisor"]),
            (false, true) => self.git("unpack-objects").args(["-q"]),
            (false, false) => self.git("index-pack").args(["--stdin"]),
        };
        let receive = receive.limit(TIME_LIMIT);
        Git::new(&self.main, "pack-objects")
            .args(["--stdout", "-q", "--window=0"])
            .input(ids.join("\n") + "\n")
            .limit(TIME_LIMIT)
            .pipe_into(receive)?;
        Ok(())
    }

    /// Links packs that hold something new, until two listings of main agree.
    fn link_packs(&self, stores: &[PathBuf], first: bool) -> Result<Option<String>, VaultError> {
        let mut notice = None;
        // Nothing is pruned here, and a pack of the same name holds the same: what was covered once stays covered.
        let covered = self.path.join("covered");
        let text = read_text(&covered).unwrap_or_default();
        let mut seen: BTreeSet<PathBuf> = text.lines().map(PathBuf::from).collect();
        for _ in 0..ATTEMPTS {
            let listed = packs_of(stores);
            if listed.iter().all(|pack| seen.contains(pack)) {
                let here = listed.iter().map(|pack| format!("{}\n", pack.display()));
                let now: String = here.collect();
                if now != text {
                    self.write(&covered, now.as_bytes())?;
                }
                break;
            }
            for pack in listed {
                if seen.contains(&pack) {
                    continue;
                }
                let news = if first { News::Much } else { self.news(&pack)? };
                match news {
                    News::Nothing => {}
                    News::Few(ids) => self.pack_objects(&ids)?,
                    News::Much => {
                        notice = notice.or(self.link_pack(&pack)?);
                        // Gone before it was linked: not covered, if it should come back.
                        let name = pack.file_name().unwrap_or_default();
                        if !self.objects().join("pack").join(name).exists() {
                            continue;
                        }
                    }
                }
                seen.insert(pack);
            }
        }
        Ok(notice)
    }

    /// What of a pack is not here.
    fn news(&self, pack: &Path) -> Result<News, VaultError> {
        let name = pack.file_name().unwrap_or_default();
        if self.objects().join("pack").join(name).exists() {
            return Ok(News::Nothing);
        }
        let Ok(ids) = ids_of_pack(&self.main, pack) else {
            // It is gone by now, or can't be read: linking it will show.
            return Ok(News::Much);
        };
        let all = ids.len();
        let missing = self.missing(ids)?;
        Ok(match missing.len() {
            0 => News::Nothing,
            few if few * 2 < all => News::Few(missing),
            _ => News::Much,
        })
    }

    /// Links one pack: the data, then the index by which git finds it.
    pub(crate) fn link_pack(&self, pack: &Path) -> Result<Option<String>, VaultError> {
        let target = self.objects().join("pack");
        let mut notice = None;
        for extension in ["pack", "rev", "promisor", "idx"] {
            let from = pack.with_extension(extension);
            let to = target.join(from.file_name().unwrap_or_default());
            let is_optional = matches!(extension, "rev" | "promisor");
            if to.exists() || (is_optional && !from.exists()) {
                continue;
            }
            match fs::hard_link(&from, &to) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // A repack took it away; its objects are in a newer pack.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(refused) => {
                    let building = to.with_extension("copy");
                    fs::copy(&from, &building)
                        .and_then(|_| File::open(&building)?.sync_all())
                        .and_then(|()| fs::rename(&building, &to))
                        .map_err(VaultError::file(&from))?;
                    notice = Some(format!(
                        "packs can't be linked into the vault ({refused}), so they are copied"
                    ));
                }
            }
        }
        Ok(notice)
    }

    /// Where history ends in a shallow main, it ends here.
    fn copy_shallow(&self) -> Result<(), VaultError> {
        match read_small(&self.main.join("shallow")) {
            Ok(bytes) => self.write(&self.path.join("shallow"), &bytes),
            Err(_) => {
                let _ = fs::remove_file(self.path.join("shallow"));
                Ok(())
            }
        }
    }

    fn require_objects(&self, refs: &[MainRef], wanted: &[&str]) -> Result<(), VaultError> {
        let ids: BTreeSet<String> = refs
            .iter()
            .map(|known| known.commit.as_str())
            .chain(wanted.iter().copied())
            .map(str::to_owned)
            .collect();
        match self.missing(ids.into_iter().collect())?.first() {
            None => Ok(()),
            Some(object) => Err(VaultError::Incomplete {
                object: object.clone(),
                name: wanted.first().copied().unwrap_or("main").to_owned(),
            }),
        }
    }

    fn pin(&self, wanted: &[&str]) -> Result<(), VaultError> {
        let pins = wanted.iter().filter(|id| Commit::parse(id).is_some());
        let changes: Vec<_> = pins
            .map(|id| RefChange {
                name: format!("refs/main/{id}"),
                new: Some((*id).to_owned()),
                expected: Expected::Any,
            })
            .collect();
        Ok(update_refs(&self.path, &changes, "weald: fed")?)
    }

    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), VaultError> {
        replace(path, bytes).map_err(VaultError::file(path))
    }
}

/// The refs as one text, to see whether they moved.
fn stamp(refs: &[MainRef]) -> String {
    refs.iter()
        .map(|known| format!("{} {}\n", known.commit, known.name))
        .collect()
}
