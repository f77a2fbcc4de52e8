//! The index of a checkout, read and given new stat data without git.
//!
//! Only what git writes for a plain, complete checkout is understood: version 2 or 3, one file, no conflicts. Anything
//! else is `None`, and the caller leaves the work to git. Extensions other than the cached tree are dropped on the way,
//! because they speak of a place or of offsets.

mod editing;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use sha1::{Digest, Sha1};
use sha2::Sha256;

pub use editing::NewEntry;

/// Where the parts of an entry are, from its start.
const MODE: usize = 24;
const SIZE: usize = 36;
const ID: usize = 40;

/// Bits of an entry's flags.
const ASSUMED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const LENGTH: u16 = 0x0fff;
const SKIP_WORKTREE: u16 = 0x4000;

/// What kind of thing an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    /// A file that may be run.
    Executable,
    Link,
    /// A commit of a submodule.
    Submodule,
}

#[derive(Debug, Clone)]
struct Slot {
    start: usize,
    path: Range<usize>,
    kind: EntryKind,
    is_absent: bool,
}

/// What the file system says of a file, as an index keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// When its inode changed: seconds and nanoseconds.
    pub changed: (i64, u32),
    /// When it was written: seconds and nanoseconds.
    pub modified: (i64, u32),
    pub device: u64,
    pub inode: u64,
    pub user: u32,
    pub group: u32,
    pub size: u64,
}

#[derive(Debug, Clone)]
pub struct CheckoutIndex {
    bytes: Vec<u8>,
    entries: Vec<Slot>,
    id_length: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct IndexEntry<'a> {
    /// Its path, with `/`.
    pub path: &'a [u8],
    /// The id of its content.
    pub id: &'a [u8],
    pub kind: EntryKind,
    /// True when it is not in the work tree (sparse checkout).
    pub is_absent: bool,
    /// When its inode changed, as git last saw it.
    pub changed: (i64, u32),
    /// When it was written, as git last saw it.
    pub modified: (i64, u32),
    /// The low half of its number, as git last saw it.
    pub inode: u32,
    /// The low half of its length, as git last saw it.
    pub size: u32,
}

impl CheckoutIndex {
    /// Reads an index; `None` if it is not of the plain kind. `sha256` says which ids the repository has.
    pub fn read(path: &Path, sha256: bool) -> io::Result<Option<Self>> {
        Ok(Self::parse(fs::read(path)?, sha256))
    }

    /// The same for its bytes.
    pub fn parse(mut bytes: Vec<u8>, sha256: bool) -> Option<Self> {
        let id_length = if sha256 { 32 } else { 20 };
        let end = bytes.len().checked_sub(id_length)?;
        let version = number(&bytes, 4)?;
        if bytes.get(..4)? != b"DIRC" || !matches!(version, 2 | 3) {
            return None;
        }
        let count = usize::try_from(number(&bytes, 8)?).ok()?;
        let mut entries = Vec::with_capacity(count.min(bytes.len() / 62));
        let mut at = 12;
        let mut last: &[u8] = b"";
        for _ in 0..count {
            let (entry, next) = parse_entry(&bytes[..end], at, id_length)?;
            let path = &bytes[entry.path.clone()];
            // Entries are searched by halves, and their paths are joined to the checkout's.
            if path <= last || !stays_inside(path) || next > end {
                return None;
            }
            last = path;
            entries.push(entry);
            at = next;
        }
        let kept = cached_tree(&bytes[..end], at)?;
        let extension = bytes[kept].to_vec();
        bytes.truncate(at);
        bytes.extend_from_slice(&extension);
        Some(Self {
            bytes,
            entries,
            id_length,
        })
    }

    /// Whether any entry is marked as assumed unchanged or as skipped.
    pub fn has_marks(&self) -> bool {
        let is_assumed = |entry: &Slot| {
            let flags = flags(&self.bytes, entry.start + ID + self.id_length);
            flags.is_none_or(|flags| flags & ASSUMED != 0)
        };
        let mut entries = self.entries.iter();
        entries.any(|entry| entry.is_absent || is_assumed(entry))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// One entry; they are sorted by path.
    pub fn entry(&self, place: usize) -> IndexEntry<'_> {
        let entry = &self.entries[place];
        let bytes = &self.bytes[entry.start..];
        let field = |at| number(bytes, at).unwrap_or(0);
        IndexEntry {
            path: &self.bytes[entry.path.clone()],
            id: &bytes[ID..ID + self.id_length],
            kind: entry.kind,
            is_absent: entry.is_absent,
            changed: (i64::from(field(0)), field(4)),
            modified: (i64::from(field(8)), field(12)),
            inode: field(20),
            size: field(SIZE),
        }
    }

