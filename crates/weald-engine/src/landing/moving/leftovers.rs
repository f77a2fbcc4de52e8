//! What moves that were cut short can leave without a record: stages, indexes in the making, locks, stashes.

use std::fs;
use std::path::{Path, PathBuf};

use weald_core::id::LandingId;
use weald_core::landing::LandingStatus;
use weald_git::Git;

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::index_lock;
use super::plan::Plan;
use super::stage::{PREFIX, Stage};
use crate::trees::{Trees, at};

/// One thing that no landing owns any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leftover {
    /// Which landing made it.
    pub landing: LandingId,
    /// Where it is.
    pub path: PathBuf,
}

impl Trees<'_> {
    /// Files of landings that are not being moved.
    pub(crate) fn landing_leftovers(&self) -> Result<Vec<Leftover>, LandError> {
        let open = self.queue()?.open;
        let is_moving = |id: LandingId| {
            let moves = |landing: &weald_core::landing::Landing| {
                landing.id == id && landing.status == LandingStatus::Moving
            };
            open.iter().any(moves)
        };
        let mut found = Vec::new();
        for (git_dir, checkout) in self.git_dirs() {
            let folders = [Some(git_dir.as_path()), checkout.as_deref()];
            for path in folders.into_iter().flatten().flat_map(own_files) {
                found.extend(number_of(&path).map(|landing| Leftover { landing, path }));
            }
            let lock = git_dir.join("index.lock");
            let held = index_lock::holder(&git_dir);
            found.extend(held.map(|landing| Leftover {
                landing,
                path: lock,
            }));
        }
        found.retain(|left| !is_moving(left.landing));
        Ok(found)
    }

    /// Takes a leftover away. A stage with a plan is brought in order first.
    pub(crate) fn clear_leftover(&self, left: &Leftover) -> Result<(), LandError> {
        let is_stage = left
            .path
            .symlink_metadata()
            .is_ok_and(|found| found.is_dir());
        if !is_stage {
            return match fs::remove_file(&left.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(at(&left.path)(error).into())
                }
                _ => Ok(()),
            };
        }
        let Some(plan) = Plan::read(&left.path.join("plan")).map_err(at(&left.path))? else {
            return Ok(fs::remove_dir_all(&left.path).map_err(at(&left.path))?);
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
        let stage = Stage::at(left.path.clone(), &checkout, wanted.landing);
        self.recover_checkout(&wanted, &checkout, &stage).map(drop)
    }

    /// Stashes that landings made and did not put back: their names and what they say.
    pub(crate) fn landing_stashes(&self) -> Result<Vec<String>, LandError> {
        let common = self.place.repository().common_dir();
        if self.place.repository().resolve("refs/stash")?.is_none() {
            return Ok(Vec::new());
        }
        let list = Git::new(common, "reflog")
            .args(["show", "--format=%gd: %gs", "refs/stash", "--"])
            .output()?;
        let text = String::from_utf8_lossy(&list.stdout).into_owned();
        let ours = text.lines().filter(|line| line.contains(": weald: land "));
        Ok(ours
            .map(|line| line.trim_start_matches("refs/").to_owned())
            .collect())
    }

    /// Every git directory of the repository, with its checkout where that is known.
    fn git_dirs(&self) -> Vec<(PathBuf, Option<PathBuf>)> {
        let common = self.place.repository().common_dir().to_owned();
        let mut all = vec![(common, Some(self.place.root()))];
        let registrations = self.registrations();
        for entry in registrations.list().unwrap_or_default() {
            // What is in a sealed tree is not looked at from outside.
            let path = entry.path().filter(|path| path.join(".git").is_file());
            let path = path.map(Path::to_owned);
            all.push((registrations.directory(&entry.name), path));
        }
        all
    }
}

fn own_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| number_of(path).is_some())
        .collect()
}

/// The landing in the name of a stage, of a lock or of an index in the making.
fn number_of(path: &Path) -> Option<LandingId> {
    let name = path.file_name()?.to_str()?;
    let rest = name
        .strip_prefix('.')
        .unwrap_or(name)
        .strip_prefix(PREFIX)?;
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
        assert_eq!(number("/x/.weald-landing-7"), Some(7));
        assert_eq!(number("/x/weald-landing-7.lock"), Some(7));
        assert_eq!(number("/x/weald-landing-7.index"), Some(7));
        assert_eq!(number("/x/weald-landing-mine"), None);
        assert_eq!(number("/x/weald"), None);
    }
}
