//! The same question for many trees at once, and nothing is written: a few processes tell those that are plainly on their
//! target, and only the others are compared one by one.

use std::collections::{BTreeMap, BTreeSet};

use weald_core::clean::Work;
use weald_core::landed::{covering, taken_back};
use weald_core::landing::Landing;
use weald_core::name::TreeName;
use weald_core::tree::{Tree, TreeKind};

use super::comparing::{Aside, Comparing};
use super::ways::lacking;
use crate::side_by_side::side_by_side;
use crate::{TreeError, Trees};

/// A tree with everything in it that may hold work.
pub struct Asked<'t> {
    pub tree: &'t Tree,
    /// What its HEAD holds.
    pub head: Option<String>,
    /// HEAD, branches, tags, stash.
    pub tips: Vec<String>,
}

/// How the commits of a tree stand to its target.
#[derive(Debug, Clone, Copy)]
pub struct AgainstTarget {
    /// What became of them.
    pub work: Work,
    /// Whether the commit that it started from and its target are there.
    pub base_known: bool,
}

/// What is known about the objects of a whole group.
struct Known {
    types: BTreeMap<String, String>,
    /// By target: everything that it lacks; `None` if that could not be told.
    lacking: BTreeMap<String, Option<BTreeSet<String>>>,
}

impl Known {
    fn is_commit(&self, id: &str) -> bool {
        self.types.get(id).is_some_and(|kind| kind == "commit")
    }

    /// Whether the target contains a commit; false where that is not plain.
    fn contains(&self, target: &str, id: &str) -> bool {
        let lacking = self.lacking.get(target).and_then(Option::as_ref);
        self.is_commit(id) && lacking.is_some_and(|lacking| !lacking.contains(id))
    }
}

