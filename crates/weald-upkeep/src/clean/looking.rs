//! Looking into trees for a clean, by visits that only read and import nothing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use weald_core::Timestamp;
use weald_core::approval::Patterns;
use weald_core::clean::{self, CleanFacts, CleanRules, Inside, Work};
use weald_core::tree::{Tree, TreeKind};

use super::Taken;
use super::taking::Taking;
use crate::Upkeep;
use crate::survey::Survey;
use weald_trees::Site;
use weald_trees::TreeError;
use weald_trees::inside::{self, InspectReply, Look};
use weald_trees::remove::facts::is_dirty;
use weald_trees::side_by_side::{side_by_side, waiting_side_by_side};
use weald_trees::unlanded::{AgainstTarget, Asked};

/// For how long trees are looked into that stay anyway.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What was found in a tree.
pub(super) struct Seen {
    pub(super) found: Result<Found, String>,
    pub(super) standing: Option<AgainstTarget>,
    /// How its removal ended, where it was tried.
    pub(super) taken: Option<Result<Taken, TreeError>>,
}

pub(super) struct Found {
    look: Look,
    is_dirty: bool,
    tips: Vec<String>,
    /// `Err` for a time that is none.
    touched: Result<Option<Timestamp>, ()>,
}

impl Seen {
    /// One that can't be looked into; nothing to say where that was told already.
    pub(super) fn unreadable(why: String) -> Self {
        Self {
            found: Err(why),
            standing: None,
            taken: None,
        }
    }

    /// Writes what was found into the facts; answers what there is to say about it.
    pub(super) fn fill(&self, facts: &mut CleanFacts) -> Option<String> {
        let found = match &self.found {
            Ok(found) => found,
            Err(why) => return Some(why.clone()).filter(|why| !why.is_empty()),
        };
        let look = &found.look;
        facts.inside = Inside::Seen {
            is_dirty: found.is_dirty,
            is_conflicted: look.conflicted > 0 || look.operation.is_some(),
        };
        facts.last_used = match (facts.last_used, found.touched) {
            (_, Err(())) => None,
            (known, Ok(touched)) => known.max(touched),
        };
        if let Some(standing) = &self.standing {
            facts.work = standing.work;
            facts.base_known = standing.base_known;
        }
        (found.is_dirty).then(|| {
            format!(
                "{} staged, {} unstaged, {} untracked",
                look.staged,
                look.unstaged + look.hidden,
                look.untracked
            )
        })
    }
}

