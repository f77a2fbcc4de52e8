//! What of a tree's work the target does not have.
//!
//! Judged by the commits themselves and by recorded landings, never by an upstream. After a squash the commits are not on
//! the target, but each of their changes is, or all of them together, or merging them would change nothing: that counts as
//! landed, too. So does whatever the remote's target is known to have. Work whose landing was taken back counts only while
//! its content is there.

mod comparing;
mod many;
mod undone;
mod ways;

use std::collections::BTreeSet;
use std::path::PathBuf;

use weald_core::landed::{Landed, TakenBack, covering, taken_back};
use weald_core::landing::Landing;
use weald_core::tree::{Tree, TreeKind};

use super::{TreeError, Trees};
use comparing::Comparing;
pub use many::{AgainstTarget, Asked};
use ways::{adds_nothing, count, lacking, number, present, way};

/// What the commits of a tree are compared with.
struct Ground {
    place: Comparing,
    /// The target's tip, here and as last seen at its remote.
    targets: Vec<String>,
    /// Commits that are somewhere safe besides: where the tree started, if a remote has it.
    known: Vec<String>,
    /// Heads that landings took.
    recorded: Vec<String>,
    /// Landings that were taken back.
    taken_back: Vec<TakenBack>,
}

impl Ground {
    /// Everything that is not this tree's alone.
    fn had(&self) -> Vec<&str> {
        let all = self.targets.iter().chain(&self.known);
        all.chain(&self.recorded).map(String::as_str).collect()
    }

    /// The same before the landings that were taken back.
    fn had_before(&self) -> Vec<&str> {
        let onto = self.taken_back.iter().filter_map(|one| one.onto.as_ref());
        let all = onto.chain(&self.known).chain(&self.recorded);
        all.map(String::as_str).collect()
    }

    /// How many commits of `tips` are in none of `had`.
    fn outside(&self, had: &[&str], tips: &[&str]) -> Result<u64, TreeError> {
        let mut input: String = had.iter().map(|id| format!("^{id}\n")).collect();
        input.push_str(&tips.join("\n"));
        input.push('\n');
        let counted = self.place.git("rev-list").args(["--count", "--stdin"]);
        number(&counted.input(input).run()?)
    }

    /// How it is known that all of `tip` is on the target; `None` if it is not.
    fn landed(&self, tip: &str) -> Result<Option<Landed>, TreeError> {
        let recorded: Vec<_> = self.recorded.iter().map(String::as_str).collect();
        if !recorded.is_empty() && count(&self.place, &recorded, tip)? == 0 {
            return Ok(Some(Landed::Recorded));
        }
        let undone = self.taken_back_of(tip)?;
        if !undone.is_empty() {
            return self.came_again(&undone, tip);
        }
        let had = self.targets.iter().chain(&self.known).map(String::as_str);
        let had: Vec<_> = had.collect();
        if count(&self.place, &had, tip)? == 0 {
            return Ok(Some(Landed::Ancestor));
        }
        let had = self.had();
        if !recorded.is_empty() && count(&self.place, &had, tip)? == 0 {
            return Ok(Some(Landed::Recorded));
        }
        for target in &self.targets {
            if let Some(way) = way(&self.place, target, &had, tip)? {
                return Ok(Some(way));
            }
        }
        Ok(None)
    }
}

