//! `weald usage`: what everything takes on its disk, and making room.
//!
//! Trees are measured from inside their sandboxes. Room is made of folders that a build makes again, in trees that nobody
//! uses, and of nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::event::{Change, EventKind};
use weald_core::eviction::{Evictable, IdleFacts, NotIdle, Regenerable, choose, require_idle};
use weald_core::name::TreeName;
use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeStatus};

use crate::Upkeep;
use crate::survey::Survey;
use weald_control::steps::step;
use weald_trees::inside::{ClearEvicted, Evict, MeasureUsage, Usage, UsageWish, apart};
use weald_trees::side_by_side::side_by_side;
use weald_trees::{TreeError, at};

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

/// Whether anything is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomMode {
    Apply,
    /// It is only said what would be.
    DryRun,
}

/// A folder that went, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    pub tree: TreeName,
    pub path: String,
    pub bytes: u64,
}

/// A tree that was left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotEvicted {
    pub tree: TreeName,
    pub why: String,
}

/// What was done to make room.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeing {
    /// How much should be free.
    pub wanted: u64,
    /// Whether it was done.
    pub applied: bool,
    /// Folders that went, or would.
    pub evicted: Vec<Evicted>,
    /// Trees with such folders that somebody uses, or whose folders would not go.
    pub kept: Vec<NotEvicted>,
    /// How much is missing after all.
    pub short: u64,
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

    /// Chooses what has to go so that `wanted` bytes are free where trees are; deletes it if it is to.
    fn make_room(
        &self,
        survey: &Survey<'_>,
        report: &mut UsageReport,
        (wanted, mode): (u64, RoomMode),
    ) -> Result<(), TreeError> {
        let mut freeing = Freeing {
            wanted,
            applied: mode == RoomMode::Apply,
            ..Freeing::default()
        };
        let mut records = BTreeMap::new();
        let mut evictable = Vec::new();
        for usage in report
            .trees
            .iter()
            .filter(|usage| !usage.regenerable.is_empty())
        {
            let found = survey.live()?.find(|tree| tree.name == usage.tree);
            let Some(tree) = found else {
                continue;
            };
            match self.require_idle_for(survey, tree, usage.last_used_at)? {
                Err(why) => freeing.kept.push(not_evicted(tree, &why)),
                Ok(()) => {
                    evictable.push(offered(usage, tree));
                    records.insert(tree.name.clone(), tree);
                }
            }
        }
        let chosen = choose(evictable, report.free, wanted);
        let mut expected = report.free;
        for one in chosen {
            let Some(tree) = records.get(&one.tree).filter(|_| freeing.applied) else {
                expected += one.folders.iter().map(|folder| folder.frees).sum::<u64>();
                freeing.evicted.extend(told(&one));
                continue;
            };
            // Some free more than could be told before.
            if self.room_left()? >= wanted {
                break;
            }
            if let Err(why) = self.still_idle(tree, &one)? {
                freeing.kept.push(not_evicted(tree, &why));
                continue;
            }
            match self.evict(tree, &one) {
                Ok(gone) => freeing.evicted.extend(gone),
                Err(error) => freeing.kept.push(not_evicted(tree, &error)),
            }
        }
        if freeing.applied {
            expected = self.room_left()?;
            report.free = expected;
        }
        freeing.short = wanted.saturating_sub(expected);
        report.freeing = Some(freeing);
        Ok(())
    }

    /// Whether what builds made in a tree may go.
    fn require_idle_for(
        &self,
        survey: &Survey<'_>,
        tree: &Tree,
        last_used: Option<Timestamp>,
    ) -> Result<Result<(), NotIdle>, TreeError> {
        let root = existing(&self.trees.tree_root()?);
        let device = |path: &Path| path.metadata().map(|found| found.dev()).ok();
        let mut uses = survey.uses(tree)?.all();
        if tree.status == TreeStatus::Kept {
            uses.push("it is kept".to_owned());
        }
        let facts = IdleFacts {
            uses,
            is_on_disk: device(&root) == device(&tree.path),
            last_used: last_used
                .max(Some(tree.last_used_at))
                .filter(|_| last_used.is_some()),
        };
        let min_age = self.trees.config.usage_min_age;
        Ok(require_idle(&facts, min_age, self.trees.now()?))
    }

    /// The same in the moment before: somebody may have come.
    fn still_idle(
        &self,
        tree: &Tree,
        chosen: &Evictable,
    ) -> Result<Result<(), NotIdle>, TreeError> {
        let survey = Survey::new(self.trees, &[]);
        let current = survey.live()?.find(|now| now.id == tree.id);
        match current {
            Some(now) => self.require_idle_for(&survey, now, Some(chosen.last_used_at)),
            None => Ok(Err(NotIdle::Gone)),
        }
    }

    /// Deletes folders of a tree, from inside of it; answers those that are gone. It is in the log first, and they are put
    /// aside before anything is deleted: a kill leaves a trace, and no half of one under its name.
    fn evict(&self, tree: &Tree, chosen: &Evictable) -> Result<Vec<Evicted>, TreeError> {
        let site = self.trees.site(tree)?;
        let folders = chosen.folders.iter();
        let paths: Vec<_> = folders.map(|folder| folder.path.clone()).collect();
        let fact = Change {
            tree: Some(tree.name.clone()),
            ..Change::fact(EventKind::TREE_EVICTED).with_note(paths.join(", "))
        };
        self.record(Durability::Process, fact)?;
        let wish = self.usage_wish();
        let name = tree.name.as_str();
        let reply = self.trees.visit(name, &site, Evict { wish, paths })?;
        step("evict.renamed");
        if let Err(error) = self.trees.visit(name, &site, ClearEvicted) {
            let rest = format!("a part is left, and goes the next time: {error}");
            self.trees.engine.notice(rest);
        }
        let mut gone = told(chosen);
        gone.retain(|evicted| reply.gone.contains(&evicted.path));
        Ok(gone)
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

fn not_evicted(tree: &Tree, why: &dyn std::fmt::Display) -> NotEvicted {
    NotEvicted {
        tree: tree.name.clone(),
        why: why.to_string(),
    }
}

fn offered(usage: &TreeUsage, tree: &Tree) -> Evictable {
    Evictable {
        tree: tree.name.clone(),
        last_used_at: usage.last_used_at.unwrap_or(tree.last_used_at),
        folders: usage.regenerable.clone(),
    }
}

fn told(one: &Evictable) -> Vec<Evicted> {
    let folders = one.folders.iter().map(|folder| Evicted {
        tree: one.tree.clone(),
        path: folder.path.clone(),
        bytes: folder.bytes,
    });
    folders.collect()
}
