//! Checks that are not about one tree: registrations, bindings, leftovers, branches.

use std::fs;
use std::path::{Path, PathBuf};

use weald_core::store::{Durability, TaskFilter};
use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_core::tree_rules::TreeInput;

use super::{Round, Severity};
use crate::marker::TreeNote;
use crate::trees::{TreeError, at};

impl Round<'_, '_> {
    /// Entries in `worktrees/`: ours without a tree go, broken ones of others are told.
    pub(super) fn check_registrations(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let known = trees.records()?;
        let registrations = trees.registrations();
        for entry in registrations.list().unwrap_or_default() {
            let Some(note) = TreeNote::of(&entry) else {
                if entry.dot_git.is_none() || entry.head.is_none() {
                    let what = format!("worktrees/{} is broken and not weald's", entry.name);
                    let would = format!(
                        "look at it, then delete {}",
                        registrations.directory(&entry.name).display()
                    );
                    self.told("foreign_broken", Severity::Warn, what, would);
                }
                continue;
            };
            let owner = known.iter().find(|tree| tree.id == note.tree);
            let wanted = owner.is_some_and(|tree| {
                let in_trash = tree.status == TreeStatus::Trashed && tree.kind == TreeKind::Linked;
                let unfinished = tree.status == TreeStatus::Creating || tree.removing;
                (tree.is_live() && tree.registration.as_deref() == Some(&entry.name))
                    || in_trash
                    || unfinished
            });
            if !wanted && owner.is_some() {
                let what = format!("worktrees/{} belongs to a tree that is gone", entry.name);
                self.found(
                    "registration_stale",
                    Severity::Info,
                    what,
                    "remove it",
                    || {
                        registrations
                            .remove(&entry.name)
                            .map_err(at(&registrations.directory(&entry.name)))
                    },
                );
            }
        }
        Ok(())
    }

    /// Tasks and trees that don't agree on each other.
    pub(super) fn check_bindings(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let known = trees.records()?;
        let tasks = trees.engine.look(|tx| tx.tasks(&TaskFilter::default()))?;
        for task in tasks.iter().filter(|task| task.worktree.is_some()) {
            // An older tree of the name may have come back from the trash, so every one of them is looked at.
            let is_its_own = known.iter().any(|tree| {
                tree.is_live()
                    && task.worktree.as_ref() == Some(&tree.name)
                    && tree.task.as_ref() == Some(&task.id)
            });
            if is_its_own {
                continue;
            }
            let what = format!("task {} names a tree that is not its own", task.id);
            self.found(
                "binding_dangling",
                Severity::Warn,
                what,
                "unbind it",
                || trees.unbind(&task.id).map(drop),
            );
        }
        for tree in known
            .iter()
            .filter(|tree| tree.is_live() && tree.task.is_some())
        {
            let agrees = tasks.iter().any(|task| {
                Some(&task.id) == tree.task.as_ref() && task.worktree.as_ref() == Some(&tree.name)
            });
            if !agrees {
                let what = format!("tree {} names a task that has another tree", tree.name);
                self.found(
                    "binding_dangling",
                    Severity::Warn,
                    what,
                    "unbind it",
                    || {
                        trees
                            .decide(tree, Durability::Process, TreeInput::Unbind)
                            .map(drop)
                    },
                );
            }
        }
        Ok(())
    }

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
            let what = format!("{} is left from something unfinished", path.display());
            self.found("leftover", Severity::Info, what, "delete it", || {
                let gone = match path.is_dir() {
                    true => fs::remove_dir_all(&path),
                    false => fs::remove_file(&path),
                };
                gone.map_err(at(&path))
            });
        }
        for lock in trees.vault().stale_locks() {
            let what = format!("{} is left from a git that was killed", lock.display());
            self.found("leftover", Severity::Info, what, "delete it", || {
                fs::remove_file(&lock).map_err(at(&lock))
            });
        }
        let packs = trees.place.repository().common_dir().join("objects/pack");
        let keeps = fs::read_dir(&packs).into_iter().flatten().flatten();
        for keep in keeps.map(|entry| entry.path()) {
            let is_keep = keep.extension().is_some_and(|kind| kind == "keep");
            if is_keep && weald_git::is_stale_keep(&keep) {
                let what = format!("{} holds a pack for an import that ended", keep.display());
                self.found("leftover", Severity::Info, what, "delete it", || {
                    fs::remove_file(&keep).map_err(at(&keep))
                });
            }
        }
        Ok(())
    }

    /// Live trees whose branch in main is gone.
    pub(super) fn check_branches(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        for tree in trees
            .records()?
            .iter()
            .filter(|tree| tree.is_live() && !tree.removing)
        {
            let full = format!("refs/heads/{}", tree.branch);
            if trees.place.repository().resolve(&full)?.is_none() && trees.site(tree).is_ok() {
                let what = format!("branch {} of tree {} is gone", tree.branch, tree.name);
                self.found("branch_lost", Severity::Warn, what, "make it again", || {
                    trees.reinstate_missing_branch(tree)
                });
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

/// Whether nobody holds a lock.
fn is_free(path: &Path) -> bool {
    fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}
