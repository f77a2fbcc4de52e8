//! The file of events: appended to while it is as it was left, else written again next to its place.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use super::folder::{Building, Folder};

/// A file as it was left: a later write shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    inode: u64,
    length: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Fingerprint {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            inode: found.ino(),
            length: found.len(),
            seconds: found.mtime(),
            nanoseconds: found.mtime_nsec(),
        })
    }

    /// Whether the file of this name is as it was left.
    pub(super) fn is_of(&self, folder: &Folder, name: &str) -> bool {
        let file = folder.append(name);
        file.is_ok_and(|file| Self::of(&file).is_ok_and(|found| found == *self))
    }
}

/// The file while it is written.
pub(super) struct EventFile {
    target: Target,
    failed: Option<io::Error>,
}

enum Target {
    Old(File),
    New(Building),
}

impl EventFile {
    /// The file as it is if it is `known`, else a new one.
    pub(super) fn open(
        folder: Folder,
        name: &str,
        known: Option<&Fingerprint>,
    ) -> io::Result<Self> {
        let old = folder.append(name).ok().filter(|file| {
            let found = Fingerprint::of(file).ok();
            found.is_some() && found.as_ref() == known
        });
        let target = match old {
            Some(file) => Target::Old(file),
            None => Target::New(folder.build(name)?),
        };
        Ok(Self {
            target,
            failed: None,
        })
    }

    /// Whether it begins with the first event.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.target, Target::New(_))
    }

    /// Adds lines; what goes wrong is said at the end.
    pub(super) fn add(&mut self, lines: impl Iterator<Item = String>) {
        let text: String = lines.map(|line| line + "\n").collect();
        if text.is_empty() || self.failed.is_some() {
            return;
        }
        let file = match &mut self.target {
            Target::Old(file) => file,
            Target::New(building) => building.file(),
        };
        self.failed = file.write_all(text.as_bytes()).err();
    }

    /// Puts it in its place; answers how it was left.
    pub(super) fn finish(self) -> io::Result<Fingerprint> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.target {
            Target::Old(file) => Fingerprint::of(&file),
            Target::New(building) => Fingerprint::of(&building.settle()?),
        }
    }
}