impl Trees<'_> {
    /// Where the commits of a tree can be compared with the target.
    pub fn comparing(&self, tree: &Tree) -> PathBuf {
        match tree.kind {
            TreeKind::Sealed => self.vault().path().to_owned(),
            TreeKind::Linked => self.common_dir().to_owned(),
        }
    }

    /// The target's tip, present where it is compared.
    pub fn target_tip(&self, tree: &Tree) -> Result<Option<String>, TreeError> {
        let Some(target) = self.repository().target(&tree.target)? else {
            return Ok(None);
        };
        let tip = target.tip.as_str().to_owned();
        if tree.kind == TreeKind::Sealed {
            self.vault().require(&self.main_refs()?, &[&tip])?;
        }
        Ok(Some(tip))
    }

    /// Makes sure that the vault has the tip of a tree's branch. What was imported from the tree is there.
    pub(crate) fn require_branch_tip(&self, tree: &Tree, tip: &str) -> Result<(), TreeError> {
        if tree.kind == TreeKind::Sealed && tree.head.as_deref() == Some(tip) {
            return Ok(());
        }
        self.vault().require(&self.main_refs()?, &[tip])?;
        Ok(())
    }

    /// How many commits of `tips` the target lacks, counting nothing whose content is on it.
    pub(crate) fn unlanded(&self, tree: &Tree, tips: &[String]) -> Result<u64, TreeError> {
        let ground = self.ground(tree)?;
        let mut open = Vec::new();
        for tip in tips {
            if ground.landed(tip)?.is_none() {
                open.push(tip.as_str());
            }
        }
        if open.is_empty() {
            return Ok(0);
        }
        let lacking = match ground.outside(&ground.had(), &open)? {
            // They are in the target's history, and were taken back there.
            0 => ground.outside(&ground.had_before(), &open)?.max(1),
            lacking => lacking,
        };
        Ok(lacking)
    }

    /// How it is known that all of `tip` is on the target; `None` if it is not.
    pub fn landed(&self, tree: &Tree, tip: &str) -> Result<Option<Landed>, TreeError> {
        self.ground(tree)?.landed(tip)
    }

    /// Whether the commits of `tip` cancel out: none of them is on the target, and merging all of them would leave it as it
    /// is. What was taken back there is no such thing.
    pub fn cancels_out(&self, tree: &Tree, tip: &str) -> Result<bool, TreeError> {
        let ground = self.ground(tree)?;
        if ground.landed(tip)?.is_some() || !ground.taken_back_of(tip)?.is_empty() {
            return Ok(false);
        }
        adds_nothing(&ground.place, &ground.targets[0], None, tip)
    }

    fn ground(&self, tree: &Tree) -> Result<Ground, TreeError> {
        let base = || tree.base.commit.clone();
        let target = self.target_tip(tree)?.unwrap_or_else(base);
        self.ground_in(Comparing::of(self.comparing(tree)), target, tree)
    }

    fn ground_in(
        &self,
        place: Comparing,
        target: String,
        tree: &Tree,
    ) -> Result<Ground, TreeError> {
        let mut targets = vec![target];
        let tracking = format!("refs/remotes/origin/{}", tree.target);
        if let Some(seen) = self.repository().resolve(&tracking)? {
            targets.push(seen.as_str().to_owned());
        }
        targets.dedup();
        let mut ground = Ground {
            place,
            targets,
            known: self.base_on_remote(tree)?.into_iter().collect(),
            recorded: Vec::new(),
            taken_back: Vec::new(),
        };
        let landings = self.engine.look(|tx| tx.landings_of(&tree.name))?;
        ground.recorded = recorded_heads(tree, &landings, &ground)?;
        ground.mind_taken_back(taken_back(&landings, &tree.target))?;
        Ok(ground)
    }

    /// The commit that a tree started from, if a remote has it: the target here may be behind that.
    fn base_on_remote(&self, tree: &Tree) -> Result<Option<String>, TreeError> {
        let tracking = format!("refs/remotes/{}", tree.base.reference);
        let is_seen = self.repository().resolve(&tracking)?.is_some();
        Ok(is_seen.then(|| tree.base.commit.clone()))
    }

    /// How far a tree is ahead of its base and behind its target.
    pub(crate) fn distance(&self, tree: &Tree, head: &str) -> Result<(u64, u64), TreeError> {
        let place = Comparing::of(self.comparing(tree));
        let ahead = count(&place, &[&tree.base.commit], head)?;
        let behind = match self.target_tip(tree)? {
            Some(tip) => count(&place, &[head], &tip)?,
            None => 0,
        };
        Ok((ahead, behind))
    }
}

/// The heads that landings took whose commits are still on the target; a few processes for any number of landings.
fn recorded_heads(
    tree: &Tree,
    landings: &[Landing],
    ground: &Ground,
) -> Result<Vec<String>, TreeError> {
    let recorded: Vec<(&str, &str)> = covering(landings, tree.id, &tree.target)
        .into_iter()
        .filter_map(|landing| Some((landing.head.as_str(), landing.new_tip.as_deref()?)))
        .collect();
    if recorded.is_empty() {
        return Ok(Vec::new());
    }
    // Of a commit that is not here any more nothing can be said.
    let ids = recorded.iter().flat_map(|(head, tip)| [*head, *tip]);
    let here = present(&ground.place, ids)?;
    let known: Vec<_> = recorded
        .into_iter()
        .filter(|(head, tip)| here.contains(*head) && here.contains(*tip))
        .collect();
    let tips: Vec<&str> = known.iter().map(|(_, tip)| *tip).collect();
    let mut heads = BTreeSet::new();
    for target in &ground.targets {
        let absent = lacking(&ground.place, &[target], &tips)?;
        let stands = known.iter().filter(|(_, tip)| !absent.contains(*tip));
        heads.extend(stands.map(|(head, _)| (*head).to_owned()));
    }
    Ok(heads.into_iter().collect())
}
