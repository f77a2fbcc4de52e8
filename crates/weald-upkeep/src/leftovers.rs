//! What weald made and nobody uses: in the workshop, in the vault, in the pool, among main's packs, in the trash, and of runs,
//! gates and agents. `doctor` reports the half of it that says something about damage, `sweep` clears the other half away,
//! and runs, gates and ports are of both.
//!
//! Each is proven to be nobody's: its process is gone, or its tree is removed for good. A tree in the trash can come back, so
//! what belongs to it stays.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weald_core::id::TreeId;
use weald_core::landing::LandingStatus;
use weald_core::tree::{Tree, TreeStatus};

use crate::Code;
use crate::finding::{Finding, Found};
use crate::repair::Repair;
use crate::survey::Survey;
use weald_agents::drivers::secrets_of;
use weald_agents::is_home_in_use;
use weald_control::confinement::home_layer_of_tree;
use weald_control::files;
use weald_control::marker::MARKER;
use weald_control::place::{own_folders, own_name};
use weald_control::standing::is_gone;
use weald_trees::TreeError;
use weald_trees::identity_of;

/// A login this young may be the one of an agent that starts at this moment.
const FRESH: Duration = Duration::from_secs(60);

/// What a repository that is gone left in the user's state folder goes if no run used it for so long.
const FORGOTTEN: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// What a person has to decide about.
pub(crate) const CHECK: &str = "check it; delete it if you don't need anything in it";

/// Paths that are left over from something, all with one kind of repair.
fn left(
    paths: impl IntoIterator<Item = PathBuf>,
    from: &str,
    repair: fn(PathBuf) -> Repair,
) -> Vec<Finding> {
    let paths = paths.into_iter();
    let found = paths.map(|path| {
        let what = format!("{} is left over from {from}", path.display());
        Finding::leftover(what, repair(path))
    });
    found.collect()
}

/// Trees of gates whose process is gone. The next gate deletes them, too.
pub(crate) fn gates(survey: &Survey<'_>) -> Found {
    let gone = survey.trees.abandoned_gate_trees();
    Ok(left(gone, "a gate that was killed", Repair::ClearGateTree))
}

/// Folders of runs whose process is gone. The next run deletes them, too.
pub(crate) fn runs(survey: &Survey<'_>) -> Found {
    let gone = survey.trees.abandoned_run_folders();
    Ok(left(gone, "a run that was killed", Repair::ClearRunFolder))
}

/// Ports that are held for trees that are gone.
pub(crate) fn ports(survey: &Survey<'_>) -> Found {
    let leases = survey.trees.free_leases().into_iter();
    let free = leases.map(|(cell, lease)| {
        let what = format!(
            "ports from {cell}0 on are reserved for worktree {} of {}, which is gone",
            lease.tree,
            lease.repository.display()
        );
        Finding::new(Code::PortsStale, what, "free the ports").repair(Repair::FreePorts(cell))
    });
    Ok(free.collect())
}

/// Things in the making that nobody makes any more.
pub(crate) fn in_the_making(survey: &Survey<'_>) -> Found {
    let known = survey.records()?;
    let abandoned =
        |path: &&PathBuf| is_abandoned(path, known, survey) && path.symlink_metadata().is_ok();
    let unfinished = survey.workshop.iter().filter(abandoned).cloned();
    let vault = survey.trees.vault();
    let (operation, killed) = ("an unfinished operation", "a git process that was killed");
    let mut found = left(unfinished, operation, Repair::Delete);
    found.extend(left(vault.stale_locks(), killed, Repair::Delete));
    let packs = vault.stale_packs().into_iter();
    let rest = packs.chain(half_made_spares(survey));
    found.extend(left(rest, operation, Repair::Delete));
    Ok(found)
}

/// Spares that were not finished, while nobody fills the pool.
fn half_made_spares(survey: &Survey<'_>) -> Vec<PathBuf> {
    let pool = survey.trees.place.repository().common_dir();
    let pool = pool.join("weald/pool");
    if !is_free(&pool.join("fill.lock")) {
        return Vec::new();
    }
    let is_unfinished = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("new-") || name.starts_with("gone-"))
    };
    let mut spares = paths_in(&pool);
    spares.retain(is_unfinished);
    spares
}

