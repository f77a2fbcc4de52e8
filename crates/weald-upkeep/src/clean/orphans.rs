//! Orphans: what has only one of record, directory and registration.
//!
//! Always told. Asked to, a directory that is provably left over from a worktree of this repository, or empty, is renamed into the
//! trash, and a record whose directory is gone is forgotten as `rm` does it. What may be somebody else's is only told.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::event::{Change, EventKind};
use weald_core::id::Seq;
use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeStatus};

use super::{CleanReport, NotTaken, Taken};
use crate::Upkeep;
use crate::survey::Survey;
use weald_control::machine::standing_in;
use weald_control::marker::TreeNote;
use weald_trees::identity_of;
use weald_trees::remove::rename;
use weald_trees::{RemoveRequest, TreeError, at};

/// How many entries of a folder are looked at.
const ENTRIES: usize = 10_000;

/// What is there alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrphanClass {
    /// A directory where trees lie, and no record of it.
    DirectoryWithoutRecord,
    /// A record, and no directory.
    RecordWithoutDirectory,
    /// An entry of git, and no record.
    RegistrationWithoutRecord,
}

/// What was done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrphanOutcome {
    Trashed,
    Forgotten,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orphan {
    /// What is there alone.
    pub class: OrphanClass,
    /// What it is called.
    pub name: String,
    /// Where it is, or should be.
    pub path: PathBuf,
    /// What is known about it.
    pub what: String,
    /// What `--orphans --apply` does, or what a person can do.
    pub would: String,
    /// Whether `--orphans --apply` does anything.
    pub acts: bool,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OrphanOutcome>,
    /// Where it is now, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trash: Option<PathBuf>,
}

/// What is known of a directory at first sight.
const ALONE: &str = "a directory without a record";

impl Orphan {
    /// `then` is what can be done about it, and whether `--orphans --apply` does it.
    fn new(
        class: OrphanClass,
        name: &str,
        path: &Path,
        what: String,
        then: (String, bool),
    ) -> Self {
        Self {
            class,
            name: name.to_owned(),
            path: path.to_owned(),
            what,
            would: then.0,
            acts: then.1,
            outcome: None,
            trash: None,
        }
    }
}

