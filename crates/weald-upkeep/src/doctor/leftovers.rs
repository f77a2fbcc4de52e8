//! Things that weald made and nobody uses: in the workshop, in the vault, in the pool, among main's packs, in the trash.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use weald_core::landing::{Landing, LandingStatus};
use weald_core::tree::{Tree, TreeStatus};

use super::finding::Problem;
use super::{Code, Finding, Round};
use weald_control::files;
use weald_control::marker::MARKER;
use weald_trees::delete;
use weald_trees::identity_of;
use weald_trees::{TreeError, Trees, at};

/// Something to delete.
pub(super) fn leftover(what: String) -> Finding {
    Finding::new(Code::Leftover, what, "delete it")
}

/// Trees of gates whose process is gone. The next gate deletes them, too.
pub(crate) fn of_gates<'t>(trees: &'t Trees<'_>) -> Vec<Problem<'t>> {
    let gone = |path: PathBuf| {
        let path_shown = path.display();
        let what = format!("{path_shown} is left over from a gate that was killed");
        leftover(what).repair(move || trees.clear_gate_tree(&path))
    };
    trees.abandoned_gate_trees().into_iter().map(gone).collect()
}

/// Folders of runs whose process is gone. The next run deletes them, too.
pub(crate) fn of_runs<'t>(trees: &'t Trees<'_>) -> Vec<Problem<'t>> {
    let gone = |path: PathBuf| {
        let path_shown = path.display();
        let what = format!("{path_shown} is left over from a run that was killed");
        leftover(what).repair(move || trees.clear_run_folder(&path))
    };
    let folders = trees.abandoned_run_folders().into_iter();
    folders.map(gone).collect()
}

/// Ports that are held for trees that are gone.
pub(crate) fn of_ports<'t>(trees: &'t Trees<'_>) -> Vec<Problem<'t>> {
    let leases = trees.free_leases().into_iter();
    let free = leases.map(|(cell, lease)| {
        let what = format!(
            "ports from {cell}0 on are reserved for worktree {} of {}, which is gone",
            lease.tree,
            lease.repository.display()
        );
        let finding = Finding::new(Code::PortsStale, what, "free the ports");
        finding.repair(move || trees.clear_lease(cell))
    });
    free.collect()
}

impl Round<'_, '_> {
    /// Things in the making that nobody makes any more.
    pub(super) fn check_leftovers(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let workshop = trees.workshop();
        let old: Vec<PathBuf> = fs::read_dir(&workshop)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        let known = trees.records()?;
        let may_live = |tree: &Tree| {
            let is_making = tree.status == TreeStatus::Creating;
            let worker = tree.worker.as_ref();
            worker.map_or(is_making, |worker| trees.may_live(worker))
        };
        let old = old.into_iter();
        for path in old.filter(|path| is_abandoned(path, &known, may_live)) {
            let what = format!(
                "{} is left over from an unfinished operation",
                path.display()
            );
            self.note(leftover(what).repair(|| discard(&path).map_err(at(&path))));
        }
        for lock in trees.vault().stale_locks() {
            let what = format!(
                "{} is left over from a git process that was killed",
                lock.display()
            );
            self.note(leftover(what).repair(|| fs::remove_file(&lock).map_err(at(&lock))));
        }
        for path in trees.vault().stale_packs().into_iter().chain(self.spares()) {
            let what = format!(
                "{} is left over from an unfinished operation",
                path.display()
            );
            self.note(leftover(what).repair(|| discard(&path).map_err(at(&path))));
        }
        Ok(())
    }

    /// Spares that were not finished, while nobody fills the pool.
    fn spares(&self) -> Vec<PathBuf> {
        let home = self.trees.place.repository().common_dir().join("weald");
        let pool = home.join("pool");
        if !is_free(&pool.join("fill.lock")) {
            return Vec::new();
        }
        let is_unfinished = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("new-") || name.starts_with("gone-"))
        };
        let entries = fs::read_dir(pool).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(is_unfinished).collect()
    }

    /// Packs in main that are kept for an import or a landing which has ended. While a landing is unfinished, whoever
    /// finishes it needs them, so this comes after it.
    pub(super) fn check_keeps(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let open = trees.engine.look(|tx| tx.open_landings())?;
        let is_moving = |landing: &Landing| landing.status == LandingStatus::Moving;
        if open.iter().any(is_moving) {
            return Ok(());
        }
        let packs = trees.place.repository().common_dir().join("objects/pack");
        let keeps = fs::read_dir(&packs).into_iter().flatten().flatten();
        for keep in keeps.map(|entry| entry.path()) {
            let is_keep = keep.extension().is_some_and(|kind| kind == "keep");
            if is_keep && weald_git::is_stale_keep(&keep) {
                let what = format!(
                    "{} keeps a pack for an import that has ended",
                    keep.display()
                );
                self.note(leftover(what).repair(|| fs::remove_file(&keep).map_err(at(&keep))));
            }
        }
        Ok(())
    }

    /// What lies in the trash of weald's own folders and is on no record.
    pub(super) fn check_trash(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let known = trees.records()?;
        let roots: BTreeSet<&Path> = known.iter().filter_map(|tree| tree.path.parent()).collect();
        let trashes: BTreeSet<PathBuf> = roots
            .into_iter()
            .filter(|root| root.join(MARKER).is_file())
            .filter_map(|root| trees.trash_directory(&root.join("x")).ok())
            .filter(|trash| {
                trash.starts_with(trees.place.repository().common_dir())
                    || trash
                        .parent()
                        .is_some_and(|root| root.join(MARKER).is_file())
            })
            .collect();
        let identities: HashSet<_> = known.iter().filter_map(|tree| tree.identity).collect();
        let paths: HashSet<PathBuf> = known
            .iter()
            .filter_map(|tree| Some(tree.trash.as_ref()?.path.clone()))
            .collect();
        for trash in trashes {
            for entry in fs::read_dir(trash).into_iter().flatten().flatten() {
                let path = entry.path();
                let identity = identity_of(&path).ok();
                let is_known = identity.is_some_and(|identity| identities.contains(&identity));
                if is_known || paths.contains(&path) {
                    continue;
                }
                let what = format!("{} is in the trash, but has no record", path.display());
                let would = "check it; delete it if you don't need anything in it";
                self.note(Finding::new(Code::TrashUnknown, what, would).at(&path));
            }
        }
        Ok(())
    }
}

/// What the first word of a name in the workshop says about the number after it.
const OF_PROCESSES: [&str; 4] = ["registration", "removed", "branch", "visit"];
const LOCKS_OF_TREES: [&str; 3] = ["snapshot", "setup", "recreate"];

/// Something in the workshop that nobody works on: its process is gone, or it is a free lock of a tree that is gone, or
/// the index of a tree that nobody makes. Anything else is, after an hour.
fn is_abandoned(path: &Path, known: &[Tree], may_live: impl Fn(&Tree) -> bool) -> bool {
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
        _ => {
            let modified = path.symlink_metadata().and_then(|found| found.modified());
            modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() > 3600))
        }
    }
}

/// Deletes a folder or a file; a link goes, not what it leads to.
fn discard(path: &Path) -> io::Result<()> {
    match path.symlink_metadata()?.is_dir() {
        true => delete(path),
        false => fs::remove_file(path),
    }
}

/// Whether nobody holds a lock.
fn is_free(path: &Path) -> bool {
    let opened = files::open_own(OpenOptions::new().read(true), path);
    opened.is_ok_and(|file| file.try_lock().is_ok())
}
