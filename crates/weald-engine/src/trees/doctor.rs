//! Doctor: what create, import, rm and restore can leave behind, and what people move about.
//!
//! It repairs only what is weald's own and provably so; everything else is told. A second run finds nothing that the
//! first one mended.

mod derived;
mod gates;
mod landing;
mod ports;
mod run_folders;
mod whole;

use std::path::{Path, PathBuf};

use serde::Serialize;
use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_core::tree_rules::TreeInput;

use super::building::{building, identity_of, locked_text};
use super::inside::Job;
use super::restore::{delete, going};
use super::visit::{Access, Site};
use super::{TreeError, Trees};
use crate::marker::TreeNote;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something does not fit, nothing is at risk.
    Warn,
    /// Something can't be used.
    Error,
}

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable word.
    pub code: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What is found.
    pub what: String,
    /// What a repair does, or what a person can do.
    pub would: String,
    /// Whether it was repaired.
    pub fixed: bool,
}

/// A round of checks in the making.
struct Round<'r, 'a> {
    trees: &'r Trees<'a>,
    fix: bool,
    findings: Vec<Finding>,
}

impl Trees<'_> {
    /// Looks for everything that does not fit; repairs what can be with `fix`. `places` are further directories in which
    /// moved trees may be.
    pub fn doctor(&self, fix: bool, places: &[PathBuf]) -> Result<Vec<Finding>, TreeError> {
        let mut round = Round {
            trees: self,
            fix,
            findings: Vec::new(),
        };
        for tree in self.records()? {
            round.check(&tree, places)?;
        }
        round.check_registrations()?;
        round.check_bindings()?;
        round.check_leftovers()?;
        round.check_gates();
        round.check_run_folders();
        round.check_branches()?;
        round.check_views()?;
        round.check_ports()?;
        round.check_landings()?;
        Ok(round.findings)
    }
}

impl Round<'_, '_> {
    /// Notes a finding; repairs it if asked to.
    fn found(
        &mut self,
        code: &'static str,
        severity: Severity,
        what: String,
        would: &str,
        repair: impl FnOnce() -> Result<(), TreeError>,
    ) {
        let repaired = match self.fix {
            true => Some(repair()),
            false => None,
        };
        let what = match &repaired {
            Some(Err(error)) => format!("{what}; the repair failed: {error}"),
            _ => what,
        };
        self.findings.push(Finding {
            code,
            severity,
            what,
            would: would.to_owned(),
            fixed: matches!(repaired, Some(Ok(()))),
        });
    }

    /// Notes what only a person can mend.
    fn told(&mut self, code: &'static str, severity: Severity, what: String, would: String) {
        self.findings.push(Finding {
            code,
            severity,
            what,
            would,
            fixed: false,
        });
    }

    fn check(&mut self, tree: &Tree, places: &[PathBuf]) -> Result<(), TreeError> {
        let trees = self.trees;
        let at_work = tree
            .worker
            .as_ref()
            .is_some_and(|worker| trees.may_live(worker));
        if at_work {
            return Ok(());
        }
        match tree.status {
            TreeStatus::Creating => self.unfinished_creation(tree),
            TreeStatus::Trashed => self.check_trashed(tree),
            TreeStatus::Removed => self.check_removed(tree),
            _ if tree.removing => self.unfinished_removal(tree),
            _ => self.check_live(tree, places),
        }
        Ok(())
    }

    /// A creation that was interrupted: finished if everything is there, else taken back.
    fn unfinished_creation(&mut self, tree: &Tree) {
        let trees = self.trees;
        let registered = trees
            .registrations()
            .list()
            .unwrap_or_default()
            .into_iter()
            .find_map(|known| {
                Some((
                    TreeNote::of(&known).filter(|note| note.tree == tree.id)?,
                    known,
                ))
            });
        let here = identity_of(&tree.path).ok();
        if let Some((note, known)) = registered
            && here == Some(note.identity)
        {
            let what = format!("tree {} was made but not recorded", tree.name);
            self.found(
                "create_unfinished",
                Severity::Warn,
                what,
                "record it",
                || {
                    trees.find_again(tree);
                    trees
                        .activate(tree, note.identity, known.name.clone())
                        .map(drop)
                },
            );
            return;
        }
        let what = format!("the creation of tree {} was interrupted", tree.name);
        self.found(
            "create_unfinished",
            Severity::Warn,
            what,
            "take it back",
            || {
                trees.clear_creation(tree)?;
                let input = TreeInput::CreateFailed {
                    error: "interrupted".to_owned(),
                };
                trees.decide(tree, Durability::Process, input).map(drop)
            },
        );
    }

