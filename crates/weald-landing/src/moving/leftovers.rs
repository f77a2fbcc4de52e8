//! What moves that were cut short can leave when their landing has ended: stages, indexes in the making, locks, stashes.
//!
//! Only a plan in weald's own folder is acted on. A stage that is found by its name alone may be anybody's: it is told.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weald_core::id::LandingId;
use weald_core::landing::LandingStatus;

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::index_lock;
use super::plan::Plan;
use super::stage::{Stage, plans};
use crate::Landings;
use crate::refusal::STAGE_PREFIX;
use weald_trees::at;

/// One thing that no landing owns any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Which landing made it.
    pub landing: LandingId,
    pub path: PathBuf,
    pub kind: LeftoverKind,
}

/// What is left of a landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverKind {
    /// A plan: files can be put back.
    Plan,
    /// A lock or an index in the making.
    File,
    /// Something with the name of a stage that no plan speaks of.
    Unknown,
}

impl Landings<'_> {
    /// Files of landings that are not being moved.
    pub fn landing_leftovers(&self) -> Result<Vec<Leftover>, LandError> {
        let open = self.queue()?.open;
        let is_moving = |id: LandingId| {
            let moves = |landing: &weald_core::landing::Landing| {
                landing.id == id && landing.status == LandingStatus::Moving
            };
            open.iter().any(moves)
        };
        let mut found = self.leftover_plans()?;
        let is_planned =
            |id: LandingId, found: &[Leftover]| found.iter().any(|left| left.landing == id);
        for git_dir in self.git_dirs() {
            for (landing, path) in named_like_ours(&git_dir) {
                let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
                let kind = match is_file && path.extension().is_some() {
                    true => LeftoverKind::File,
                    false => LeftoverKind::Unknown,
                };
                // What belongs to a plan goes with it.
                if !is_planned(landing, &found) {
                    found.push(Leftover {
                        landing,
                        path,
                        kind,
                    });
                }
            }
            let held = index_lock::holder(&git_dir);
            found.extend(held.map(|landing| Leftover {
                landing,
                path: git_dir.join("index.lock"),
                kind: LeftoverKind::File,
            }));
        }
        found.retain(|left| !is_moving(left.landing));
        Ok(found)
    }

    /// Plans of landings that have ended, with their targets.
    pub(crate) fn ended_plans(&self) -> Result<Vec<(Leftover, String)>, LandError> {
        let open = self.queue()?.open;
        let mut ended = Vec::new();
        for left in self.leftover_plans()? {
            if open.iter().any(|landing| landing.id == left.landing) {
                continue;
            }
            match Plan::read(&left.path) {
                Ok(plan) => ended.extend(plan.map(|plan| (left, plan.target))),
                Err(error) => self
                    .trees
                    .engine
                    .notice(format!("{}: {error}", left.path.display())),
            }
        }
        Ok(ended)
    }

    /// Plans of any landing.
    fn leftover_plans(&self) -> Result<Vec<Leftover>, LandError> {
        let folder = plans(self.trees.place.private());
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at(&folder))?,
        };
        let plan_at = |path: PathBuf| {
            let number = path.file_name()?.to_str()?.strip_suffix(".plan")?;
            let landing = LandingId(number.parse().ok()?);
            let kind = LeftoverKind::Plan;
            Some(Leftover {
                landing,
                path,
                kind,
            })
        };
        Ok(entries
            .flatten()
            .filter_map(|entry| plan_at(entry.path()))
            .collect())
    }

    /// Takes a leftover away, after what its plan speaks of was brought in order. What nobody can tell whose it is stays.
    pub fn clear_leftover(&self, left: &Leftover) -> Result<(), LandError> {
        match left.kind {
            LeftoverKind::Unknown => return Ok(()),
            LeftoverKind::File => {
                return match fs::remove_file(&left.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        Err(at(&left.path)(error).into())
                    }
                    _ => Ok(()),
                };
            }
            LeftoverKind::Plan => {}
        }
        let Some(plan) = Plan::read(&left.path).map_err(at(&left.path))? else {
            return Ok(());
        };
        let wanted = Move {
            landing: plan.landing,
            target: plan.target,
            old: plan.old,
            new: plan.new,
            fence: self.fence()?.unwrap_or_default(),
        };
        let checkout = Checkout {
            path: plan.checkout,
            git_dir: plan.git_dir,
        };
        let private = self.trees.place.private();
        let stage = Stage::at(private, plan.stage, &checkout, wanted.landing);
        self.recover_checkout(&wanted, &checkout, &stage).map(drop)
    }

    /// Every git directory of the repository. Checkouts are not looked at: what is in them is not weald's.
    fn git_dirs(&self) -> Vec<PathBuf> {
        let mut all = vec![self.trees.place.repository().common_dir().to_owned()];
        let registrations = self.trees.registrations();
        let known = registrations.list().unwrap_or_default();
        all.extend(
            known
                .iter()
                .map(|entry| registrations.directory(&entry.name)),
        );
        all.retain(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir()));
        all
    }
}

fn named_like_ours(folder: &Path) -> Vec<(LandingId, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter_map(|path| Some((number_of(&path)?, path)))
        .collect()
}

/// The landing in the name of a stage, of a lock or of an index in the making.
fn number_of(path: &Path) -> Option<LandingId> {
    let name = path.file_name()?.to_str()?;
    let rest = name.strip_prefix(STAGE_PREFIX)?;
    let number = rest.trim_end_matches(".lock").trim_end_matches(".index");
    number.parse().ok().map(LandingId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_landings_are_known() {
        let number = |name: &str| number_of(Path::new(name)).map(|id| id.0);
        assert_eq!(number("/x/weald-landing-7"), Some(7));
        assert_eq!(number("/x/.weald-landing-7"), None);
        assert_eq!(number("/x/weald-landing-7.lock"), Some(7));
        assert_eq!(number("/x/weald-landing-7.index"), Some(7));
        assert_eq!(number("/x/weald-landing-mine"), None);
        assert_eq!(number("/x/weald"), None);
    }
}