    /// The path of one entry.
    pub(crate) fn path(&self, place: usize) -> &[u8] {
        &self.bytes[self.entries[place].path.clone()]
    }

    /// The id of the git tree that all entries make, in hexadecimal, if git left it here.
    pub fn tree(&self) -> Option<String> {
        let cached = self
            .bytes
            .get(self.entries_end()..)?
            .strip_prefix(b"TREE")?;
        // Its length; then the root, which has no name.
        let root = cached.get(4..)?.strip_prefix(b"\0")?;
        let end = root.iter().position(|byte| *byte == b'\n')?;
        let count = root[..end].split(|byte| *byte == b' ').next()?;
        let is_whole = count == self.len().to_string().as_bytes();
        let id = root.get(end + 1..end + 1 + self.id_length)?;
        is_whole.then(|| hex::encode(id))
    }

    /// Where the entry of a path is, or where it would be.
    pub fn find(&self, path: &[u8]) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| self.bytes[entry.path.clone()].cmp(path))
    }

    /// All entries, sorted by path.
    pub fn entries(&self) -> impl Iterator<Item = IndexEntry<'_>> {
        (0..self.len()).map(|place| self.entry(place))
    }

    /// Gives an entry new stat data; times and numbers are cut to 32 bits, as git does.
    pub fn set_stat(&mut self, place: usize, stat: &FileStat) {
        let fields: [(usize, u64); 9] = [
            (0, stat.changed.0 as u64),
            (4, u64::from(stat.changed.1)),
            (8, stat.modified.0 as u64),
            (12, u64::from(stat.modified.1)),
            (16, stat.device),
            (20, stat.inode),
            (28, u64::from(stat.user)),
            (32, u64::from(stat.group)),
            (SIZE, stat.size),
        ];
        let start = self.entries[place].start;
        for (at, value) in fields {
            let field = (value as u32).to_be_bytes();
            self.bytes[start + at..start + at + 4].copy_from_slice(&field);
        }
    }

    /// The file as git would write it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        match self.id_length {
            32 => bytes.extend_from_slice(&Sha256::digest(&self.bytes)),
            _ => bytes.extend_from_slice(&Sha1::digest(&self.bytes)),
        }
        bytes
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(field.try_into().ok()?))
}

fn flags(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes(field.try_into().ok()?))
}

fn parse_entry(bytes: &[u8], start: usize, id_length: usize) -> Option<(Slot, usize)> {
    let kind = match number(bytes, start + MODE)? {
        0o100_644 => EntryKind::File,
        0o100_755 => EntryKind::Executable,
        0o120_000 => EntryKind::Link,
        0o160_000 => EntryKind::Submodule,
        _ => return None,
    };
    let mut at = start + ID + id_length;
    let plain = flags(bytes, at)?;
    at += 2;
    let further = match plain & EXTENDED {
        0 => 0,
        _ => {
            at += 2;
            flags(bytes, at - 2)?
        }
    };
    // A conflict, or something git would say in a newer format.
    if plain & STAGE != 0 || further & !SKIP_WORKTREE != 0 {
        return None;
    }
    // Git goes by the length in the flags, as far as it fits there.
    let rest = bytes.get(at..)?;
    let length = match plain & LENGTH {
        LENGTH => rest.iter().position(|byte| *byte == 0)?,
        length => usize::from(length),
    };
    let is_terminated = length >= usize::from(plain & LENGTH) && rest.get(length) == Some(&0);
    if !is_terminated || rest[..length].contains(&0) {
        return None;
    }
    let path = at..at + length;
    let padded = (at + length - start + 8) & !7;
    let entry = Slot {
        start,
        path,
        kind,
        is_absent: further & SKIP_WORKTREE != 0,
    };
    Some((entry, start + padded))
}

/// Whether a path leads to a place in a checkout that is not its repository's.
fn stays_inside(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|part| match part {
        b"" | b"." | b".." => false,
        part => !part.eq_ignore_ascii_case(b".git"),
    })
}