    /// A removal that was interrupted: finished if the directory is in the trash, else called off.
    fn unfinished_removal(&mut self, tree: &Tree) {
        let trees = self.trees;
        let what = format!("the removal of tree {} was interrupted", tree.name);
        match trees.in_trash(tree) {
            Some(path) if tree.path.symlink_metadata().is_err() => {
                self.found(
                    "remove_unfinished",
                    Severity::Warn,
                    what,
                    "finish it",
                    || trees.finish_removal(tree, path),
                );
            }
            _ => self.found(
                "remove_unfinished",
                Severity::Warn,
                what,
                "call it off",
                || {
                    if let Some(identity) = tree.identity {
                        trees.reinstate_registration(tree, identity)?;
                    }
                    trees.reinstate_missing_branch(tree)?;
                    let input = TreeInput::RemoveFailed {
                        error: "interrupted".to_owned(),
                    };
                    trees.decide(tree, Durability::Process, input).map(drop)
                },
            ),
        }
    }

    fn check_trashed(&mut self, tree: &Tree) {
        let trees = self.trees;
        let Some(trash) = tree.trash.clone() else {
            return;
        };
        let going = going(tree, &trash.path);
        if going.exists() {
            let what = format!("the purge of tree {} was interrupted", tree.name);
            self.found(
                "purge_unfinished",
                Severity::Warn,
                what,
                "finish it",
                || {
                    delete(&going).map_err(super::at(&going))?;
                    trees.unregister(tree)?;
                    let input = TreeInput::Removed;
                    trees.decide(tree, Durability::Process, input).map(drop)
                },
            );
            return;
        }
        let is_tree =
            |path: &Path| tree.identity.is_some() && identity_of(path).ok() == tree.identity;
        if is_tree(&trash.path) {
            if tree.removing {
                let what = format!("the purge of tree {} was interrupted", tree.name);
                self.found(
                    "purge_unfinished",
                    Severity::Warn,
                    what,
                    "keep it in the trash",
                    || {
                        let input = TreeInput::RemoveFailed {
                            error: "interrupted".to_owned(),
                        };
                        trees.decide(tree, Durability::Process, input).map(drop)
                    },
                );
            }
            return;
        }
        if is_tree(&tree.path) {
            let what = format!(
                "tree {} is back from the trash, but not on record",
                tree.name
            );
            self.found(
                "restore_unfinished",
                Severity::Warn,
                what,
                "restore it",
                || trees.reinstate(tree, &trash).map(drop),
            );
        } else if tree.removing {
            let what = format!("the purge of tree {} was interrupted", tree.name);
            self.found(
                "purge_unfinished",
                Severity::Warn,
                what,
                "finish it",
                || {
                    trees.unregister(tree)?;
                    trees
                        .decide(tree, Durability::Process, TreeInput::Removed)
                        .map(drop)
                },
            );
        } else {
            let what = format!("{} is not in the trash any more", trash.path.display());
            self.told(
                "trash_missing",
                Severity::Info,
                what,
                "its commits are in the vault; weald trash purge forgets it".to_owned(),
            );
        }
    }

    /// What a failed creation may have left when it could not clear it.
    fn check_removed(&mut self, tree: &Tree) {
        let trees = self.trees;
        if building(tree).symlink_metadata().is_ok() {
            let what = format!("{} is left from a creation", building(tree).display());
            self.found("leftover", Severity::Info, what, "delete it", || {
                trees.clear_creation(tree)
            });
        }
    }

