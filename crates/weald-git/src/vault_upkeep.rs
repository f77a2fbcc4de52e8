//! Upkeep of the vault: link main's new packs, drop packs whose every object is in others.
//!
//! Nothing is pruned: an object that is in the vault stays in it. A pack is dropped at the earliest [`GRACE`] after it
//! was first found to be redundant, because a process may still have it open; what only it holds is packed again first.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::object_stores::{ids_of_pack, object_stores, packs_of};
use crate::steps::step;
use crate::vault::{Vault, VaultError};
use crate::vault_faults::is_older;

/// How long a redundant pack stays.
pub const GRACE: Duration = Duration::from_secs(600);

/// After so long a lock file is nobody's.
const STALE: Duration = Duration::from_secs(600);

/// From so many packs on every git process on the vault takes noticeably longer.
const MANY_PACKS: usize = 200;

/// Packs below this size are put together when there are more than [`FEW_SMALL`] of them.
const SMALL: u64 = 8 << 20;
const FEW_SMALL: usize = 50;

/// How large the vault is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultStatus {
    /// Whether there is one yet.
    pub exists: bool,
    pub packs: usize,
    pub bytes: u64,
    /// Bytes that main shares with it.
    pub shared_bytes: u64,
    /// Bytes of main's own packs.
    pub main_bytes: u64,
}

/// What an upkeep did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VaultUpkeep {
    /// Packs of main that are now shared.
    pub linked: usize,
    pub dropped: usize,
    /// Packs that are redundant and wait for the end of the grace.
    pub waiting: usize,
}

