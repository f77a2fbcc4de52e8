//! What weald changed in a file of others, so that it can be taken back byte for byte.
//!
//! A record holds the bytes that were replaced, not the file: settings hold secrets. It counts only while the file is
//! exactly as weald left it; otherwise weald's entries are taken out one by one. Records are derived: without them
//! everything works, only less exactly.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_git::Digest;

use weald_control::files;

/// The largest record that is read.
const LIMIT: u64 = 16 * 1024 * 1024;

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    path: PathBuf,
    /// Fingerprint of the file as weald left it.
    left: String,
    /// Whether there was a file before.
    pub existed: bool,
    /// Folders that weald made for it, the innermost first.
    pub folders: Vec<PathBuf>,
    /// Where the change begins.
    at: usize,
    /// How many bytes weald put there.
    len: usize,
    /// What was there before.
    was: String,
}

impl Record {
    /// The record of a change.
    pub(super) fn of(
        path: &Path,
        before: Option<&str>,
        after: &str,
        folders: Vec<PathBuf>,
    ) -> Self {
        let old = before.unwrap_or_default();
        let head = common(old.chars(), after.chars());
        let (old_rest, new_rest) = (&old[head..], &after[head..]);
        let tail = common(old_rest.chars().rev(), new_rest.chars().rev());
        Self {
            path: path.to_owned(),
            left: fingerprint(after),
            existed: before.is_some(),
            folders,
            at: head,
            len: new_rest.len() - tail,
            was: old_rest[..old_rest.len() - tail].to_owned(),
        }
    }

    /// The text before the change (`None`: no file), if `text` is exactly what weald left.
    pub(super) fn before(&self, text: &str) -> Option<Option<String>> {
        if fingerprint(text) != self.left {
            return None;
        }
        let (head, rest) = text.split_at_checked(self.at)?;
        let (_, tail) = rest.split_at_checked(self.len)?;
        let before = format!("{head}{}{tail}", self.was);
        Some(self.existed.then_some(before))
    }
}

/// How many bytes two texts begin with in common.
fn common(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    let same = a.zip(b).take_while(|(a, b)| a == b);
    same.map(|(a, _)| a.len_utf8()).sum()
}

fn fingerprint(text: &str) -> String {
    let mut digest = Digest::default();
    digest.add(text.as_bytes());
    digest.finish()
}

/// Where records are kept.
pub(super) struct Records {
    folder: PathBuf,
}

impl Records {
    /// In a folder of the user's own.
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Runs `work` while no other weald installs anything.
    pub(super) fn alone<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        files::edit_alone(&self.folder.join("records"), work)
    }

    /// The record of a file. One that can't be read counts as none.
    pub(super) fn get(&self, path: &Path) -> Option<Record> {
        let text = files::read_small(&self.file(path), LIMIT).ok()??;
        let record: Record = serde_json::from_str(&text).ok()?;
        Some(record).filter(|record| record.path == path)
    }

    /// Files below a folder that weald wrote.
    pub(super) fn below(&self, folder: &Path) -> Vec<PathBuf> {
        let found = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let texts = found.filter_map(|entry| files::read_small(&entry.path(), LIMIT).ok()?);
        let records = texts.filter_map(|text| serde_json::from_str::<Record>(&text).ok());
        let paths = records.map(|record| record.path);
        let is_plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
        let mut below: Vec<_> = paths
            .filter(|path| path.starts_with(folder) && is_plain(path))
            .collect();
        below.sort();
        below
    }

    pub(super) fn put(&self, record: &Record) -> io::Result<()> {
        let text = serde_json::to_string(record)?;
        files::replace_private(&self.file(&record.path), text.as_bytes())
    }

    /// Forgets the record of a file.
    pub(super) fn forget(&self, path: &Path) {
        // One that stays does not fit the file any more.
        let _ = fs::remove_file(self.file(path));
    }

    fn file(&self, path: &Path) -> PathBuf {
        let name = fingerprint(&path.to_string_lossy());
        self.folder.join(format!("{}.json", &name[..16]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_taken_back_byte_for_byte() {
        for (before, after) in [
            (None, "new"),
            (Some(""), "new"),
            (Some("a b c"), "a x c"),
            (Some("aa"), "aaa"),
            (Some("äöü"), "äéü"),
            (Some("same"), "same"),
            (Some("a\r\n"), "a\r\nb\r\n"),
        ] {
            let record = Record::of(Path::new("/x"), before, after, Vec::new());
            assert_eq!(record.before(after), Some(before.map(str::to_owned)));
            assert_eq!(record.before(&format!("{after} ")), None);
        }
    }

    #[test]
    fn a_record_holds_no_more_than_what_changed() {
        let secret = "token = 'secret'\n";
        let after = format!("{secret}[weald]\n");
        let record = Record::of(Path::new("/x"), Some(secret), &after, Vec::new());
        assert_eq!(record.was, "");
    }
}