/// Packs in main that are kept for an import or a landing which has ended. An unfinished landing needs them, so this comes
/// after landings.
pub(crate) fn keeps(survey: &Survey<'_>) -> Found {
    let mut open = survey.landings()?.iter();
    if open.any(|landing| landing.status == LandingStatus::Moving) {
        return Ok(Vec::new());
    }
    let packs = survey.trees.place.repository().common_dir();
    let mut keeps = paths_in(&packs.join("objects/pack"));
    keeps.retain(|path| {
        path.extension().is_some_and(|kind| kind == "keep") && weald_git::is_stale_keep(path)
    });
    let found = keeps.into_iter().map(|keep| {
        let what = format!(
            "{} keeps a pack for an import that has ended",
            keep.display()
        );
        Finding::leftover(what, Repair::Delete(keep))
    });
    Ok(found.collect())
}

/// What lies in the trash of weald's own folders and is on no record.
pub(crate) fn trash(survey: &Survey<'_>) -> Found {
    let known = survey.records()?;
    let roots: BTreeSet<&Path> = known.iter().filter_map(|tree| tree.path.parent()).collect();
    let is_marked = |root: &Path| root.join(MARKER).is_file();
    let common = survey.trees.place.repository().common_dir();
    let trashes: BTreeSet<PathBuf> = roots
        .into_iter()
        .filter(|root| is_marked(root))
        .filter_map(|root| survey.trees.trash_directory(&root.join("x")).ok())
        .filter(|trash| trash.starts_with(common) || trash.parent().is_some_and(is_marked))
        .collect();
    let identities: HashSet<_> = known.iter().filter_map(|tree| tree.identity).collect();
    let trashed = known.iter().filter_map(|tree| tree.trash.as_ref());
    let trashed: HashSet<_> = trashed.map(|trash| &trash.path).collect();
    let is_known = |path: &PathBuf| {
        let identity = identity_of(path).ok();
        identity.is_some_and(|it| identities.contains(&it)) || trashed.contains(path)
    };
    let mut unknown: Vec<_> = trashes.iter().flat_map(|trash| paths_in(trash)).collect();
    unknown.retain(|path| !is_known(path));
    let found = unknown.iter().map(|path| {
        let what = format!("{} is in the trash, but has no record", path.display());
        Finding::new(Code::TrashUnknown, what, CHECK).at(path)
    });
    Ok(found.collect())
}

/// Spares of the pool that nobody can use, and half-made ones.
pub(crate) fn spares(survey: &Survey<'_>) -> Found {
    let stale = survey.trees.stale_pool_entries()?;
    Ok(left(stale, "the pool", Repair::EvictSpare))
}

/// Private folders of agents whose tree is removed for good.
pub(crate) fn homes(survey: &Survey<'_>) -> Found {
    let removed: HashSet<TreeId> = removed(survey)?.map(|tree| tree.id).collect();
    let homes = agent_homes(survey).filter(|(_, id)| removed.contains(id));
    let is_forgotten = |own: &PathBuf| is_older(&own.join("runs"), FORGOTTEN);
    let gone = folders_of_gone(survey).into_iter().filter(is_forgotten);
    let all = homes.map(|(path, _)| path).chain(gone);
    Ok(left(all, "a worktree that is gone", Repair::Delete))
}

/// Logins in folders whose agent is over. A clean end takes them away itself; a killed supervisor could not.
pub(crate) fn logins(survey: &Survey<'_>) -> Found {
    let open = survey.agents()?;
    let is_used = |id: TreeId| {
        let mut users = open.iter().map(|agent| agent.tree_id.unwrap_or(TreeId(0)));
        users.any(|used| used == id)
    };
    let own = agent_homes(survey).filter(|(_, id)| !is_used(*id));
    let gone = folders_of_gone(survey);
    let gone = gone.iter().flat_map(|own| homes_in(&own.join("homes")));
    let mut found = Vec::new();
    for home in own.chain(gone).flat_map(|(path, _)| paths_in(&path)) {
        let driver = home.file_name().and_then(|name| name.to_str());
        // Also of one that a person runs, of which there is no record.
        let is_free = !is_home_in_use(&home);
        let secrets = secrets_of(driver.unwrap_or_default()).iter();
        for secret in secrets.filter(|_| is_free) {
            if is_older(&home.join(secret), FRESH) {
                let what = format!("{secret} in {} is of an agent that ended", home.display());
                let repair = Repair::ForgetLogin(home.clone(), secret);
                found.push(Finding::leftover(what, repair));
            }
        }
    }
    Ok(found)
}

