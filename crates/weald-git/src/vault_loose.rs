//! Loose objects of the vault: imports and candidates make them, upkeep puts them into one pack.
//!
//! A loose object goes only when a pack has held it for the whole grace.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use crate::object_stores::{ids_of_pack, loose_objects, packs_of};
use crate::steps::step;
use crate::vault::{Vault, VaultError};

/// From so many loose objects on they are packed.
const MANY_LOOSE: usize = 4000;

/// How long packing them may take.
const TIME_LIMIT: Duration = Duration::from_secs(600);

impl Vault {
    /// Whether there are many loose objects. Ids are spread evenly over 256 folders, so one of them is enough.
    pub(crate) fn has_many_loose(&self) -> bool {
        let entries = fs::read_dir(self.objects().join("17"));
        entries.is_ok_and(|entries| entries.count() * 256 > MANY_LOOSE)
    }

    /// Packs loose objects if there are many, and takes those away that a pack has held for longer than `grace`.
    pub(crate) fn keep_loose(&self, now: SystemTime, grace: Duration) -> Result<(), VaultError> {
        let loose = loose_objects(&[self.objects()]);
        if loose.len() < MANY_LOOSE {
            return Ok(());
        }
        let (mut packed, mut settled) = (HashSet::new(), HashSet::new());
        for pack in packs_of(&[self.objects()]) {
            // A pack of main's is older than its place here; the time of its link is not.
            let since = fs::metadata(pack.with_extension("idx")).map_or(i64::MAX, |at| at.ctime());
            let age = seconds(now).saturating_sub(since);
            let ids = ids_of_pack(self.path(), &pack)?;
            if u64::try_from(age).is_ok_and(|age| age >= grace.as_secs()) {
                settled.extend(ids);
            } else {
                packed.extend(ids);
            }
        }
        let is_packed = |id: &String| packed.contains(id) || settled.contains(id);
        let alone: Vec<String> = loose.iter().filter(|id| !is_packed(id)).cloned().collect();
        if !alone.is_empty() {
            self.pack_own(alone)?;
        }
        step("vault.packed");
        for id in loose.iter().filter(|id| settled.contains(*id)) {
            let (folder, rest) = id.split_at(2);
            let _ = fs::remove_file(self.objects().join(folder).join(rest));
        }
        Ok(())
    }

    /// Puts objects of the vault into one new pack of it.
    pub(crate) fn pack_own(&self, mut ids: Vec<String>) -> Result<(), VaultError> {
        ids.sort();
        let made = self
            .git("pack-objects")
            .args(["-q".into(), self.objects().join("pack/pack")])
            .input(ids.join("\n") + "\n")
            .limit(TIME_LIMIT)
            .run()?;
        if self.main_is_partial() {
            let name = String::from_utf8_lossy(&made).trim_end().to_owned();
            self.promise(&self.objects().join(format!("pack/pack-{name}.pack")))?;
        }
        Ok(())
    }
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
