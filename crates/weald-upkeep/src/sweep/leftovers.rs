//! Files that nobody owns any more: leases of ports, spares, folders of runs, agents' private folders, cache layers.
//!
//! Each is proven to be nobody's before it goes: its process is gone, or its tree is removed for good. A tree in the trash
//! can come back, so what belongs to it stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weald_core::id::TreeId;
use weald_core::store::AgentFilter;
use weald_core::tree::TreeStatus;
use weald_git::Door;

use super::{SweepError, SweepLease, SweepReport, Sweeper};
use crate::Upkeep;
use crate::doctor::finding::{Problem, Repair};
use crate::doctor::leftovers::{of_gates, of_ports, of_runs};
use weald_agents::drivers::secrets_of;
use weald_control::confinement::home_layer_of_tree;
use weald_control::place::{own_folders, own_name};
use weald_control::standing::is_gone;
use weald_control::steps::step;
use weald_trees::{TreeError, delete};

/// A login this young may be the one of an agent that starts at this moment.
const FRESH: Duration = Duration::from_secs(60);

/// What a repository that is gone left in the user's state folder goes if no run used it for so long.
const FORGOTTEN: Duration = Duration::from_secs(90 * 24 * 60 * 60);

impl Upkeep<'_> {
    pub(super) fn sweep_leftovers(
        &self,
        lease: Option<&SweepLease>,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        let ports = repairs(of_ports(self.trees));
        report.ports = self.clear(lease, ports, &mut report.failed)?;
        let mut runs = repairs(of_runs(self.trees));
        runs.extend(repairs(of_gates(self.trees)));
        report.runs = self.clear(lease, runs, &mut report.failed)?;
        let homes = self.stale_homes()?;
        report.homes = self.clear(lease, homes, &mut report.failed)?;
        let logins = self.stale_logins()?;
        report.logins = self.clear(lease, logins, &mut report.failed)?;
        let caches = self.stale_caches()?;
        report.caches = self.clear(lease, caches, &mut report.failed)?;
        match self.stale_spares() {
            Ok(spares) => report.spares = self.clear(lease, spares, &mut report.failed)?,
            Err(error) => report.failed.push(error.to_string()),
        }
        Ok(())
    }

    /// Clears it all away, if this is no dry run, and counts it. The lease is renewed before each: who lost it stops.
    fn clear(
        &self,
        lease: Option<&SweepLease>,
        chores: Vec<Repair<'_>>,
        failed: &mut Vec<String>,
    ) -> Result<usize, SweepError> {
        let Some(lease) = lease else {
            return Ok(chores.len());
        };
        let mut done = 0;
        for chore in chores {
            Sweeper(self.trees.engine).renew_maintenance(lease)?;
            match chore() {
                Ok(()) => done += 1,
                Err(error) => failed.push(error.to_string()),
            }
            step("sweep.leftover");
        }
        Ok(done)
    }

    fn stale_spares(&self) -> Result<Vec<Repair<'_>>, TreeError> {
        let spares = self.trees.stale_pool_entries()?.into_iter();
        let evict =
            |path: PathBuf| -> Repair<'_> { Box::new(move || self.trees.evict_stale(&path)) };
        Ok(spares.map(evict).collect())
    }

    /// Private folders of agents whose tree is removed for good.
    fn stale_homes(&self) -> Result<Vec<Repair<'_>>, SweepError> {
        let mut chores: Vec<Repair<'_>> = Vec::new();
        for (path, id) in self.homes() {
            let tree = self.trees.engine.look(|tx| tx.tree_by_id(id))?;
            if tree.is_some_and(|tree| tree.status == TreeStatus::Removed) {
                chores.push(Box::new(move || delete_folder(&path)));
            }
        }
        for own in self.folders_of_gone() {
            let used = own.join("runs").metadata().and_then(|it| it.modified());
            if used.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > FORGOTTEN)) {
                chores.push(Box::new(move || delete_folder(&own)));
            }
        }
        Ok(chores)
    }

    /// Folders in the user's state folder whose repository is gone. Its disk may be away, so only logins go at once.
    fn folders_of_gone(&self) -> Vec<PathBuf> {
        let state = self.trees.host.state.as_deref();
        let all = state.map(|state| (state, own_folders(state)));
        let gone = all.into_iter().flat_map(|(state, folders)| {
            let is_gone_from_here = |own: &PathBuf| {
                let name = own.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| is_gone(state, |id| own_name(id) == name))
            };
            folders
                .into_iter()
                .filter(is_gone_from_here)
                .collect::<Vec<_>>()
        });
        gone.collect()
    }

    /// Logins in folders whose agent is over. A clean end takes them away itself; a killed supervisor could not.
    fn stale_logins(&self) -> Result<Vec<Repair<'_>>, SweepError> {
        let open = self.trees.engine.look(|tx| tx.agents(&AgentFilter::OPEN))?;
        let mut chores: Vec<Repair<'_>> = Vec::new();
        let is_used = |id: TreeId| {
            let mut users = open.iter().map(|agent| agent.tree_id.unwrap_or(TreeId(0)));
            users.any(|used| used == id)
        };
        let own = self.homes().into_iter().filter(|(_, id)| !is_used(*id));
        let gone = self.folders_of_gone();
        let gone = gone.iter().flat_map(|own| homes_in(&own.join("homes")));
        for (path, _) in own.chain(gone) {
            for driver in fs::read_dir(&path).into_iter().flatten().flatten() {
                let home = driver.path();
                let name = driver.file_name();
                for secret in secrets_of(name.to_str().unwrap_or_default()) {
                    let home = home.clone();
                    if is_old_file(&home.join(secret)) {
                        chores.push(Box::new(move || forget(&home, secret)));
                    }
                }
            }
        }
        Ok(chores)
    }

    /// Folders of agents, with the number of their tree.
    fn homes(&self) -> Vec<(PathBuf, TreeId)> {
        let places = self.trees.place.all_of("homes");
        places.iter().flat_map(|homes| homes_in(homes)).collect()
    }

    /// What runs wrote to their homes in trees that are removed for good.
    fn stale_caches(&self) -> Result<Vec<Repair<'_>>, SweepError> {
        let Some(home) = &self.trees.host.home else {
            return Ok(Vec::new());
        };
        let repository = self.trees.place.repository().common_dir();
        let trees = self.trees.records()?;
        let gone = trees
            .iter()
            .filter(|tree| tree.status == TreeStatus::Removed);
        let mut layers: Vec<_> = gone
            .map(|tree| home_layer_of_tree(home, repository, tree.id))
            .filter(|layer| layer.is_dir())
            .collect();
        layers.sort();
        layers.dedup();
        let chore = |path: PathBuf| -> Repair<'_> { Box::new(move || delete_folder(&path)) };
        Ok(layers.into_iter().map(chore).collect())
    }
}

/// What clears away what a doctor finds, too.
fn repairs(left: Vec<Problem<'_>>) -> Vec<Repair<'_>> {
    left.into_iter().filter_map(|one| one.repair).collect()
}

/// Folders of agents in a folder, with the number of their tree.
fn homes_in(homes: &Path) -> Vec<(PathBuf, TreeId)> {
    let entries = fs::read_dir(homes).into_iter().flatten();
    let numbered = entries.flatten().filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_folder.then(|| (entry.path(), TreeId(number)))
    });
    numbered.collect()
}

fn delete_folder(path: &Path) -> Result<(), TreeError> {
    match delete(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TreeError::File {
            path: path.to_owned(),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// The folder was an agent's, so only a door leads in.
fn forget(home: &Path, secret: &str) -> Result<(), TreeError> {
    let removed = Door::open(home).and_then(|door| door.remove(secret));
    removed.map_err(|source| TreeError::File {
        path: home.join(secret),
        source,
    })
}

fn is_old_file(path: &Path) -> bool {
    let found = path.symlink_metadata();
    let written = found.and_then(|found| found.modified());
    written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > FRESH))
}
