//! An index with other entries: what git's own would be after a move from one tree to another, as far as entries go.
//!
//! The cached tree forgets every folder on the way to what changed and keeps the others, as git does when entries change.

use std::collections::{BTreeMap, BTreeSet};

use super::{CheckoutIndex, EXTENDED, EntryKind, ID, MODE, SKIP_WORKTREE, number, parse_entry};

/// What an entry becomes; its stat data is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    pub kind: EntryKind,
    /// The id of its content.
    pub id: Vec<u8>,
}

/// Where the length of a path does not fit into an entry's flags.
const LONG: usize = 0xfff;

/// From which version on an entry can have more flags.
const VERSION: u32 = 3;

fn mode_of(kind: EntryKind) -> u32 {
    match kind {
        EntryKind::File => 0o100_644,
        EntryKind::Executable => 0o100_755,
        EntryKind::Link => 0o120_000,
        EntryKind::Submodule => 0o160_000,
    }
}

/// An entry as it stands in the file.
fn entry_bytes(path: &[u8], entry: &NewEntry, further: Option<u16>) -> Vec<u8> {
    let mut bytes = vec![0; ID];
    bytes[MODE..MODE + 4].copy_from_slice(&mode_of(entry.kind).to_be_bytes());
    bytes.extend_from_slice(&entry.id);
    let mut flags = path.len().min(LONG) as u16;
    if further.is_some() {
        flags |= EXTENDED;
    }
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend(further.into_iter().flat_map(u16::to_be_bytes));
    bytes.extend_from_slice(path);
    let padded = (bytes.len() + 8) & !7;
    bytes.resize(padded, 0);
    bytes
}

fn head(version: u32, count: usize) -> Option<Vec<u8>> {
    let count = u32::try_from(count).ok()?;
    Some([&b"DIRC"[..], &version.to_be_bytes(), &count.to_be_bytes()].concat())
}

