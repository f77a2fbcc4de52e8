//! File times that build tools can trust.
//!
//! Build outputs that were copied from main are good for files that are what they were when main built them, and for no
//! others. So a file whose content main's checkout has, unchanged, gets main's time; any other is as young as now.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_git::{CheckoutIndex, EntryKind, FileStat, IndexEntry, set_times, stats_of};

use super::{Access, InsideError, Job, Workplace, read_capped};

type Time = (i64, u32);

/// Gives files the times that main's have, if they hold the same.
#[derive(Serialize, Deserialize)]
pub struct MatchTimes {
    /// Main's checkout.
    pub main: PathBuf,
    /// The index of that.
    pub index: PathBuf,
    /// The index of a tree that nobody is in yet: it follows. In a tree that somebody may be in, git looks at the files again
    /// instead.
    pub fresh: Option<PathBuf>,
}

impl Job for MatchTimes {
    type Reply = ();
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<(), InsideError> {
        let own = self.fresh.clone();
        let own = own.unwrap_or_else(|| at.git_dir.join("index"));
        if !own.is_file() {
            return Ok(());
        }
        let sha256 = at.has_sha256()?;
        let Some(mut index) = CheckoutIndex::read(&own, sha256)? else {
            return Ok(());
        };
        let theirs = CheckoutIndex::read(&self.index, sha256).ok().flatten();
        let times = match &theirs {
            Some(theirs) => unchanged(&self.main, &self.index, theirs)?,
            None => HashMap::new(),
        };
        let building = own.with_extension("matched");
        fs::write(&building, b"")?;
        let made = fs::metadata(&building)?;
        let now = (made.mtime(), made.mtime_nsec() as u32);
        let mut wanted = Vec::with_capacity(index.len());
        // A file that somebody changed keeps its time: with new stat data it would look unchanged.
        let ours = unchanged(&at.work_tree, &own, &index)?;
        for (place, entry) in index.entries().enumerate() {
            let is_ours = ours.get(entry.path).is_some_and(|own| own.is_sure);
            if is_ours && entry.kind != EntryKind::Submodule {
                let path = Path::new(OsStr::from_bytes(entry.path));
                let is_same = |same: &&Unchanged<'_>| {
                    same.fits(&entry)
                        && (same.is_sure
                            || holds_same(&self.main.join(path), &at.work_tree.join(path)))
                };
                let same = times.get(entry.path).filter(is_same);
                wanted.push((place, same.map_or(now, |same| same.modified)));
            }
        }
        drop(ours);
        set_times(&at.work_tree, &mut index, &wanted)?;
        match &self.fresh {
            Some(own) => {
                fs::write(&building, index.to_bytes())?;
                fs::rename(&building, own)?;
            }
            None => fs::remove_file(&building)?,
        }
        Ok(())
    }
}

impl Workplace {
    fn has_sha256(&self) -> Result<bool, InsideError> {
        let format = self.git("rev-parse").args(["--show-object-format"]).run()?;
        Ok(format.trim_ascii() == b"sha256")
    }
}

/// A file that holds what its index says.
struct Unchanged<'a> {
    id: &'a [u8],
    kind: EntryKind,
    modified: Time,
    /// False for a file as young as the index: it may have changed after git looked at it.
    is_sure: bool,
}

impl Unchanged<'_> {
    fn fits(&self, entry: &IndexEntry<'_>) -> bool {
        self.id == entry.id && self.kind == entry.kind
    }
}

/// The files of a checkout that are what its index says, by the stat data that git goes by.
fn unchanged<'a>(
    checkout: &Path,
    file: &Path,
    index: &'a CheckoutIndex,
) -> Result<HashMap<&'a [u8], Unchanged<'a>>, InsideError> {
    let written = fs::metadata(file)?.mtime();
    let mut found = HashMap::new();
    for (place, stat) in stats_of(checkout, index)? {
        let entry = index.entry(place);
        if is_same(&entry, &stat) {
            let same = Unchanged {
                id: entry.id,
                kind: entry.kind,
                modified: stat.modified,
                is_sure: stat.modified.0 < written,
            };
            found.insert(entry.path, same);
        }
    }
    Ok(found)
}

/// Whether two small files hold the same.
fn holds_same(one: &Path, other: &Path) -> bool {
    const LIMIT: u64 = 16 << 20;
    let read = |path| read_capped(path, LIMIT).filter(|bytes| (bytes.len() as u64) < LIMIT);
    read(one).is_some_and(|bytes| Some(bytes) == read(other))
}

fn is_same(entry: &IndexEntry<'_>, stat: &FileStat) -> bool {
    entry.modified == stat.modified
        && entry.changed == stat.changed
        && entry.size == stat.size as u32
        && entry.inode == stat.inode as u32
}
