//! The conflict radar: which live trees, committed or not, would clash with the target and with each other.
//!
//! It only looks: no ref moves, nothing is recorded, no snapshot is taken. `looking` turns each tree into one commit,
//! `pairs` merges what may clash, `memory` keeps what was found out, `telling` writes to whom it concerns.

mod beside;
mod hunks;
mod landed;
mod looking;
mod memory;
mod pairs;
mod patch;
mod repository;
mod telling;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use weald_core::id::TreeId;
use weald_core::name::TreeName;
use weald_core::tree::Tree;

pub use self::patch::WorkPatch;

use self::memory::{Memory, State};
use self::pairs::{Outcome, Pair, Side};
use super::LandError;
use crate::Landings;
use weald_control::files;
use weald_trees::at;
use weald_trees::side_by_side::side_by_side;

pub use telling::Told;

/// Everything that a look found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Radar {
    /// Pairs that don't merge.
    pub pairs: Vec<Clash>,
    /// Trees that could not be looked into, and pairs that could not be merged.
    pub unknown: Vec<Unknown>,
    /// What was looked at.
    pub trees: Vec<Observed>,
    /// How many pairs there are.
    pub checked: usize,
    /// How many of them had to be merged now; the others were known, or touch different paths.
    pub merged: usize,
    /// How long looking into the trees took, in milliseconds.
    pub looking_ms: u64,
    /// How long settling the pairs took, in milliseconds.
    pub settling_ms: u64,
}

/// Two that don't merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clash {
    pub a: String,
    /// Another one, or the branch that `a` lands on.
    pub b: String,
    /// True when `b` is that branch.
    pub with_target: bool,
    pub paths: Vec<String>,
    /// True when something takes part that is not committed.
    pub uncommitted: bool,
    /// The same with how.
    pub conflicts: Vec<PathConflict>,
}

/// One path that does not merge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathConflict {
    pub path: String,
    /// What git calls it: `contents`, `modify/delete`, `directory rename suggested` …
    pub kinds: Vec<String>,
    /// Lines, where there are any; only the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
}

/// Lines of both sides that don't merge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// Where it begins, in the merged file with `a`'s lines.
    pub line: u64,
    pub a: Vec<String>,
    pub b: Vec<String>,
    /// True when there is more of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What could not be found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    pub tree: String,
    /// With which tree or branch; `None` if it could not be looked into at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    pub reason: String,
}

/// A tree that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    pub name: TreeName,
    pub target: String,
    /// What its HEAD holds.
    pub head: String,
    /// True when it holds something that is not committed.
    pub uncommitted: bool,
    /// Files that were too large to be looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Landings<'_> {
    /// Looks at every live tree and merges what may clash. If some are `wanted`, only what concerns those is told.
    pub fn conflicts(&self, wanted: &BTreeSet<TreeId>) -> Result<Radar, LandError> {
        let trees: Vec<Tree> = self
            .trees
            .records()?
            .into_iter()
            .filter(|tree| tree.is_live() && !tree.removing)
            .collect();
        if trees.is_empty() {
            return Ok(Radar::default());
        }
        let file = self.radar_file();
        // One at a time: the others wait, and know more then.
        let looked = files::edit_alone(&file, || {
            let mut memory = Memory::load(&file);
            memory.round += 1;
            let radar = self.look_around(&trees, wanted, &mut memory);
            memory.save(&file);
            radar
        });
        looked.map_err(at(&file))?
    }

    pub(super) fn radar_file(&self) -> PathBuf {
        self.trees.place.private().join("conflicts.json")
    }

    fn look_around(
        &self,
        trees: &[Tree],
        wanted: &BTreeSet<TreeId>,
        memory: &mut Memory,
    ) -> Result<Radar, LandError> {
        let trees_of_now = self.trees.with_refs_of_now()?;
        let looking = Landings::new(&trees_of_now);
        let mut tips = BTreeMap::new();
        for tree in trees {
            if !tips.contains_key(&tree.target) {
                let tip = looking.target_for_radar(&tree.target)?;
                tips.insert(tree.target.clone(), tip);
            }
        }
        let repository = looking.radar_repository(memory)?;
        let begun = Instant::now();
        let states = side_by_side(trees, 1, |tree| {
            looking.observe(tree, &repository, memory.states.get(&tree.id))
        });
        let mut radar = Radar {
            looking_ms: milliseconds(begun),
            ..Radar::default()
        };
        let mut seen: Vec<(&Tree, State)> = Vec::new();
        memory.states.clear();
        for (tree, state) in trees.iter().zip(states) {
            match state {
                Ok(state) => {
                    memory.states.insert(tree.id, state.clone());
                    radar.trees.push(Observed {
                        name: tree.name.clone(),
                        target: tree.target.clone(),
                        head: state.head.clone(),
                        uncommitted: state.work.is_some(),
                        left_out: state.left_out.clone(),
                    });
                    seen.push((tree, state));
                }
                Err(error) => radar.unknown.push(Unknown {
                    tree: tree.name.to_string(),
                    with: None,
                    reason: error.to_string(),
                }),
            }
        }
        let begun = Instant::now();
        for (target, tip) in tips {
            let ours = seen.iter().filter(|(tree, _)| tree.target == target);
            let mut sides = Vec::new();
            for (tree, state) in ours {
                sides.push(Side {
                    name: tree.name.to_string(),
                    head: state.head.clone(),
                    commit: state.commit.clone(),
                    landed: match &tip {
                        Some(tip) => self.landed_base(&repository, tree, &state.head, tip)?,
                        None => None,
                    },
                    is_wanted: wanted.is_empty() || wanted.contains(&tree.id),
                });
            }
            pairs::settle(&repository, &target, tip, sides, memory, &mut radar);
        }
        radar.settling_ms = milliseconds(begun);
        // What can't be merged may be missing; the next look is a whole one.
        if radar.unknown.iter().any(|unknown| unknown.with.is_some()) {
            memory.states.clear();
        }
        Ok(radar)
    }

    /// A branch's tip, present in the vault; `None` if there is no such branch.
    fn target_for_radar(&self, target: &str) -> Result<Option<String>, LandError> {
        let found = self.trees.place.repository().target(target);
        let Some(target) = found.map_err(LandError::Git)? else {
            return Ok(None);
        };
        let tip = target.tip.as_str().to_owned();
        self.trees
            .vault()
            .require(&self.trees.main_refs()?, &[&tip])?;
        Ok(Some(tip))
    }
}

fn milliseconds(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Radar {
    fn take(&mut self, pair: &Pair<'_>, outcome: Outcome) {
        match outcome {
            Outcome::Clean => {}
            Outcome::Unknown(reason) => self.unknown.push(Unknown {
                tree: pair.a.name.clone(),
                with: Some(pair.b.name.clone()),
                reason,
            }),
            Outcome::Conflict(known) => self.pairs.push(Clash {
                a: pair.a.name.clone(),
                b: pair.b.name.clone(),
                with_target: pair.with_target,
                paths: known.conflicts.iter().map(|one| one.path.clone()).collect(),
                uncommitted: known.uncommitted,
                conflicts: known.conflicts,
            }),
        }
    }
}