impl Upkeep<'_> {
    /// Everything that is there alone.
    pub(super) fn orphans(&self, survey: &Survey<'_>) -> Result<Vec<Orphan>, TreeError> {
        let mut found = Vec::new();
        let is_missing = |tree: &&Tree| tree.path.symlink_metadata().is_err();
        for tree in survey.live()?.filter(is_missing) {
            let moved = survey.whereabouts.of(self.trees, tree);
            found.push(missing_directory(tree, moved));
        }
        for root in self.trees.tree_roots()? {
            self.unknown_directories(survey, &root, &mut found)?;
        }
        let known: BTreeSet<_> = survey.records()?.iter().map(|tree| tree.id).collect();
        for entry in survey.registrations()? {
            let is_known = TreeNote::of(entry).is_some_and(|note| known.contains(&note.tree));
            let Some(path) = entry.path().filter(|_| !is_known) else {
                continue;
            };
            let would = match path.exists() {
                true => format!("left alone; to adopt it: weald adopt {}", path.display()),
                false => "left alone; to remove git's record of it: git worktree prune".to_owned(),
            };
            let what = "a git worktree that weald has no record of".to_owned();
            let class = OrphanClass::RegistrationWithoutRecord;
            found.push(Orphan::new(class, &entry.name, path, what, (would, false)));
        }
        Ok(found)
    }

    fn unknown_directories(
        &self,
        survey: &Survey<'_>,
        root: &Path,
        found: &mut Vec<Orphan>,
    ) -> Result<(), TreeError> {
        let known = known_paths(survey)?;
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.take(ENTRIES).map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
            if !is_directory || known.contains(path.as_path()) || !self.trees.fits_path(&path)? {
                continue;
            }
            found.push(self.unknown_directory(survey, path)?);
        }
        Ok(())
    }

    fn unknown_directory(&self, survey: &Survey<'_>, path: PathBuf) -> Result<Orphan, TreeError> {
        let identity = identity_of(&path).ok();
        let of_record = survey
            .records()?
            .iter()
            .find(|tree| tree.identity.is_some() && tree.identity == identity);
        let holds_caller = self.trees.host.directory.starts_with(&path);
        let standing = survey.standing_in(&path);
        let is_empty = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        let is_left = || self.trees.is_left_from_here(&path);
        let (what, would, acts) = match of_record {
            Some(tree) => (
                &*format!("the directory of worktree {}, moved", tree.name),
                "weald doctor --fix",
                false,
            ),
            None if holds_caller => (ALONE, "the current directory is in it", false),
            None if standing.is_some() => {
                let who = standing.unwrap_or_default();
                (ALONE, &*format!("left alone: {who}"), false)
            }
            None if is_empty => ("an empty directory", "move it to the trash", true),
            None if is_left() => (
                "left over from a worktree of this repository",
                "move it to the trash, as it is",
                true,
            ),
            None => (
                "a directory that weald did not create",
                "left alone; check it yourself",
                false,
            ),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let class = OrphanClass::DirectoryWithoutRecord;
        let then = (would.to_owned(), acts);
        Ok(Orphan::new(class, &name, &path, what.to_owned(), then))
    }

    /// Acts on what may be acted on; what fails is told.
    pub(super) fn take_orphans(&self, operation: Seq, report: &mut CleanReport) {
        let mut orphans = std::mem::take(&mut report.orphans);
        for orphan in orphans.iter_mut().filter(|orphan| orphan.acts) {
            let alone = self.require_still_alone(orphan);
            let taken = alone.and_then(|()| match orphan.class {
                OrphanClass::RecordWithoutDirectory => {
                    let taken = self.forget_record(&orphan.name, operation)?;
                    orphan.outcome = Some(OrphanOutcome::Forgotten);
                    report.removed.push(taken);
                    Ok(())
                }
                _ => {
                    orphan.trash = Some(self.trash_directory_of(&orphan.path, operation)?);
                    orphan.outcome = Some(OrphanOutcome::Trashed);
                    Ok(())
                }
            });
            if let Err(error) = taken {
                report.failed.push(NotTaken {
                    tree: orphan.name.clone(),
                    error: error.to_string(),
                });
            }
        }
        report.orphans = orphans;
    }

    /// Refuses an orphan that became a worktree since it was found: created, recreated or registered.
    fn require_still_alone(&self, orphan: &Orphan) -> Result<(), TreeError> {
        let is_whole = match orphan.class {
            OrphanClass::RecordWithoutDirectory => orphan.path.symlink_metadata().is_ok(),
            _ => known_paths(&Survey::new(self.trees, &[]))?.contains(orphan.path.as_path()),
        };
        if is_whole {
            let what = format!("{} is not an orphan any more", orphan.path.display());
            return Err(TreeError::Unsupported { what });
        }
        Ok(())
    }

    fn forget_record(&self, name: &str, operation: Seq) -> Result<Taken, TreeError> {
        let request = RemoveRequest {
            operation: Some(operation),
            ..RemoveRequest::default()
        };
        Ok(self.trees.remove(Some(name), &request)?.into())
    }

    /// Renames a directory into the trash, unless somebody came into it; answers where it is.
    fn trash_directory_of(&self, path: &Path, operation: Seq) -> Result<PathBuf, TreeError> {
        let directory = self.trees.trash_directory(path)?;
        self.trees.require_own_trash(&directory)?;
        fs::create_dir_all(&directory).map_err(at(&directory))?;
        self.trees.exclude(&directory)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let place = self
            .trees
            .free_place(&directory, &name, self.trees.now()?)?;
        if let Some(pid) = standing_in(path) {
            return Err(TreeError::Inhabited {
                path: path.to_owned(),
                pid,
            });
        }
        rename(path, &place)?;
        let fact = Change::fact(EventKind::ORPHAN_TRASHED)
            .with_note(format!("{} is now {}", path.display(), place.display()))
            .part_of(Some(operation));
        self.record(Durability::Process, fact)?;
        Ok(place)
    }
}

/// Where worktrees are or are being created, by weald's records and git's.
fn known_paths<'s>(survey: &'s Survey<'_>) -> Result<BTreeSet<&'s Path>, TreeError> {
    let is_there = |tree: &&Tree| tree.is_live() || tree.status == TreeStatus::Creating;
    let trees = survey.records()?.iter().filter(is_there);
    let entries = survey.registrations()?.iter();
    Ok(trees
        .map(|tree| tree.path.as_path())
        .chain(entries.filter_map(|entry| entry.path()))
        .collect())
}

/// A record without a directory, which may be elsewhere by now.
fn missing_directory(tree: &Tree, moved: Option<PathBuf>) -> Orphan {
    let name = &tree.name;
    let root_is_there = tree.path.parent().is_some_and(Path::is_dir);
    let (would, acts) = match moved {
        Some(path) => (
            format!("it was moved to {}: weald doctor --fix", path.display()),
            false,
        ),
        None if !root_is_there => (
            "the folder of its worktrees is gone, too; perhaps a disk is not mounted".to_owned(),
            false,
        ),
        None if tree.status == TreeStatus::Kept || tree.locked.is_some() => (
            format!("it is kept or locked; to recreate it: weald ensure {name}"),
            false,
        ),
        None => (
            format!(
                "remove its record, as weald rm {name} does; to recreate it instead: weald ensure {name}"
            ),
            true,
        ),
    };
    let what = format!("worktree {name} has no directory");
    let class = OrphanClass::RecordWithoutDirectory;
    Orphan::new(class, name.as_str(), &tree.path, what, (would, acts))
}