impl Upkeep<'_> {
    /// Looks into trees: into all that could go, and into the others as long as there is time. `None`: not looked into.
    /// One that could go is taken right after the look, if anything is to be taken.
    pub(super) fn look_into_all(
        &self,
        survey: &Survey<'_>,
        trees: &[(&Tree, &CleanFacts)],
        rules: &CleanRules,
        taking: Option<&Taking<'_>>,
    ) -> Result<Vec<Option<Seen>>, TreeError> {
        let looking = self.trees.with_refs_of_now()?;
        let upkeep = Upkeep::new(&looking);
        let mains = upkeep.names_and_tips()?;
        let ignored = &self.trees.config.clean_ignore_dirty;
        let ignored = Patterns::new(ignored.iter().map(String::as_str));
        let now = self.trees.now()?;
        let could_go = |(tree, facts): &(&Tree, &CleanFacts)| -> Result<bool, TreeError> {
            let best = CleanFacts {
                inside: Inside::Seen {
                    is_dirty: false,
                    is_conflicted: false,
                },
                work: match survey.is_at_base(tree)? {
                    true => Work::None,
                    false => Work::OnTarget,
                },
                ..(*facts).clone()
            };
            Ok(clean::judge(&best, rules, now).is_ok())
        };
        let could_go: Vec<_> = trees.iter().map(could_go).collect::<Result<_, _>>()?;
        let mut order: Vec<usize> = (0..trees.len()).collect();
        order.sort_by_key(|place| !could_go[*place]);
        let began = Instant::now();
        let look = |place: &usize| {
            let tree = trees[*place].0;
            if began.elapsed() > PATIENCE && !could_go[*place] {
                return None;
            }
            let Ok(site) = looking.site(tree) else {
                // Told already.
                return Some(Seen::unreadable(String::new()));
            };
            if let Some(taking) = taking.filter(|_| could_go[*place]) {
                return Some(taking.take(tree));
            }
            let found = upkeep.look_into(tree, &site, &mains, &ignored);
            Some(Seen {
                found: found.map_err(|error| error.to_string()),
                standing: None,
                taken: None,
            })
        };
        let looks = match taking {
            Some(_) => waiting_side_by_side(&order, look),
            None => side_by_side(&order, 1, look),
        };
        let mut seen: Vec<Option<Seen>> = trees.iter().map(|_| None).collect();
        for (place, look) in order.into_iter().zip(looks) {
            seen[place] = look;
        }
        self.compare_with_targets(trees, &mut seen)?;
        Ok(seen)
    }

    /// Compares what was found with the targets, all at once.
    fn compare_with_targets(
        &self,
        trees: &[(&Tree, &CleanFacts)],
        seen: &mut [Option<Seen>],
    ) -> Result<(), TreeError> {
        let mut asked = Vec::new();
        let mut places = Vec::new();
        for (place, one) in seen.iter().enumerate() {
            let open = one.as_ref().filter(|seen| seen.standing.is_none());
            if let Some(Ok(found)) = open.map(|seen| &seen.found) {
                asked.push(self.to_compare(trees[place].0, found)?);
                places.push(place);
            }
        }
        for (place, standing) in places.into_iter().zip(self.trees.standings(&asked)?) {
            if let Some(seen) = &mut seen[place] {
                seen.standing = Some(standing);
            }
        }
        Ok(())
    }

    /// What has to be compared of one tree.
    fn to_compare<'t>(&self, tree: &'t Tree, found: &Found) -> Result<Asked<'t>, TreeError> {
        let mut tips = found.tips.clone();
        // Main's branch may have been moved by somebody else.
        let name = format!("refs/heads/{}", tree.branch);
        let branch = self.trees.place.repository().resolve(&name)?;
        tips.extend(branch.map(|tip| tip.as_str().to_owned()));
        tips.sort();
        tips.dedup();
        Ok(Asked {
            tree,
            head: found.look.head.clone(),
            tips,
        })
    }

    /// How one tree stands to its target.
    pub(super) fn compared(&self, tree: &Tree, found: &Found) -> Result<AgainstTarget, TreeError> {
        let asked = self.to_compare(tree, found)?;
        let target = self.trees.place.repository().target(&tree.target)?;
        let target = target.as_ref().map(|target| target.tip.as_str());
        let base = &tree.base.commit;
        // The look itself just read that commit.
        if asked.head.is_some() && asked.tips == [base.clone()] && target == Some(base) {
            return Ok(AgainstTarget {
                work: Work::None,
                base_known: true,
            });
        }
        let standing = self.trees.standings(&[asked])?.into_iter().next();
        Ok(standing.unwrap_or(AgainstTarget {
            work: Work::Unknown,
            base_known: false,
        }))
    }

    /// Main's refs, each with what it holds.
    pub(super) fn names_and_tips(&self) -> Result<BTreeSet<(String, String)>, TreeError> {
        let known = self.trees.main_refs()?.into_iter();
        Ok(known.map(|known| (known.name, known.commit)).collect())
    }

    /// Looks into one tree.
    fn look_into(
        &self,
        tree: &Tree,
        site: &Site,
        mains: &BTreeSet<(String, String)>,
        ignored: &Patterns,
    ) -> Result<Found, TreeError> {
        let reply = match self.trees.glance(tree, site, &self.trees.main_refs()?) {
            Some(reply) => reply,
            None => self.trees.visit(tree.name.as_str(), site, inside::Survey)?,
        };
        self.found(tree, reply, mains, ignored)
    }

    /// What a look says about a tree.
    pub(super) fn found(
        &self,
        tree: &Tree,
        reply: InspectReply,
        mains: &BTreeSet<(String, String)>,
        ignored: &Patterns,
    ) -> Result<Found, TreeError> {
        let is_dirty = is_dirty(&reply, ignored);
        let touched = match reply.touched_at.map(Timestamp::from_second) {
            Some(Err(_)) => Err(()),
            Some(Ok(at)) => Ok(Some(at)),
            None => Ok(None),
        };
        let (look, tips) = (reply.look, reply.tips);
        let mut held: Vec<_> = look.head.iter().cloned().collect();
        if tree.kind == TreeKind::Sealed {
            let own = tips.refs.into_iter().filter(|(name, id)| {
                let is_mains = mains.contains(&(name.clone(), id.clone()));
                !name.starts_with("refs/remotes/") && name != "refs/stash" && !is_mains
            });
            held.extend(own.map(|(_, id)| id));
            held.extend(tips.stash);
            held.extend(tips.worktrees);
        }
        Ok(Found {
            look,
            is_dirty,
            tips: held,
            touched,
        })
    }
}
