//! Files of others: read, changed as a whole, put back if a later one can't be written.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::clients::Wanted;
use super::edit;
use super::lines::unified;
use super::records::{Record, Records};
use super::{ChangedConfig, Direction, FileOutcome, InstallError, Kept};
use weald_control::files;

/// The largest file that is edited.
const LIMIT: u64 = 64 * 1024 * 1024;

/// So many links are followed to a file.
const LINKS: usize = 40;

/// The change of one file, worked out.
pub(super) struct Planned {
    /// As people know it.
    path: PathBuf,
    /// Where it really is: links are followed, as those who keep their settings elsewhere expect.
    place: PathBuf,
    old: Option<String>,
    new: Option<String>,
    known: Option<Record>,
    /// What to remember; `None`: nothing any more.
    record: Option<Record>,
    /// What stays when weald's entries go.
    kept: Vec<Kept>,
    /// Folders to delete if they are empty then.
    folders: Vec<PathBuf>,
}

impl Planned {
    fn outcome(&self) -> FileOutcome {
        match (&self.old, &self.new) {
            (old, new) if old == new => FileOutcome::Unchanged,
            (None, _) => FileOutcome::Created,
            (_, None) => FileOutcome::Deleted,
            _ => FileOutcome::Changed,
        }
    }

    /// As people and programs see it.
    pub(super) fn change(&self) -> ChangedConfig {
        let name = self.path.display().to_string();
        let side = |text: &Option<String>| match text {
            Some(text) => (name.clone(), text.clone()),
            None => ("/dev/null".to_owned(), String::new()),
        };
        let (old, new) = (side(&self.old), side(&self.new));
        ChangedConfig {
            path: self.path.clone(),
            outcome: self.outcome(),
            diff: unified((&old.0, &old.1), (&new.0, &new.1)),
            kept: self.kept.clone(),
        }
    }

    /// Where the file really is.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }
}

/// Works out the change of one file.
pub(super) fn plan(
    wanted: &Wanted,
    direction: Direction,
    project: Option<&Path>,
    records: &Records,
) -> Result<Planned, InstallError> {
    let place = place_of(&wanted.path, project)?;
    let old = read(&wanted.path, &place)?;
    let record = records.get(&place);
    let before = before(wanted, old.as_deref(), record.as_ref())?;
    let mut planned = Planned {
        path: wanted.path.clone(),
        place: place.clone(),
        old,
        new: None,
        known: record.clone(),
        record: None,
        kept: Vec::new(),
        folders: Vec::new(),
    };
    match direction {
        Direction::Out => {
            let left = before.as_deref().unwrap_or_default();
            let kept = wanted.edits.iter().map(|edit| edit.kept(left));
            let kept: Result<Vec<_>, _> = kept.collect();
            planned.kept = kept.map_err(|source| refused(wanted, source))?.concat();
            planned.folders = record.map(|record| record.folders).unwrap_or_default();
            planned.new = before;
        }
        Direction::In => {
            let new = with(wanted, planned.old.as_deref().unwrap_or_default())?;
            // Where weald has not written yet, entries of its own name are the user's word.
            let before = match record {
                None if !wanted.is_whole() => planned.old.clone(),
                _ => before,
            };
            let folders = match record {
                Some(record) if !record.folders.is_empty() => record.folders,
                _ => missing_folders(&place),
            };
            planned.record = Some(Record::of(&place, before.as_deref(), &new, folders));
            planned.new = Some(new);
        }
    }
    Ok(planned)
}

/// The file without anything of weald's: exactly as it was before, or as near as can be. `None`: there is none.
fn before(
    wanted: &Wanted,
    old: Option<&str>,
    record: Option<&Record>,
) -> Result<Option<String>, InstallError> {
    let Some(text) = old else {
        return Ok(None);
    };
    if let Some(before) = record.and_then(|record| record.before(text)) {
        return Ok(before);
    }
    let bare = without(wanted, text)?;
    let ours = record.is_some_and(|record| !record.existed);
    let nothing_left = bare != text && edit::is_empty(&bare);
    Ok((!(nothing_left && (ours || wanted.is_whole()))).then_some(bare))
}

fn with(wanted: &Wanted, text: &str) -> Result<String, InstallError> {
    let mut edits = wanted.edits.iter();
    let added = edits.try_fold(text.to_owned(), |text, edit| edit.add(&text));
    added.map_err(|source| refused(wanted, source))
}