/// What runs wrote to their homes in trees that are removed for good.
pub(crate) fn caches(survey: &Survey<'_>) -> Found {
    let Some(home) = &survey.trees.host.home else {
        return Ok(Vec::new());
    };
    let repository = survey.trees.place.repository().common_dir();
    let layers = removed(survey)?.map(|tree| home_layer_of_tree(home, repository, tree.id));
    let layers: BTreeSet<_> = layers.filter(|layer| layer.is_dir()).collect();
    Ok(left(layers, "a worktree that is gone", Repair::Delete))
}

fn removed<'s>(survey: &'s Survey<'_>) -> Result<impl Iterator<Item = &'s Tree>, TreeError> {
    let known = survey.records()?.iter();
    Ok(known.filter(|tree| tree.status == TreeStatus::Removed))
}

/// Folders in the user's state folder whose repository is gone. Its disk may be away, so only logins go at once.
fn folders_of_gone(survey: &Survey<'_>) -> Vec<PathBuf> {
    let Some(state) = survey.trees.host.state.as_deref() else {
        return Vec::new();
    };
    let is_gone_from_here = |own: &PathBuf| {
        let name = own.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| is_gone(state, |id| own_name(id) == name))
    };
    own_folders(state)
        .into_iter()
        .filter(is_gone_from_here)
        .collect()
}

/// Private folders of agents, each with the number of its tree.
fn agent_homes(survey: &Survey<'_>) -> impl Iterator<Item = (PathBuf, TreeId)> {
    let places = survey.trees.place.all_of("homes").into_iter();
    places.flat_map(|homes| homes_in(&homes))
}

fn homes_in(homes: &Path) -> Vec<(PathBuf, TreeId)> {
    let numbered = paths_in(homes).into_iter().filter_map(|path| {
        let number = path.file_name()?.to_str()?.parse().ok()?;
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        is_folder.then_some((path, TreeId(number)))
    });
    numbered.collect()
}

/// What the first word of a name in the workshop says about the number after it.
const OF_PROCESSES: [&str; 4] = ["registration", "removed", "branch", "visit"];
const LOCKS_OF_TREES: [&str; 3] = ["snapshot", "setup", "recreate"];

/// Something in the workshop that nobody works on: its process is gone, or it is a free lock of a tree that is gone, or
/// the index of a tree that nobody makes. Anything else is, after an hour.
fn is_abandoned(path: &Path, known: &[Tree], survey: &Survey<'_>) -> bool {
    let may_live = |tree: &Tree| match tree.worker {
        None => tree.status == TreeStatus::Creating,
        Some(_) => survey.is_worked_on(tree),
    };
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let mut words = name.split(['-', '.']);
    let (kind, number) = (words.next().unwrap_or_default(), words.next());
    let number = number.and_then(|number| number.parse::<u64>().ok());
    let tree = || known.iter().find(|tree| Some(tree.id.0) == number);
    match number {
        Some(pid) if OF_PROCESSES.contains(&kind) => !Path::new(&format!("/proc/{pid}")).exists(),
        Some(_) if LOCKS_OF_TREES.contains(&kind) => {
            !tree().is_some_and(|tree| tree.is_live() || may_live(tree)) && is_free(path)
        }
        Some(_) if kind == "index" => !tree().is_some_and(may_live),
        _ => is_older(path, Duration::from_secs(3600)),
    }
}

fn is_older(path: &Path, age: Duration) -> bool {
    let written = path.symlink_metadata().and_then(|found| found.modified());
    written.is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed > age))
}

/// Whether nobody holds a lock.
fn is_free(path: &Path) -> bool {
    let opened = files::open_own(OpenOptions::new().read(true), path);
    opened.is_ok_and(|file| file.try_lock().is_ok())
}

fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
