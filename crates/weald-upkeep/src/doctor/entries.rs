//! Entries in `worktrees/`, parsed here and not by git, which a single broken one keeps from working.
//!
//! An entry is weald's if its note names a tree on record, or if the record of a tree names it and it leads to that tree.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_core::tree_rules::TreeInput;
use weald_git::{EntryFault, Registration, Registrations, last_logged, set_aside};

use super::finding::{Finding, Ledger};
use super::leftovers::leftover;
use super::{Code, Round, Severity};
use weald_control::marker::TreeNote;
use weald_trees::identity_of;
use weald_trees::{TreeError, Trees, at};

/// What is done about an entry that has nothing of the user's.
const REWRITE: &str = "write it again; the old content goes to weald's private folder";

impl Round<'_, '_> {
    /// Ours that are broken are mended, ours without a tree go, broken ones of others are told.
    pub(super) fn check_entries(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let known = trees.records()?;
        let registrations = trees.registrations();
        let names = registrations.names();
        let names = names.map_err(at(&registrations.directory("")))?;
        let is_lost = |name: &OsString| {
            let entry = name.to_str().and_then(|name| registrations.read(name));
            entry.is_some_and(|entry| is_sealed_by_weald(&entry) && owner(&entry, &known).is_none())
        };
        // Records that lack trees are not to be trusted with repairs.
        self.ledger.fix &= !names.iter().any(is_lost);
        for name in names {
            let mut faults = registrations.faults(&name);
            let entry = name.to_str().and_then(|name| registrations.read(name));
            let owned = entry.and_then(|entry| Some((owner(&entry, &known)?, entry)));
            let Some((owner, entry)) = owned else {
                tell_unowned(&mut self.ledger, &registrations, &name, &faults);
                continue;
            };
            if TreeNote::of(&entry).is_none() {
                let what = "it does not say whose entry this is".to_owned();
                faults.push(EntryFault {
                    file: "weald",
                    what,
                });
            }
            match faults.is_empty() {
                true => self.check_wanted(&entry, owner),
                false => self.check_broken(&entry, owner, &faults),
            }
            self.check_unwritten(&registrations.directory(&entry.name));
        }
        Ok(())
    }

    /// Whether git should still show it.
    fn check_wanted(&mut self, entry: &Registration, tree: &Tree) {
        let in_trash = tree.status == TreeStatus::Trashed && tree.kind == TreeKind::Linked;
        let unfinished = tree.status == TreeStatus::Creating || tree.removing;
        let is_wanted = (tree.is_live() && tree.registration.as_deref() == Some(&entry.name))
            || in_trash
            || unfinished;
        if is_wanted {
            return;
        }
        let registrations = self.trees.registrations();
        let directory = registrations.directory(&entry.name);
        let what = format!(
            "worktrees/{} belongs to a worktree that is gone",
            entry.name
        );
        let finding = Finding::new(Code::RegistrationStale, what, "remove it").at(&directory);
        self.note(finding.repair(|| registrations.remove(&entry.name).map_err(at(&directory))));
    }

    fn check_broken(&mut self, entry: &Registration, tree: &Tree, faults: &[EntryFault]) {
        let trees = self.trees;
        let directory = trees.registrations().directory(&entry.name);
        let what = format!(
            "worktrees/{} of worktree {}: {}",
            entry.name,
            tree.name,
            listed(faults)
        );
        let kept = kept_by_user(trees, &directory, tree, faults);
        let would = kept.as_deref().unwrap_or(REWRITE);
        let finding = Finding::new(Code::RegistrationBroken, what, would);
        let finding = finding.at(&directory).of(tree);
        let fixed = match kept {
            Some(_) => self.note(finding),
            None => self.note(finding.repair(|| mend(trees, &directory, entry, tree, faults))),
        };
        if !fixed {
            self.broken_entries.insert(entry.name.clone());
        }
    }

    /// Files that a killed process was about to rename into place.
    fn check_unwritten(&mut self, directory: &Path) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let parts = name
                .strip_suffix(".new")
                .and_then(|name| name.rsplit_once('.'));
            let Some(pid) = parts.and_then(|(_, pid)| pid.parse::<u32>().ok()) else {
                continue;
            };
            if Path::new("/proc").join(pid.to_string()).exists() {
                continue;
            }
            let what = format!("{} was never moved into place", path.display());
            self.note(leftover(what).repair(|| fs::remove_file(&path).map_err(at(&path))));
        }
    }
}

/// The tree that an entry is of.
fn owner<'t>(entry: &Registration, known: &'t [Tree]) -> Option<&'t Tree> {
    match TreeNote::of(entry) {
        Some(note) => known.iter().find(|tree| tree.id == note.tree),
        None => known.iter().find(|tree| {
            tree.is_live()
                && tree.registration.as_deref() == Some(&entry.name)
                && entry.path() == Some(&tree.path)
        }),
    }
}

