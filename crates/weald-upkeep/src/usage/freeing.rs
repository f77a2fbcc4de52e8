//! Making room: folders that a build makes again go, and nothing else.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::event::{Change, EventKind};
use weald_core::eviction::{Evictable, IdleFacts, NotIdle, choose, require_idle};
use weald_core::name::TreeName;
use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeStatus};

use super::{TreeUsage, UsageReport, existing};
use crate::Upkeep;
use crate::survey::Survey;
use weald_control::steps::step;
use weald_trees::TreeError;
use weald_trees::inside::{ClearEvicted, Evict};

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

impl Upkeep<'_> {
    /// Chooses what has to go so that `wanted` bytes are free where trees are; deletes it if it is to.
    pub(super) fn make_room(
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
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                tx.record(self.trees.actor(), fact)?;
                Ok::<_, TreeError>(())
            })?;
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