impl Trees<'_> {
    /// How the commits of many trees stand to their targets, in the order of `asked`.
    pub fn standings(&self, asked: &[Asked<'_>]) -> Result<Vec<AgainstTarget>, TreeError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let main = self.common_dir().join("objects");
        let aside = Aside::reading(&[&self.vault().objects(), &main])?;
        // By name: a tree of the same name may have had the same commits.
        let mut landings: BTreeMap<TreeName, Vec<Landing>> = BTreeMap::new();
        for landing in self.engine.look(|tx| tx.landings())? {
            let of_name = landings.entry(landing.tree.clone()).or_default();
            of_name.push(landing);
        }
        let targets = self.targets_of(asked)?;
        let mut known = BTreeMap::new();
        for kind in [TreeKind::Sealed, TreeKind::Linked] {
            let group: Vec<_> = asked.iter().filter(|one| one.tree.kind == kind).collect();
            if let Some(first) = group.first() {
                let place = Comparing::beside(self.comparing(first.tree), &aside);
                let found = known_of(&place, &group, &targets, &landings)?;
                known.insert(kind.as_str(), (place, found));
            }
        }
        Ok(side_by_side(asked, 8, |one| {
            let (place, known) = &known[one.tree.kind.as_str()];
            let own = landings.get(&one.tree.name).map_or(&[][..], Vec::as_slice);
            let tips = targets.get(&one.tree.target).map_or(&[][..], Vec::as_slice);
            self.standing(one, own, tips, place, known)
        }))
    }

    fn standing(
        &self,
        one: &Asked<'_>,
        landings: &[Landing],
        targets: &[String],
        place: &Comparing,
        known: &Known,
    ) -> AgainstTarget {
        let (tree, target) = (one.tree, &one.tree.target);
        let base_known = !targets.is_empty() && known.is_commit(&tree.base.commit);
        let told = |work| AgainstTarget { work, base_known };
        if one.head.is_none() || targets.is_empty() {
            return told(Work::Unknown);
        }
        // What is in no store of ours was never imported, so nobody else has it.
        if one.tips.iter().any(|tip| !known.types.contains_key(tip)) {
            return told(Work::Lacking);
        }
        let stands = |landing: &&&Landing| {
            let tip = landing.new_tip.as_deref();
            tip.is_some_and(|tip| known.contains(target, tip))
        };
        let covered = covering(landings, tree.id, target);
        let recorded: BTreeSet<_> = covered
            .iter()
            .filter(stands)
            .map(|landing| landing.head.as_str())
            .collect();
        // What was taken back is in the target's history all the same, so that says nothing.
        let was_taken_back = !taken_back(landings, target).is_empty();
        let is_there = |tip: &str| !was_taken_back && known.contains(target, tip);
        let open: Vec<_> = one
            .tips
            .iter()
            .filter(|tip| !is_there(tip) && !recorded.contains(tip.as_str()))
            .collect();
        let lacks = match open.is_empty() {
            true => Ok(false),
            false => self.lacks_any(tree, &open, &targets[0], place),
        };
        told(match lacks {
            Err(_) => Work::Unknown,
            Ok(true) => Work::Lacking,
            Ok(false) if one.head.as_ref() == Some(&tree.base.commit) => Work::None,
            Ok(false) => Work::OnTarget,
        })
    }

    /// Compares commit by commit, as a removal does.
    fn lacks_any(
        &self,
        tree: &Tree,
        tips: &[&String],
        target: &str,
        place: &Comparing,
    ) -> Result<bool, TreeError> {
        let ground = self.ground_in(place.clone(), target.to_owned(), tree)?;
        for tip in tips {
            if ground.landed(tip)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The tips of each target, here and as last seen at its remote; none of one that is not there.
    fn targets_of(&self, asked: &[Asked<'_>]) -> Result<BTreeMap<String, Vec<String>>, TreeError> {
        let repository = self.repository();
        let mut found = BTreeMap::new();
        for one in asked {
            let name = &one.tree.target;
            if found.contains_key(name) {
                continue;
            }
            let here = repository.target(name)?.map(|target| target.tip);
            let there = repository.resolve(&format!("refs/remotes/origin/{name}"))?;
            let tips = here.into_iter().chain(there);
            let mut tips: Vec<_> = tips.map(String::from).collect();
            tips.dedup();
            found.insert(name.clone(), tips);
        }
        Ok(found)
    }
}

/// Asks about all objects of a group at once.
fn known_of(
    place: &Comparing,
    group: &[&Asked<'_>],
    targets: &BTreeMap<String, Vec<String>>,
    landings: &BTreeMap<TreeName, Vec<Landing>>,
) -> Result<Known, TreeError> {
    let mut ids = BTreeSet::new();
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in group {
        let own = landings.get(&one.tree.name).into_iter().flatten();
        let landed = own.filter_map(|landing| landing.new_tip.as_deref());
        let tips = one.tips.iter().map(String::as_str).chain(landed);
        let tips: Vec<_> = tips.collect();
        ids.insert(one.tree.base.commit.as_str());
        ids.extend(&tips);
        wanted.entry(&one.tree.target).or_default().extend(tips);
    }
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let text = place
        .git("cat-file")
        .args(["--batch-check=%(objectname) %(objecttype)"])
        .input(asked)
        .text()?;
    let types = text
        .lines()
        .filter(|line| !line.ends_with(" missing"))
        .filter_map(|line| line.split_once(' '))
        .map(|(id, kind)| (id.to_owned(), kind.to_owned()))
        .collect();
    let mut known = Known {
        types,
        lacking: BTreeMap::new(),
    };
    for (target, ids) in wanted {
        let tips: Vec<_> = targets
            .get(target)
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let commits: Vec<_> = ids.into_iter().filter(|id| known.is_commit(id)).collect();
        let found = match tips.is_empty() {
            true => None,
            false => lacking(place, &tips, &commits).ok(),
        };
        known.lacking.insert(target.to_owned(), found);
    }
    Ok(known)
}
