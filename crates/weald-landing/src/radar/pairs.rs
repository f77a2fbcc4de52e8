//! All pairs of one target: what is known is taken from memory, what touches different paths is clean, the rest is merged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weald_core::radar::{Ancestry, Footprint, PathChange, Reach, Touch};
use weald_git::{
    GitError, MergePair, PairMerged, TreeDifference, history_between, merge_pairs,
    tree_differences, trees_of,
};

use super::hunks::{Unmerged, add_hunks};
use super::memory::{Known, Memory};
use super::{PathConflict, Radar};

/// More history than this between trees is not read: then every pair is merged.
const HISTORY: usize = 50_000;

/// How many paths of a pair are told.
const PATHS: usize = 200;

/// One side of a pair: a tree, or the target.
#[derive(Debug, Clone)]
pub(super) struct Side {
    /// What it is called.
    pub name: String,
    /// The last commit of its own.
    pub head: String,
    /// That with what is not committed.
    pub commit: String,
    /// What of it landed before; the target has that in another form.
    pub landed: Option<String>,
    /// Whether anybody asked for it.
    pub is_wanted: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Pair<'s> {
    pub a: &'s Side,
    /// Another one, or the target.
    pub b: &'s Side,
    pub with_target: bool,
}

impl Pair<'_> {
    /// Where both started, if git would not find it.
    fn base(&self) -> Option<&String> {
        self.a.landed.as_ref().filter(|_| self.with_target)
    }

    fn key(&self, attributes: &str) -> String {
        let base = self.base().map_or("", String::as_str);
        format!("{} {} {attributes} {base}", self.a.commit, self.b.commit)
    }
}

/// What became of a pair.
pub(super) enum Outcome {
    Clean,
    Conflict(Known),
    Unknown(String),
}

/// Settles all pairs of the trees that land on `target`.
pub(super) fn settle(
    repository: &Path,
    target: &str,
    tip: Option<String>,
    mut sides: Vec<Side>,
    memory: &mut Memory,
    radar: &mut Radar,
) {
    // One whose work is on the target has nothing to clash with.
    sides.retain(|side| side.landed.as_ref() != Some(&side.commit));
    let Some(first) = sides.first() else { return };
    let attributes = tip.clone().unwrap_or_else(|| first.head.clone());
    let target = tip.map(|tip| Side {
        name: target.to_owned(),
        head: tip.clone(),
        commit: tip,
        landed: None,
        is_wanted: false,
    });
    let pairs = all_pairs(&sides, target.as_ref());
    radar.checked += pairs.len();
    let round = memory.round;
    let mut open = Vec::new();
    let mut outcomes: Vec<Option<Outcome>> = Vec::new();
    for (place, pair) in pairs.iter().enumerate() {
        let known = memory.pairs.get_mut(&pair.key(&attributes));
        outcomes.push(known.map(|known| {
            known.round = round;
            match known.conflicts.is_empty() {
                true => Outcome::Clean,
                false => Outcome::Conflict(known.clone()),
            }
        }));
        if outcomes[place].is_none() {
            open.push(place);
        }
    }
    let unsettled: Vec<&Pair<'_>> = open.iter().map(|place| &pairs[*place]).collect();
    let (settled, merged) = settle_open(repository, &attributes, &unsettled);
    radar.merged += merged;
    for (place, outcome) in open.into_iter().zip(settled) {
        let known = match &outcome {
            Outcome::Clean => Some(Known::default()),
            Outcome::Conflict(known) => Some(known.clone()),
            Outcome::Unknown(_) => None,
        };
        if let Some(known) = known {
            let key = pairs[place].key(&attributes);
            memory.pairs.insert(key, Known { round, ..known });
        }
        outcomes[place] = Some(outcome);
    }
    for (pair, outcome) in pairs.iter().zip(outcomes) {
        radar.take(pair, outcome.unwrap_or(Outcome::Clean));
    }
}