fn without(wanted: &Wanted, text: &str) -> Result<String, InstallError> {
    let mut edits = wanted.edits.iter();
    let taken = edits.try_fold(text.to_owned(), |text, edit| edit.take(&text));
    taken.map_err(|source| refused(wanted, source))
}

fn refused(wanted: &Wanted, source: edit::EditError) -> InstallError {
    InstallError::Edit {
        path: wanted.path.clone(),
        source,
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> InstallError {
    let path = path.to_owned();
    move |source| InstallError::File {
        path: path.clone(),
        source,
    }
}

/// Where a file really is. In a project links must not lead out of it: what is committed there is not the user's word.
fn place_of(path: &Path, project: Option<&Path>) -> Result<PathBuf, InstallError> {
    let mut place = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&place) else {
            break;
        };
        place = match place.parent() {
            Some(folder) => folder.join(target),
            None => target,
        };
    }
    let Some(root) = project else {
        return Ok(place);
    };
    let real = |path: &Path| {
        let mut known = path.ancestors();
        known.find_map(|ancestor| ancestor.canonicalize().ok())
    };
    let folder = place.parent().unwrap_or(&place);
    match (real(root), real(folder)) {
        (Some(root), Some(folder)) if folder.starts_with(&root) => Ok(place),
        _ => Err(InstallError::LeadsOut {
            path: path.to_owned(),
            to: place,
        }),
    }
}

fn read(path: &Path, place: &Path) -> Result<Option<String>, InstallError> {
    files::read_small(place, LIMIT).map_err(failed(path))
}

fn missing_folders(place: &Path) -> Vec<PathBuf> {
    let folders = place.ancestors().skip(1);
    let missing = folders.take_while(|folder| !folder.exists());
    missing.map(Path::to_owned).collect()
}

/// Writes everything. What was written is put back if something can't be.
pub(super) fn apply(plan: &[Planned], records: &Records) -> Result<(), InstallError> {
    let changing = plan.iter().filter(|planned| planned.old != planned.new);
    let changing: Vec<_> = changing.collect();
    for planned in &changing {
        require_writable(planned)?;
    }
    for (at, planned) in changing.iter().enumerate() {
        if let Err(error) = write(planned, records) {
            // The error that is returned is the first one.
            changing[..at].iter().rev().for_each(|done| {
                let _ = put(&done.place, done.old.as_deref());
            });
            changing[..=at]
                .iter()
                .for_each(|done| remember(done, records));
            return Err(error);
        }
    }
    Ok(())
}

/// Brings back what was remembered of a file that is as it was, and takes away folders that were made for it.
fn remember(planned: &Planned, records: &Records) {
    match &planned.known {
        Some(record) => {
            let _ = records.put(record);
        }
        None => records.forget(&planned.place),
    }
    if planned.old.is_none() {
        let made = planned.record.iter().flat_map(|record| &record.folders);
        made.for_each(|folder| {
            let _ = fs::remove_dir(folder);
        });
    }
}

fn require_writable(planned: &Planned) -> Result<(), InstallError> {
    match fs::metadata(&planned.place) {
        Ok(found) if found.permissions().readonly() => Err(InstallError::ReadOnly {
            path: planned.path.clone(),
        }),
        // A new file in its place would be another one than the one behind its other names.
        Ok(found) if found.nlink() > 1 => Err(InstallError::HardLinked {
            path: planned.path.clone(),
        }),
        _ => Ok(()),
    }
}

fn write(planned: &Planned, records: &Records) -> Result<(), InstallError> {
    let at = failed(&planned.path);
    if let Some(record) = &planned.record {
        records.put(record).map_err(&at)?;
    }
    // Somebody else's change since the look is not written over.
    if read(&planned.path, &planned.place)? != planned.old {
        return Err(InstallError::Raced {
            path: planned.path.clone(),
        });
    }
    put(&planned.place, planned.new.as_deref()).map_err(&at)?;
    if planned.record.is_none() {
        records.forget(&planned.place);
    }
    for folder in &planned.folders {
        // One that holds something else stays.
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

fn put(place: &Path, text: Option<&str>) -> io::Result<()> {
    let Some(text) = text else {
        return fs::remove_file(place);
    };
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    files::replace_as_owned(place, text.as_bytes())
}