    fn check_live(&mut self, tree: &Tree, places: &[PathBuf]) {
        let trees = self.trees;
        for run in tree.runs.iter().filter(|run| !trees.may_live(&run.process)) {
            let what = format!("a run of {} in {} ended unseen", run.program, tree.name);
            self.found(
                "run_unfinished",
                Severity::Info,
                what,
                "record its end",
                || {
                    let input = TreeInput::RunEnds {
                        process: run.process.clone(),
                        timed_out: false,
                        code: None,
                    };
                    trees.decide(tree, Durability::Process, input).map(drop)
                },
            );
        }
        match trees.site(tree) {
            Ok(site) => self.check_present(tree, &site),
            Err(TreeError::Missing { .. }) => self.check_missing(tree, places),
            Err(TreeError::Damaged { .. }) if tree.kind == TreeKind::Linked => {
                let what = format!("the .git of tree {} leads elsewhere", tree.name);
                self.found(
                    "pointer_wrong",
                    Severity::Warn,
                    what,
                    "write it again",
                    || trees.write_linked_pointer(tree),
                );
                if self.fix
                    && let Ok(site) = trees.site(tree)
                {
                    self.check_present(tree, &site);
                }
            }
            Err(error) => {
                let would = "look at what is there; weald touches nothing of it".to_owned();
                self.told("tree_replaced", Severity::Error, error.to_string(), would);
            }
        }
    }

    /// The directory is not where it was: perhaps it was moved.
    fn check_missing(&mut self, tree: &Tree, places: &[PathBuf]) {
        let trees = self.trees;
        let what = format!("tree {} is not at {}", tree.name, tree.path.display());
        match trees.moved_to(tree, places) {
            Some(path) => {
                let what = format!("{what}, but at {}", path.display());
                self.found(
                    "tree_moved",
                    Severity::Warn,
                    what,
                    "record the new place",
                    || trees.accept_move(tree, &path),
                );
            }
            None => self.told(
                "tree_missing",
                Severity::Warn,
                what,
                format!(
                    "weald ensure {0} makes it again, weald rm {0} forgets it",
                    tree.name
                ),
            ),
        }
    }

    /// A sealed tree whose repository lost its HEAD can't be looked into.
    fn check_repository(&mut self, tree: &Tree) {
        let trees = self.trees;
        let has_head = trees
            .opened(tree)
            .is_ok_and(|(_, door)| door.read(".git/HEAD", 4096).is_ok());
        if tree.kind == TreeKind::Sealed && !has_head {
            self.told(
                "tree_damaged",
                Severity::Warn,
                format!("the repository in tree {} has no HEAD", tree.name),
                format!(
                    "nothing is changed; its files are there: weald rm --discard {} keeps them in the trash",
                    tree.name
                ),
            );
        }
    }

    fn check_present(&mut self, tree: &Tree, site: &Site) {
        let trees = self.trees;
        self.check_repository(tree);
        let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
        let known = trees.registrations().read(name);
        let points_back = known.as_ref().is_some_and(|known| {
            known.path() == Some(&tree.path)
                && TreeNote::of(known).is_some_and(|note| note.tree == tree.id)
        });
        if !points_back && let Some(identity) = tree.identity {
            let what = format!("tree {} is not registered in the repository", tree.name);
            self.found(
                "registration_lost",
                Severity::Warn,
                what,
                "register it",
                || {
                    let registration = trees.reinstate_registration(tree, identity)?;
                    let input = TreeInput::Repaired {
                        identity,
                        path: tree.path.clone(),
                        registration,
                    };
                    trees.decide(tree, Durability::Process, input).map(drop)
                },
            );
        } else if known.is_some_and(|known| known.locked != locked_text(tree))
            && tree.kind == TreeKind::Sealed
        {
            let what = format!("the lock that git shows for {} is not weald's", tree.name);
            let would = format!(
                "if it is not wanted: git worktree unlock {}",
                tree.path.display()
            );
            self.told("foreign_lock", Severity::Info, what, would);
        }
        if tree.kind == TreeKind::Sealed && !trees.borrows_from_here(tree) {
            let what = format!("tree {} borrows from a place that is gone", tree.name);
            self.found(
                "alternates_broken",
                Severity::Warn,
                what,
                "point it at the vault",
                || {
                    let text = String::from_utf8_lossy(&trees.alternates(&tree.path)).into_owned();
                    let job = Job::WriteAlternates { text };
                    trees
                        .do_inside(tree.name.as_str(), site, Access::Write, job)
                        .map(drop)
                },
            );
        }
        if !trees.is_findable(tree) {
            let what = format!(
                "commands inside tree {} would not find the repository",
                tree.name
            );
            self.found(
                "marker_lost",
                Severity::Warn,
                what,
                "write the marker",
                || {
                    trees.find_again(tree);
                    Ok(())
                },
            );
        }
    }
}