/// Whether an entry is of a tree with a repository of its own, which nobody but weald makes.
fn is_sealed_by_weald(entry: &Registration) -> bool {
    let inner = entry
        .dot_git
        .as_ref()
        .and_then(|path| path.symlink_metadata().ok());
    TreeNote::of(entry).is_some() && inner.is_some_and(|inner| inner.is_dir())
}

/// An entry that no record speaks of.
pub(super) fn tell_unowned(
    ledger: &mut Ledger,
    registrations: &Registrations,
    name: &OsString,
    faults: &[EntryFault],
) {
    let directory = registrations.directory("").join(name);
    let entry = name.to_str().and_then(|name| registrations.read(name));
    let shown = name.to_string_lossy();
    let is_ours = entry
        .as_ref()
        .is_some_and(|entry| TreeNote::of(entry).is_some());
    let is_lost = entry.as_ref().is_some_and(is_sealed_by_weald);
    let finding = match (faults.is_empty(), is_ours) {
        (true, false) => return,
        (true, true) if !is_lost => {
            let what = format!("worktrees/{shown} is marked as weald's, but has no record");
            let would = "to record it: weald adopt (an adoption may have been interrupted)";
            Finding::new(Code::RegistrationUnknown, what, would).rated(Severity::Info)
        }
        (_, true) if is_lost => {
            let broken = match faults.is_empty() {
                true => String::new(),
                false => format!(" ({})", listed(faults)),
            };
            let what =
                format!("worktrees/{shown} is of a weald worktree that has no record{broken}");
            let would = "to rebuild the records: weald doctor --rebuild --fix";
            Finding::new(Code::RegistrationUnknown, what, would)
        }
        _ => {
            let what = format!("worktrees/{shown} is not weald's: {}", listed(faults));
            let would = format!("check it, then delete {}", directory.display());
            // git reads this one of every entry, whatever it is asked for.
            let severity = match faults.iter().any(|fault| fault.file == "commondir") {
                true => Severity::Error,
                false => Severity::Warn,
            };
            Finding::new(Code::ForeignBroken, what, would).rated(severity)
        }
    };
    ledger.note(finding.at(&directory));
}

fn listed(faults: &[EntryFault]) -> String {
    let told = faults.iter().map(|fault| match fault.file {
        "" => fault.what.clone(),
        file => format!("{file}: {}", fault.what),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// What of a linked tree is the user's own and can't be made again by weald: what to do about it.
fn kept_by_user(
    trees: &Trees<'_>,
    directory: &Path,
    tree: &Tree,
    faults: &[EntryFault],
) -> Option<String> {
    let has = |file: &str| faults.iter().any(|fault| fault.file == file);
    if tree.kind == TreeKind::Sealed {
        return None;
    }
    let path = tree.path.display();
    let logged = last_logged(&directory.join("logs/HEAD"));
    let full = format!("refs/heads/{}", tree.branch);
    let tip = trees.place.repository().resolve(&full).ok().flatten();
    // Where the log and the branch agree, HEAD was on the branch, or as good as.
    if has("HEAD") && logged.is_some() && logged != tip {
        let id = logged.map(|id| id.as_str().to_owned()).unwrap_or_default();
        return Some(format!(
            "its log says {id}; write that, or “ref: {full}”, into {}",
            directory.join("HEAD").display()
        ));
    }
    has("index").then(|| {
        let index = directory.join("index");
        format!("rm {}, then: git -C {path} reset", index.display())
    })
}

/// Writes an entry of weald's again. Only what is broken goes aside; a linked tree's other files stay.
fn mend(
    trees: &Trees<'_>,
    directory: &Path,
    entry: &Registration,
    tree: &Tree,
    faults: &[EntryFault],
) -> Result<(), TreeError> {
    for fault in faults {
        let path = directory.join(fault.file);
        if path.symlink_metadata().is_ok() {
            set_aside(&path, &trees.aside()).map_err(at(&path))?;
        }
        if fault.file == "commondir" {
            weald_control::files::replace(&path, "../..\n").map_err(at(&path))?;
        }
    }
    let identity = match tree.identity {
        Some(identity) if tree.is_live() => identity,
        // In the trash, in the making, gone: what follows is said by the record.
        _ => return Ok(()),
    };
    if identity_of(&tree.path).ok() != Some(identity) {
        return Ok(());
    }
    let note = TreeNote {
        tree: tree.id,
        identity,
    };
    trees
        .registrations()
        .set_note(&entry.name, &note.to_text())
        .map_err(at(directory))?;
    let registration = trees.reinstate_registration(tree, identity)?;
    let input = TreeInput::Repaired {
        identity,
        path: tree.path.clone(),
        registration,
    };
    trees.decide(tree, Durability::Process, input).map(drop)
}