/// Every tree with the target, then every tree with every other.
fn all_pairs<'s>(sides: &'s [Side], target: Option<&'s Side>) -> Vec<Pair<'s>> {
    let mut pairs = Vec::new();
    if let Some(target) = target {
        pairs.extend(sides.iter().map(|a| Pair {
            a,
            b: target,
            with_target: true,
        }));
    }
    for (place, a) in sides.iter().enumerate() {
        pairs.extend(sides[place + 1..].iter().map(|b| Pair {
            a,
            b,
            with_target: false,
        }));
    }
    pairs.retain(|pair| pair.a.is_wanted || pair.b.is_wanted);
    pairs
}

/// Outcomes in order, and how many merges that took.
fn settle_open(repository: &Path, attributes: &str, pairs: &[&Pair<'_>]) -> (Vec<Outcome>, usize) {
    if pairs.is_empty() {
        return (Vec::new(), 0);
    }
    // What can't be compared is merged; git then says of each pair what is wrong with it.
    let ground = Ground::read(repository, pairs).unwrap_or_default();
    let clash: Vec<bool> = pairs.iter().map(|pair| ground.may_clash(pair)).collect();
    let merging: Vec<&Pair<'_>> = pairs
        .iter()
        .zip(&clash)
        .filter(|(_, clash)| **clash)
        .map(|(pair, _)| *pair)
        .collect();
    let orders: Vec<MergePair> = merging
        .iter()
        .map(|pair| MergePair {
            ours: pair.a.commit.clone(),
            theirs: pair.b.commit.clone(),
            base: pair.base().cloned(),
        })
        .collect();
    let merged = merge_pairs(repository, attributes, &orders);
    let mut known = described(repository, &merging, &merged).into_iter();
    let mut merged = merged.into_iter();
    let outcomes = clash.into_iter().map(|clash| match clash {
        false => Outcome::Clean,
        true => match merged.next() {
            Some(PairMerged::Clean) => Outcome::Clean,
            Some(PairMerged::Conflict { .. }) => {
                Outcome::Conflict(known.next().unwrap_or_default())
            }
            Some(PairMerged::Failed(why)) => Outcome::Unknown(why),
            None => Outcome::Unknown("git gave no answer".to_owned()),
        },
    });
    (outcomes.collect(), orders.len())
}

/// The conflicts among merges, in order, with their lines.
fn described(repository: &Path, pairs: &[&Pair<'_>], merged: &[PairMerged]) -> Vec<Known> {
    let mut clashing = Vec::new();
    let mut unmerged = Vec::new();
    for (pair, merged) in pairs.iter().zip(merged) {
        let PairMerged::Conflict { tree, paths } = merged else {
            continue;
        };
        clashing.push(*pair);
        let told = paths.iter().take(PATHS);
        unmerged.push(Unmerged {
            tree: tree.clone(),
            sides: (pair.a.commit.clone(), pair.b.commit.clone()),
            raw: told.clone().map(|(path, _)| path.clone()).collect(),
            conflicts: told
                .map(|(path, kinds)| PathConflict {
                    path: String::from_utf8_lossy(path).into_owned(),
                    kinds: kinds.clone(),
                    hunks: Vec::new(),
                })
                .collect(),
        });
    }
    if unmerged.is_empty() {
        return Vec::new();
    }
    // Lines are an extra: without them the paths still count.
    let _ = add_hunks(repository, &mut unmerged);
    let open = uncommitted(repository, &clashing).unwrap_or_default();
    let known = clashing.into_iter().zip(unmerged).map(|(pair, unmerged)| {
        let takes_part = |side: &Side| match open.get(&side.commit) {
            Some(paths) => unmerged.raw.iter().any(|path| paths.contains(path)),
            // Where it can't be told, it is said rather than hidden.
            None => side.head != side.commit,
        };
        Known {
            round: 0,
            uncommitted: takes_part(pair.a) || takes_part(pair.b),
            conflicts: unmerged.conflicts,
        }
    });
    known.collect()
}

/// The paths that sides have changed and not committed, by the commits that stand for them.
fn uncommitted(
    repository: &Path,
    pairs: &[&Pair<'_>],
) -> Result<BTreeMap<String, BTreeSet<Vec<u8>>>, GitError> {
    let sides = || pairs.iter().flat_map(|pair| [pair.a, pair.b]);
    let open: Vec<&Side> = sides().filter(|side| side.head != side.commit).collect();
    if open.is_empty() {
        return Ok(BTreeMap::new());
    }
    let both = open
        .iter()
        .flat_map(|side| [side.head.as_str(), side.commit.as_str()]);
    let trees = trees_of(repository, &both.collect())?;
    let pair = |side: &Side| Some((trees.get(&side.head)?, trees.get(&side.commit)?));
    let wanted = open.iter().filter_map(|side| pair(side));
    let wanted = wanted.map(|(from, to)| (from.as_str(), to.as_str()));
    let found = tree_differences(repository, &wanted.collect())?;
    let paths = |side: &&Side| {
        let (from, to) = pair(side)?;
        let differences = found.get(&(from.clone(), to.clone()))?;
        let paths = differences.iter().map(|difference| difference.path.clone());
        Some((side.commit.clone(), paths.collect()))
    };
    Ok(open.iter().filter_map(paths).collect())
}

/// What pruning goes by.
#[derive(Default)]
struct Ground {
    ancestry: Ancestry,
    reaches: BTreeMap<String, Reach>,
    trees: BTreeMap<String, String>,
    footprints: BTreeMap<(String, String), Footprint>,
}

impl Ground {
    fn read(repository: &Path, pairs: &[&Pair<'_>]) -> Result<Self, GitError> {
        let sides = || pairs.iter().flat_map(|pair| [pair.a, pair.b]);
        let heads: BTreeSet<&str> = sides().map(|side| side.head.as_str()).collect();
        let Some(history) = history_between(repository, &heads, HISTORY)? else {
            return Ok(Self::default());
        };
        let ancestry = Ancestry::new(history);
        let reach = |head: &&str| Some(((*head).to_owned(), ancestry.reach(head)?));
        let mut ground = Self {
            reaches: heads.iter().filter_map(reach).collect(),
            ancestry,
            ..Self::default()
        };
        let bases: Vec<Option<String>> = pairs.iter().map(|pair| ground.base(pair)).collect();
        let known = bases.iter().flatten().map(String::as_str);
        let commits = known.chain(sides().map(|side| side.commit.as_str()));
        ground.trees = trees_of(repository, &commits.collect())?;
        let tree = |commit: &str| ground.trees.get(commit).map(String::as_str);
        let mut wanted = BTreeSet::new();
        for (pair, base) in pairs.iter().zip(&bases) {
            let Some(base) = base.as_deref().and_then(tree) else {
                continue;
            };
            let sides = [&pair.a.commit, &pair.b.commit].into_iter();
            wanted.extend(sides.filter_map(|side| Some((base, tree(side)?))));
        }
        let found = tree_differences(repository, &wanted)?;
        let footprint = |differences: Vec<TreeDifference>| {
            Footprint::new(differences.into_iter().map(|difference| PathChange {
                path: difference.path,
                is_folder: difference.is_folder,
                touch: match difference.status {
                    b'A' => Touch::Added,
                    b'D' => Touch::Removed,
                    _ => Touch::Changed,
                },
            }))
        };
        ground.footprints = found
            .into_iter()
            .map(|(pair, differences)| (pair, footprint(differences)))
            .collect();
        Ok(ground)
    }

    /// The one commit that both started from; `None` if there are several, or none.
    fn base(&self, pair: &Pair<'_>) -> Option<String> {
        if let Some(base) = pair.base() {
            return Some(base.clone());
        }
        let reach = |side: &Side| self.reaches.get(&side.head);
        let bases = self.ancestry.merge_bases(reach(pair.a)?, reach(pair.b)?);
        match bases[..] {
            [base] => Some(base.to_owned()),
            _ => None,
        }
    }

    /// False only if the pair certainly merges.
    fn may_clash(&self, pair: &Pair<'_>) -> bool {
        let footprint = |base: &str, side: &Side| {
            let from = self.trees.get(base)?.clone();
            let to = self.trees.get(&side.commit)?.clone();
            self.footprints.get(&(from, to))
        };
        let base = self.base(pair);
        let sides =
            base.and_then(|base| Some((footprint(&base, pair.a)?, footprint(&base, pair.b)?)));
        sides.is_none_or(|(a, b)| a.may_clash(b))
    }
}
