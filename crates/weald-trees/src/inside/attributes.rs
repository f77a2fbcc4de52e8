//! Files of attributes that no commit put into a work tree: by their word git takes other bytes for those of a commit.
//!
//! Only those beside and above tracked files count. They are looked at byte for byte, because git would go by them when it
//! looks at them, too.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_git::blob_id;

use super::fresh_git::is_folder;
use super::{InsideError, Workplace, read_capped};

const NAME: &[u8] = b".gitattributes";

/// git reads no longer ones.
const LIMIT: u64 = 100 << 20;

/// Files of attributes that are not those of an index.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    pub files: Vec<PathBuf>,
    /// How many tracked files in their reach are not, byte for byte, what the index says.
    pub reached: u64,
}

impl Workplace {
    /// Finds them by the index of the repository.
    pub(super) fn foreign_attributes(&self) -> Result<Foreign, InsideError> {
        let listed = self.git("ls-files").args(["-s", "-z"]).run()?;
        let lines = listed.split(|byte| *byte == 0);
        let entries: BTreeMap<&[u8], &str> = lines.filter_map(entry).collect();
        let mut folders = BTreeSet::from([&b""[..]]);
        for path in entries.keys() {
            let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            folders.extend(ends.map(|(end, _)| &path[..end + 1]));
        }
        let mut foreign = Foreign::default();
        let mut reached = BTreeSet::new();
        for folder in folders {
            let own = self.work_tree.join(OsStr::from_bytes(folder));
            let path = [folder, NAME].concat();
            let full = self.work_tree.join(OsStr::from_bytes(&path));
            let is_there = full.symlink_metadata().is_ok_and(|found| !found.is_dir());
            let is_reached = folder.is_empty() || is_folder(&self.work_tree, &own);
            let known = entries.get(path.as_slice());
            if !is_there || !is_reached || known.is_some_and(|id| holds(&full, id)) {
                continue;
            }
            foreign.files.push(full);
            let below = entries.range(folder..);
            let below = below.take_while(|(path, _)| path.starts_with(folder));
            reached.extend(below.map(|(path, id)| (*path, *id)));
        }
        let differs = |(path, id): &&(&[u8], &str)| {
            let full = self.work_tree.join(OsStr::from_bytes(path));
            let found = full.symlink_metadata();
            found.is_ok_and(|found| found.is_file()) && !is_blob(&full, id).unwrap_or(false)
        };
        foreign.reached = reached.iter().filter(differs).count() as u64;
        Ok(foreign)
    }

    /// Deletes them; those of the commit come back when the files are reset.
    pub(super) fn drop_foreign_attributes(&self) -> Result<(), InsideError> {
        for file in self.foreign_attributes()?.files {
            fs::remove_file(file)?;
        }
        Ok(())
    }
}

/// Path and id of a file that git tracks.
fn entry(line: &[u8]) -> Option<(&[u8], &str)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(&line[..tab]).ok()?;
    let mut words = head.split(' ');
    let is_file = words.next()?.starts_with("100");
    let id = words.next().filter(|_| is_file)?;
    Some((&line[tab + 1..], id))
}

/// Whether a file of attributes is the one of an index, but for its line ends: those change nothing in what it says.
fn holds(file: &Path, id: &str) -> bool {
    if file.is_symlink() {
        return false;
    }
    let Some(text) = read_capped(file, LIMIT) else {
        return false;
    };
    let is_same = |text: &[u8]| {
        let found = blob_id(text, text.len() as u64, id.len() == 64);
        found.is_ok_and(|found| found == id)
    };
    let mut plain = text.clone();
    let mut after = text.iter().skip(1).chain([&0]);
    plain.retain(|byte| !(after.next() == Some(&b'\n') && *byte == b'\r'));
    is_same(&text) || is_same(&plain)
}

/// Whether a file is, byte for byte, that of an id.
fn is_blob(file: &Path, id: &str) -> io::Result<bool> {
    let content = fs::File::open(file)?;
    let length = content.metadata()?.len();
    Ok(blob_id(content, length, id.len() == 64)? == id)
}