/// Where the cached tree is among the extensions; an extension that must be understood ends it.
fn cached_tree(bytes: &[u8], mut at: usize) -> Option<Range<usize>> {
    let mut found = at..at;
    while at < bytes.len() {
        let name = bytes.get(at..at + 4)?;
        let length = usize::try_from(number(bytes, at + 4)?).ok()?;
        let next = at.checked_add(8)?.checked_add(length)?;
        if next > bytes.len() || !name[0].is_ascii_uppercase() {
            return None;
        }
        if name == b"TREE" {
            found = at..next;
        }
        at = next;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Git;

    fn repository(format: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let work = home.path();
        let format = format!("--object-format={format}");
        Git::outside(work, "init")
            .args(["-q", &format, "."])
            .run()
            .unwrap();
        fs::create_dir(work.join("d")).unwrap();
        for name in ["a", "d/b", "d/a longer name than eight"] {
            fs::write(work.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("a", work.join("link")).unwrap();
        git(work, "add").args(["."]).run().unwrap();
        git(work, "write-tree").run().unwrap();
        home
    }

    fn git(work: &Path, name: &str) -> Git {
        Git::new(&work.join(".git"), name).work_tree(work)
    }

    #[test]
    fn git_accepts_what_is_written_and_sees_the_new_stat_data() {
        for format in ["sha1", "sha256"] {
            let home = repository(format);
            let file = home.path().join(".git/index");
            let before = git(home.path(), "ls-files")
                .args(["-s", "-z"])
                .run()
                .unwrap();
            let mut index = CheckoutIndex::read(&file, format == "sha256")
                .unwrap()
                .unwrap();
            let paths: Vec<_> = index.entries().map(|entry| entry.path.to_vec()).collect();
            assert_eq!(paths[0], b"a");
            assert_eq!(index.entry(3).kind, EntryKind::Link);
            let stat = FileStat {
                changed: (1, 2),
                modified: (3, 4),
                device: 5,
                inode: 6,
                user: 7,
                group: 8,
                size: 9,
            };
            index.set_stat(0, &stat);
            fs::write(&file, index.to_bytes()).unwrap();
            let after = git(home.path(), "ls-files")
                .args(["-s", "-z"])
                .run()
                .unwrap();
            assert_eq!(before, after);
            let debug = git(home.path(), "ls-files")
                .args(["--debug", "a"])
                .run()
                .unwrap();
            let debug = String::from_utf8(debug).unwrap();
            assert!(debug.contains("mtime: 3:4"), "{debug}");
            assert!(debug.contains("size: 9"), "{debug}");
            git(home.path(), "fsck").run().unwrap();
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_git() {
        let home = repository("sha1");
        let file = home.path().join(".git/index");
        git(home.path(), "update-index")
            .args(["--index-version", "4"])
            .run()
            .unwrap();
        assert!(CheckoutIndex::read(&file, false).unwrap().is_none());
        for cut in [0, 5, 11, 40] {
            let bytes = fs::read(&file).unwrap();
            assert!(CheckoutIndex::parse(bytes[..cut].to_vec(), false).is_none());
        }
    }

    /// An index of entries with these paths, and the length that their flags say.
    fn written(paths: &[(&str, u16)]) -> Vec<u8> {
        let count = paths.len() as u32;
        let mut bytes = [&b"DIRC\0\0\0\x02"[..], &count.to_be_bytes()].concat();
        for (path, flags) in paths {
            let start = bytes.len();
            bytes.resize(start + ID + 20, 0);
            bytes[start + MODE..start + MODE + 4].copy_from_slice(&0o100_644_u32.to_be_bytes());
            bytes.extend(flags.to_be_bytes());
            bytes.extend(path.bytes());
            let padded = (bytes.len() - start + 8) & !7;
            bytes.resize(start + padded, 0);
        }
        bytes.resize(bytes.len() + 20, 0);
        bytes
    }

    #[test]
    fn an_index_that_git_would_not_write_is_refused() {
        let is_read = |bytes: Vec<u8>| CheckoutIndex::parse(bytes, false).is_some();
        assert!(is_read(written(&[("a", 1), ("d/..b", 5), ("d/c.git", 7)])));
        for (why, paths) in [
            ("not sorted", &[("b", 1), ("a", 1)][..]),
            ("twice the same", &[("a", 1), ("a", 1)]),
            ("a length that is not the path's", &[("a", 2)]),
            ("a shorter one", &[("ab", 1)]),
            ("a zero in it", &[("a\0b", 3)]),
            ("a long one of a short path", &[("a", LENGTH)]),
            ("no path", &[("", 0)]),
            ("absolute", &[("/a", 2)]),
            ("a folder", &[("a/", 2)]),
            ("a part without a name", &[("a//b", 4)]),
            ("up", &[("d/../../a", 9)]),
            ("the same folder", &[("./a", 3)]),
            ("the repository", &[(".git/config", 11)]),
            ("a repository below", &[("d/.GIT/config", 13)]),
        ] {
            assert!(!is_read(written(paths)), "{why}");
        }
        // The last entry goes on into what must be the checksum.
        let mut cut = written(&[("a", 1)]);
        cut.truncate(cut.len() - 4);
        assert!(!is_read(cut));
    }
}