impl Vault {
    /// Lock files of refs in the vault that no git holds any more: none takes so long.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![self.path.join("refs")];
        let mut files = vec![self.path.join("packed-refs.lock")];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    _ => files.push(entry.path()),
                }
            }
        }
        for file in files {
            let is_lock = file.extension().is_some_and(|kind| kind == "lock");
            if is_lock && is_older(&file, STALE) {
                found.push(file);
            }
        }
        found
    }

    pub fn status(&self) -> VaultStatus {
        let ours = packs_of(&[self.objects()]);
        let main: BTreeMap<_, _> = packs_of(&object_stores(&self.main))
            .into_iter()
            .filter_map(|pack| Some((pack.file_name()?.to_owned(), pack)))
            .collect();
        let shared = ours
            .iter()
            .filter(|pack| pack.file_name().is_some_and(|name| main.contains_key(name)));
        VaultStatus {
            exists: self.path().join("HEAD").exists(),
            packs: ours.len(),
            bytes: ours.iter().map(|pack| size(pack)).sum(),
            shared_bytes: shared.map(|pack| size(pack)).sum(),
            main_bytes: main.values().map(|pack| size(pack)).sum(),
        }
    }

    /// True when it is time for an upkeep: what only the vault holds is more than main itself, or it is in too many pieces.
    pub fn wants_upkeep(&self) -> bool {
        let last = fs::metadata(self.path().join("redundant")).and_then(|found| found.modified());
        if last.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < GRACE)) {
            return false;
        }
        let status = self.status();
        let alone = status.bytes - status.shared_bytes;
        status.packs > MANY_PACKS
            || alone > 2 * status.main_bytes.max(16 << 20)
            || self.has_many_loose()
            || self.has_many_pins()
    }

    /// The same as [`Vault::maintain`] if it is still wanted when its turn comes.
    pub fn maintain_if_wanted(&self, now: SystemTime) -> Result<(), VaultError> {
        self.locked(|| match self.wants_upkeep() {
            true => self.keep_up(now, GRACE).map(drop),
            false => Ok(()),
        })
    }

    /// Links main's packs and drops what is redundant by then. `now` and `grace` say which of those waited long enough.
    pub fn maintain(&self, now: SystemTime, grace: Duration) -> Result<VaultUpkeep, VaultError> {
        self.locked(|| self.keep_up(now, grace))
    }

    fn keep_up(&self, now: SystemTime, grace: Duration) -> Result<VaultUpkeep, VaultError> {
        if !self.path().join("HEAD").exists() {
            return Ok(VaultUpkeep::default());
        }
        let before: BTreeSet<_> = packs_of(&[self.objects()]).into_iter().collect();
        let main = packs_of(&object_stores(&self.main));
        for pack in &main {
            self.link_pack(pack)?;
        }
        let shared: BTreeSet<_> = main
            .iter()
            .filter_map(|pack| Some(self.objects().join("pack").join(pack.file_name()?)))
            .collect();
        let linked = shared.iter().filter(|pack| !before.contains(*pack)).count();
        step("vault.linked");
        self.keep_loose(now, grace)?;
        self.pack_pins()?;
        let redundant = self.redundant(&shared)?;
        step("vault.packed");
        let (dropped, waiting) = self.drop_packs(redundant, now, grace)?;
        Ok(VaultUpkeep {
            linked,
            dropped,
            waiting,
        })
    }

    /// Packs whose every object is in a shared pack or in a later one of our own.
    fn redundant(&self, shared: &BTreeSet<PathBuf>) -> Result<Vec<PathBuf>, VaultError> {
        let mut covered = HashSet::new();
        for pack in shared.iter().filter(|pack| pack.exists()) {
            covered.extend(ids_of_pack(self.path(), pack)?);
        }
        let mut own: Vec<_> = packs_of(&[self.objects()])
            .into_iter()
            .filter(|pack| !shared.contains(pack))
            .collect();
        own.sort_by_key(|pack| std::cmp::Reverse(size(pack)));
        let mut redundant = Vec::new();
        let mut leftovers = HashSet::new();
        let mut small = Vec::new();
        for pack in own {
            let ids = ids_of_pack(self.path(), &pack)?;
            let alone: Vec<_> = ids
                .iter()
                .filter(|id| !covered.contains(*id))
                .cloned()
                .collect();
            // A pack that is mostly elsewhere gives its rest to a small one.
            if alone.is_empty() {
                redundant.push(pack);
            } else if alone.len() * 4 < ids.len() {
                leftovers.extend(alone);
                redundant.push(pack);
            } else {
                if size(&pack) < SMALL {
                    small.push(alone);
                }
                covered.extend(ids);
            }
        }
        leftovers.retain(|id| !covered.contains(id));
        // Imports make a small pack each; together they are one.
        if small.len() > FEW_SMALL {
            leftovers.extend(small.into_iter().flatten());
        }
        if !leftovers.is_empty() {
            self.pack_own(leftovers.into_iter().collect())?;
            // The new pack counts from the next upkeep on; the old ones stay until then.
            return Ok(Vec::new());
        }
        Ok(redundant)
    }

    fn drop_packs(
        &self,
        redundant: Vec<PathBuf>,
        now: SystemTime,
        grace: Duration,
    ) -> Result<(usize, usize), VaultError> {
        let list = self.path().join("redundant");
        let known = fs::read_to_string(&list).unwrap_or_default();
        let seconds = |time: SystemTime| {
            time.duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs())
        };
        let known: BTreeMap<&str, u64> = known
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(since, name)| Some((name, since.parse().ok()?)))
            .collect();
        let (mut dropped, mut waiting) = (0, String::new());
        for pack in redundant {
            let name = pack
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let since = known.get(name.as_str()).copied().unwrap_or(seconds(now));
            if seconds(now) >= since + grace.as_secs() {
                // The index first: without it git does not look for the data.
                for extension in ["idx", "rev", "promisor", "pack"] {
                    let _ = fs::remove_file(pack.with_extension(extension));
                    step("vault.dropping");
                }
                dropped += 1;
            } else {
                waiting.push_str(&format!("{since} {name}\n"));
            }
        }
        self.write(&list, waiting.as_bytes())?;
        Ok((dropped, waiting.lines().count()))
    }
}

fn size(pack: &Path) -> u64 {
    fs::metadata(pack).map_or(0, |found| found.len())
}
