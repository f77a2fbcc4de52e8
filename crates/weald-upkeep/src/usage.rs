//! `weald usage`: what everything takes on its disk, and making room.
//!
//! Trees are measured from inside their sandboxes. Room is made of folders that a build makes again, in trees that nobody
//! uses, and of nothing else.

mod freeing;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::eviction::Regenerable;
use weald_core::name::TreeName;
use weald_core::tree::Tree;

use crate::Upkeep;
use crate::survey::Survey;
use weald_trees::inside::{MeasureUsage, Usage, UsageWish, apart};
use weald_trees::side_by_side::side_by_side;
use weald_trees::{TreeError, at};

pub use freeing::{Evicted, Freeing, NotEvicted, RoomMode};

/// What one tree takes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TreeUsage {
    pub tree: TreeName,
    /// Bytes on its disk.
    pub bytes: u64,
    /// Bytes that no other file has; absent where the file system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<u64>,
    /// Bytes that others may have, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<u64>,
    /// Folders that a build makes again.
    pub regenerable: Vec<Regenerable>,
    /// When it was last used, as a clean tells it; absent if that can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// Whether all of it was counted.
    pub whole: bool,
    /// Why it could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(skip)]
    ranges: Vec<(u64, u64)>,
    #[serde(skip)]
    device: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageReport {
    pub trees: Vec<TreeUsage>,
    /// All of those together; what they share counts once where the file system tells.
    pub total: u64,
    pub trash: u64,
    pub pool: u64,
    /// The vault, without what it has in common with main.
    pub vault: u64,
    pub private: u64,
    /// What is free where trees are.
    pub free: u64,
    /// What the trees take that a clean would take: free after a purge of the trash.
    pub would_free: u64,
    /// What was done to make room, or would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeing: Option<Freeing>,
}

impl Upkeep<'_> {
    /// Measures these trees, or all of them, and everything else. With `room`, makes sure that so much is free.
    pub fn usage(
        &self,
        names: &[String],
        room: Option<(u64, RoomMode)>,
    ) -> Result<UsageReport, TreeError> {
        let records = match names.is_empty() {
            true => self.trees.records()?,
            false => {
                let named = names.iter().map(|name| self.trees.named(Some(name)));
                named.collect::<Result<_, _>>()?
            }
        };
        let mut records: Vec<_> = records.into_iter().filter(Tree::is_live).collect();
        let mut seen = BTreeSet::new();
        records.retain(|tree| seen.insert(tree.id));
        let trees = side_by_side(&records, 1, |tree| self.usage_of(tree));
        let survey = Survey::new(self.trees, &[]);
        let would_free = self.freed_by_clean(&survey, &trees);
        let home = self.trees.place.repository().common_dir().join("weald");
        let root = self.trees.tree_root()?;
        let mut report = UsageReport {
            total: together(&trees),
            trees,
            trash: self.trees.trash()?.iter().map(|entry| entry.bytes).sum(),
            pool: own_bytes(&home.join("pool")) + own_bytes(&root.join(".pool")),
            vault: own_bytes(&home.join("vault")),
            private: own_bytes(self.trees.place.private()),
            free: self.room_left()?,
            would_free,
            freeing: None,
        };
        if let Some(room) = room {
            self.make_room(&survey, &mut report, room)?;
        }
        Ok(report)
    }

    /// What is free where trees are.
    fn room_left(&self) -> Result<u64, TreeError> {
        let root = self.trees.tree_root()?;
        let there = existing(&root);
        let found = rustix::fs::statvfs(&there).map_err(|error| at(&there)(error.into()))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn usage_wish(&self) -> UsageWish {
        let limit = self.trees.config.tree_look_limit.unsigned_abs();
        UsageWish {
            regenerable: self.trees.config.usage_regenerable.to_vec(),
            // Told before the visit is ended.
            millis: u64::try_from(limit.as_millis() * 9 / 10).unwrap_or(u64::MAX),
        }
    }

    /// One tree that can't be measured does not hide the others.
    fn usage_of(&self, tree: &Tree) -> TreeUsage {
        let measured = self.trees.site(tree).and_then(|site| {
            let job = MeasureUsage(self.usage_wish());
            let reply = self.trees.visit(tree.name.as_str(), &site, job)?;
            let touched = reply.touched_at.map(Timestamp::from_second).transpose();
            let last_used = touched.ok().map(|at| at.max(Some(tree.last_used_at)));
            Ok((reply.usage, last_used.flatten()))
        });
        let problem = measured.as_ref().err().map(ToString::to_string);
        let (usage, last_used_at): (Usage, _) = measured.unwrap_or_default();
        let once: u64 = usage.ranges.iter().map(|(_, length)| length).sum();
        let shared = usage.shared.map(|shared| shared.min(usage.bytes));
        let exclusive = shared.map(|shared| usage.bytes - shared);
        TreeUsage {
            tree: tree.name.clone(),
            // What it shares with itself is there once.
            bytes: match (exclusive, usage.ranges.is_empty()) {
                (Some(exclusive), false) => exclusive.saturating_add(once).min(usage.bytes),
                _ => usage.bytes,
            },
            exclusive,
            shared: shared.map(|shared| if once > 0 { once.min(shared) } else { shared }),
            regenerable: usage.regenerable,
            last_used_at,
            whole: usage.is_whole,
            problem,
            ranges: usage.ranges,
            device: tree.identity.map_or(0, |identity| identity.device),
        }
    }

    /// What those of these trees take that a clean would take; nothing if that can't be told.
    fn freed_by_clean(&self, survey: &Survey<'_>, trees: &[TreeUsage]) -> u64 {
        let finished = self.finished(survey).unwrap_or_else(|error| {
            let notice = format!("it is unknown how much a clean would free: {error}");
            self.trees.engine.notice(notice);
            BTreeSet::new()
        });
        let gone = trees.iter().filter(|usage| finished.contains(&usage.tree));
        gone.map(|usage| usage.exclusive.unwrap_or(usage.bytes))
            .sum()
    }
}

/// All trees together: what is theirs alone, and what they share, once a disk.
fn together(trees: &[TreeUsage]) -> u64 {
    let mut shared: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut total: u64 = 0;
    for tree in trees {
        let alone = match (tree.exclusive, tree.ranges.is_empty()) {
            (Some(exclusive), false) => exclusive,
            _ => tree.bytes,
        };
        total = total.saturating_add(alone);
        shared.entry(tree.device).or_default().extend(&tree.ranges);
    }
    for ranges in shared.into_values() {
        let parts = apart(ranges);
        total = parts
            .iter()
            .fold(total, |sum, (_, length)| sum.saturating_add(*length));
    }
    total
}

/// What files of weald's own take that no other name has; links are not followed.
fn own_bytes(path: &Path) -> u64 {
    let (mut open, mut bytes) = (vec![path.to_owned()], 0);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if found.is_dir() {
                open.push(entry.path());
            }
            if found.is_dir() || found.nlink() == 1 {
                bytes += found.blocks() * 512;
            }
        }
    }
    bytes
}

fn existing(path: &Path) -> PathBuf {
    let mut above = path.ancestors();
    let found = above.find(|path| path.is_dir());
    found.unwrap_or(Path::new("/")).to_owned()
}