impl CheckoutIndex {
    /// The index with these entries replaced, added, or (`None`) taken away; `None` if it can't be made.
    pub fn edited(&self, changes: &BTreeMap<Vec<u8>, Option<NewEntry>>) -> Option<Self> {
        let mut bytes = head(number(&self.bytes, 4)?, 0)?;
        let mut count = 0;
        let end = self.entries_end();
        // What lies between two changes is copied as it is.
        let mut place = 0;
        let start_of = |place: usize| self.entries.get(place).map_or(end, |entry| entry.start);
        for (path, change) in changes {
            let found = self.find(path);
            let next = found.unwrap_or_else(|free| free);
            bytes.extend_from_slice(&self.bytes[start_of(place)..start_of(next)]);
            count += next - place;
            place = next + usize::from(found.is_ok());
            if let Some(entry) = change {
                if entry.id.len() != self.id_length {
                    return None;
                }
                bytes.extend_from_slice(&entry_bytes(path, entry, None));
                count += 1;
            }
        }
        bytes.extend_from_slice(&self.bytes[start_of(place)..end]);
        count += self.len() - place;
        bytes[8..12].copy_from_slice(&u32::try_from(count).ok()?.to_be_bytes());
        let tree = &self.bytes[end..];
        if !changes.is_empty() && !tree.is_empty() {
            let tree = forgotten(tree.get(8..)?, changes, self.id_length)?;
            bytes.extend_from_slice(b"TREE");
            bytes.extend_from_slice(&u32::try_from(tree.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(&tree);
        } else {
            bytes.extend_from_slice(tree);
        }
        bytes.resize(bytes.len() + self.id_length, 0);
        Self::parse(bytes, self.id_length == 32)
    }

    /// An index of some entries alone: those that are `shown`, and, as not in the work tree, those that are `kept`.
    pub fn part(&self, shown: &BTreeSet<&[u8]>, kept: impl Fn(&[u8]) -> bool) -> Option<Self> {
        let mut body = Vec::new();
        let mut count = 0;
        for entry in self.entries() {
            let is_shown = shown.contains(entry.path);
            if is_shown || kept(entry.path) {
                let (kind, id) = (entry.kind, entry.id.to_vec());
                let flags = if is_shown { 0 } else { SKIP_WORKTREE };
                let further = Some(flags).filter(|flags| *flags != 0);
                body.extend(entry_bytes(entry.path, &NewEntry { kind, id }, further));
                count += 1;
            }
        }
        let mut bytes = head(VERSION, count)?;
        bytes.extend(body);
        bytes.resize(bytes.len() + self.id_length, 0);
        Self::parse(bytes, self.id_length == 32)
    }

    /// Where entries end and the cached tree begins.
    pub(super) fn entries_end(&self) -> usize {
        let last = self.entries.last();
        let after = last.and_then(|last| parse_entry(&self.bytes, last.start, self.id_length));
        after.map_or(12, |(_, next)| next)
    }
}

/// A cached tree without the ids of the folders on the way to changed paths.
fn forgotten(
    tree: &[u8],
    changes: &BTreeMap<Vec<u8>, Option<NewEntry>>,
    id_length: usize,
) -> Option<Vec<u8>> {
    let mut folders = BTreeSet::from([&b""[..]]);
    for path in changes.keys() {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        folders.extend(ends.map(|(end, _)| &path[..end]));
    }
    let mut written = Vec::with_capacity(tree.len());
    let mut rest = tree;
    // The folders that are open, each with how many of its folders are still to come.
    let mut open: Vec<(Vec<u8>, usize)> = Vec::new();
    while !rest.is_empty() {
        let name_end = rest.iter().position(|byte| *byte == 0)?;
        let line_end = name_end + rest[name_end..].iter().position(|byte| *byte == b'\n')?;
        let (name, line) = (&rest[..name_end], &rest[name_end + 1..line_end]);
        let (entries, below) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        let entries: i64 = entries.parse().ok()?;
        let below: usize = below.parse().ok()?;
        rest = &rest[line_end + 1..];
        let id = if entries < 0 { 0 } else { id_length };
        let path = match open.last_mut() {
            None => name.to_vec(),
            Some((above, left)) => {
                *left = left.checked_sub(1)?;
                match above.is_empty() {
                    true => name.to_vec(),
                    false => [above, &b"/"[..], name].concat(),
                }
            }
        };
        written.extend_from_slice(name);
        match folders.contains(path.as_slice()) {
            true => written.extend(format!("\0-1 {below}\n").bytes()),
            false => {
                written.extend(format!("\0{entries} {below}\n").bytes());
                written.extend_from_slice(rest.get(..id)?);
            }
        }
        rest = rest.get(id..)?;
        open.push((path, below));
        while open.last().is_some_and(|(_, left)| *left == 0) {
            open.pop();
        }
    }
    open.is_empty().then_some(written)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::Git;

    fn git(work: &Path, name: &str) -> Git {
        Git::new(&work.join(".git"), name).work_tree(work)
    }

    fn said(git: Git) -> String {
        String::from_utf8(git.run().unwrap()).unwrap()
    }

    /// A repository with an index whose cached tree is whole.
    fn repository(format: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let work = home.path();
        let format = format!("--object-format={format}");
        Git::outside(work, "init")
            .args(["-q", &format, "."])
            .run()
            .unwrap();
        let files = [
            "a", "d/e/f/x", "d/e/y", "d/z", "d-1/x", "d.c", "g/h/i", "k/l", "m",
        ];
        for name in files {
            let file = work.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, name).unwrap();
        }
        git(work, "add").args(["."]).run().unwrap();
        git(work, "write-tree").run().unwrap();
        home
    }

    #[test]
    fn m7_an_edited_index_is_what_git_makes_of_the_same_changes() {
        let edits: [&[(&str, Option<EntryKind>)]; 8] = [
            &[],
            &[("a", Some(EntryKind::Executable))],
            &[("d/e/f/x", None)],
            &[("d/e/f/x", None), ("d/e/f", Some(EntryKind::File))],
            &[("0", Some(EntryKind::Link)), ("z", Some(EntryKind::File))],
            &[("m", None), ("m/n/o", Some(EntryKind::File))],
            &[("g/h/i", None), ("d/e/new/deep", Some(EntryKind::File))],
            &[
                ("k", Some(EntryKind::Submodule)),
                ("k/l", None),
                ("d-1/x", Some(EntryKind::File)),
                ("d0", Some(EntryKind::File)),
            ],
        ];
        for format in ["sha1", "sha256"] {
            for changes in edits {
                check(format, changes);
            }
        }
    }

    fn check(format: &str, changes: &[(&str, Option<EntryKind>)]) {
        let home = repository(format);
        let work = home.path();
        let id = said(
            git(work, "hash-object")
                .args(["-w", "--stdin"])
                .input("new"),
        );
        let id = id.trim();
        let bytes = hex::decode(id).unwrap();
        let file = work.join(".git/index");
        let index = CheckoutIndex::read(&file, format == "sha256")
            .unwrap()
            .unwrap();
        let mut lines = String::new();
        let mut wanted = BTreeMap::new();
        for (path, kind) in changes {
            match kind {
                Some(kind) => lines += &format!("{:o} {id}\t{path}\n", mode_of(*kind)),
                None => lines += &format!("0 {}\t{path}\n", "0".repeat(id.len())),
            }
            let entry = kind.map(|kind| NewEntry {
                kind,
                id: bytes.clone(),
            });
            wanted.insert(path.as_bytes().to_vec(), entry);
        }
        let own = work.join(".git/own");
        fs::write(&own, index.edited(&wanted).unwrap().to_bytes()).unwrap();
        git(work, "update-index")
            .args(["--index-info"])
            .input(lines)
            .run()
            .unwrap();
        let answers = |index: &Path| {
            let ask = |name: &str| git(work, name).index_file(index);
            (
                said(ask("ls-files").args(["-s"])),
                said(ask("write-tree").args(["--missing-ok"])),
            )
        };
        assert_eq!(answers(&own), answers(&file), "{changes:?}");
        git(work, "fsck").index_file(&own).run().unwrap();
    }

    #[test]
    fn a_part_has_what_is_shown_and_what_is_kept() {
        let home = repository("sha1");
        let index = CheckoutIndex::read(&home.path().join(".git/index"), false);
        let index = index.unwrap().unwrap();
        let shown = BTreeSet::from([&b"d/z"[..], b"none"]);
        let part = index.part(&shown, |path| path == b"a").unwrap();
        let file = home.path().join(".git/part");
        fs::write(&file, part.to_bytes()).unwrap();
        let listed = git(home.path(), "ls-files")
            .index_file(&file)
            .args(["-t"])
            .run()
            .unwrap();
        assert_eq!(listed, b"S a\nH d/z\n");
    }
}
