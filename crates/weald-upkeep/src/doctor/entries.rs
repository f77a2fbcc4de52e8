//! Entries in `worktrees/`, parsed here and not by git, which a single broken one keeps from working.
//!
//! An entry is weald's if its note names a tree on record, or if the record of a tree names it and it leads to that tree.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_git::{EntryFault, Registration, Registrations, last_logged};

use crate::finding::{Finding, Found};
use crate::repair::{OfTree, Repair};
use crate::survey::Survey;
use crate::{Code, Severity};
use weald_control::marker::TreeNote;
use weald_trees::{TreeError, Trees, at};

/// What is done about an entry that has nothing of the user's.
const REWRITE: &str = "write it again; the old content goes to weald's private folder";

/// Ours that are broken are repaired, ours without a tree go, broken ones of others are reported.
pub(super) fn check(survey: &Survey<'_>) -> Found {
    let registrations = survey.trees.registrations();
    let mut found = Vec::new();
    for (name, entry) in named(&registrations)? {
        let owned = entry.and_then(|entry| Some((owner(&entry, survey.records().ok()?)?, entry)));
        let Some((tree, entry)) = owned else {
            found.extend(unowned(&registrations, &name));
            continue;
        };
        let faults = faults(&registrations, &entry);
        found.extend(match faults.is_empty() {
            true => unwanted(&registrations, &entry, tree),
            false => Some(broken(survey.trees, &entry, tree, faults)),
        });
        found.extend(unwritten(&registrations.directory(&entry.name)));
    }
    Ok(found)
}

/// Without records an entry is weald's by its note alone, which is enough to report and too little to repair.
pub(super) fn without_records(registrations: &Registrations) -> Vec<Finding> {
    let names = registrations.names().unwrap_or_default().into_iter();
    names
        .filter_map(|name| unowned(registrations, &name))
        .collect()
}

/// Whether there are trees that weald made and has no record of.
pub(super) fn are_lost(survey: &Survey<'_>) -> bool {
    let (Ok(known), Ok(records)) = (survey.registrations(), survey.records()) else {
        return false;
    };
    let is_lost =
        |entry: &Registration| is_sealed_by_weald(entry) && owner(entry, records).is_none();
    known.iter().any(is_lost)
}

/// Whether the entry of a tree is broken, so that there is nothing to compare.
pub(super) fn is_broken(survey: &Survey<'_>, entry: &Registration) -> bool {
    let records = survey.records().unwrap_or_default();
    let faults = || faults(&survey.trees.registrations(), entry);
    owner(entry, records).is_some() && !faults().is_empty()
}

type Named = (OsString, Option<Registration>);

fn named(registrations: &Registrations) -> Result<Vec<Named>, TreeError> {
    let names = registrations.names();
    let names = names.map_err(at(&registrations.directory("")))?.into_iter();
    let read = |name: OsString| {
        let entry = name.to_str().and_then(|name| registrations.read(name));
        (name, entry)
    };
    Ok(names.map(read).collect())
}

/// What is wrong with an entry that should be weald's.
fn faults(registrations: &Registrations, entry: &Registration) -> Vec<EntryFault> {
    let mut faults = registrations.faults(OsStr::new(&entry.name));
    if TreeNote::of(entry).is_none() {
        let what = "it does not say whose entry this is".to_owned();
        faults.push(EntryFault {
            file: "weald",
            what,
        });
    }
    faults
}

/// One that git should no longer show.
fn unwanted(registrations: &Registrations, entry: &Registration, tree: &Tree) -> Option<Finding> {
    let in_trash = tree.status == TreeStatus::Trashed && tree.kind == TreeKind::Linked;
    let unfinished = tree.status == TreeStatus::Creating || tree.removing;
    let is_wanted = (tree.is_live() && tree.registration.as_deref() == Some(&entry.name))
        || in_trash
        || unfinished;
    (!is_wanted).then(|| {
        let what = format!(
            "worktrees/{} belongs to a worktree that is gone",
            entry.name
        );
        Finding::new(Code::RegistrationStale, what, "remove it")
            .at(&registrations.directory(&entry.name))
            .repair(Repair::RemoveEntry(entry.name.clone()))
    })
}

fn broken(
    trees: &Trees<'_>,
    entry: &Registration,
    tree: &Tree,
    faults: Vec<EntryFault>,
) -> Finding {
    let directory = trees.registrations().directory(&entry.name);
    let what = format!(
        "worktrees/{} of worktree {}: {}",
        entry.name,
        tree.name,
        listed(&faults)
    );
    let kept = kept_by_user(trees, &directory, tree, &faults);
    let would = kept.as_deref().unwrap_or(REWRITE);
    let finding = Finding::new(Code::RegistrationBroken, what, would);
    let finding = finding.at(&directory).of(tree);
    match kept {
        Some(_) => finding,
        None => {
            let repair = OfTree::WriteEntry(entry.name.clone(), faults);
            finding.repair(Repair::of(tree, repair))
        }
    }
}

/// Files that a killed process was about to rename into place.
fn unwritten(directory: &Path) -> Vec<Finding> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_unwritten = |path: &Path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let parts = name
            .strip_suffix(".new")
            .and_then(|name| name.rsplit_once('.'));
        let pid = parts.and_then(|(_, pid)| pid.parse::<u32>().ok());
        pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
    };
    let paths = entries.map(|entry| entry.path());
    let found = paths.filter(|path| is_unwritten(path)).map(|path| {
        let what = format!("{} was never moved into place", path.display());
        Finding::leftover(what, Repair::Delete(path))
    });
    found.collect()
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
fn unowned(registrations: &Registrations, name: &OsStr) -> Option<Finding> {
    let faults = registrations.faults(name);
    let directory = registrations.directory("").join(name);
    let entry = name.to_str().and_then(|name| registrations.read(name));
    let shown = name.to_string_lossy();
    let is_ours = entry
        .as_ref()
        .is_some_and(|entry| TreeNote::of(entry).is_some());
    let is_lost = entry.as_ref().is_some_and(is_sealed_by_weald);
    let finding = match (faults.is_empty(), is_ours) {
        (true, false) => return None,
        (true, true) if !is_lost => {
            let what = format!("worktrees/{shown} is marked as weald's, but has no record");
            let would = "to record it: weald adopt (an adoption may have been interrupted)";
            Finding::new(Code::RegistrationUnknown, what, would).rated(Severity::Info)
        }
        (_, true) if is_lost => {
            let broken = match faults.is_empty() {
                true => String::new(),
                false => format!(" ({})", listed(&faults)),
            };
            let what =
                format!("worktrees/{shown} is of a weald worktree that has no record{broken}");
            let would = "to rebuild the records: weald doctor --rebuild --fix";
            Finding::new(Code::RegistrationUnknown, what, would)
        }
        _ => {
            let what = format!("worktrees/{shown} is not weald's: {}", listed(&faults));
            let would = format!("check it, then delete {}", directory.display());
            // git reads this one of every entry, whatever it is asked for.
            let severity = match faults.iter().any(|fault| fault.file == "commondir") {
                true => Severity::Error,
                false => Severity::Warn,
            };
            Finding::new(Code::ForeignBroken, what, would).rated(severity)
        }
    };
    Some(finding.at(&directory))
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
