//! Whether anything in a tree changed since the last look, told from times and sizes alone: no git, nothing is read.
//!
//! A fingerprint is a sum over every file, in any order. It says nothing about files that changed just now, because they
//! could change again within the same tick of the clock: then there is none, and the next look is a whole one.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Access, InsideError, Job, Workplace};
use crate::untrusted::Reply;

/// Trees with more files are always looked at as a whole.
const MANY: usize = 100_000;

/// What in a repository tells that it changed.
const REPOSITORY: [&str; 12] = [
    "HEAD",
    "index",
    "packed-refs",
    "reftable/tables.list",
    "config",
    "info/exclude",
    "logs/HEAD",
    "logs/refs/stash",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
];

/// What a tree was when it was last kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Unless {
    pub like: Option<String>,
    /// What was ignored then.
    pub ignored: Vec<String>,
    /// What changed at this time or later, in nanoseconds, may change again without it showing.
    pub settled_before: i64,
}

/// Says whether anything changed, as cheaply as can be.
#[derive(Serialize, Deserialize)]
pub struct Fingerprint(pub Unless);

/// What the times and sizes of all files come to; `None` if that is not certain.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FingerprintReply(pub Option<u64>);

impl Job for Fingerprint {
    type Reply = FingerprintReply;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<FingerprintReply, InsideError> {
        let fingerprint = at.walk(&self.0).fingerprint(&[], &self.0);
        Ok(FingerprintReply(fingerprint))
    }
}

impl Reply for FingerprintReply {
    fn checked(self) -> Option<Self> {
        Some(self)
    }
}

/// Every file of a tree with what its times and size say.
pub(super) struct Walk(Option<Vec<(Vec<u8>, Stamp)>>);

struct Stamp {
    hash: u64,
    changed: i64,
}

impl Workplace {
    /// Walks the tree, but not into what was ignored the last time.
    pub(super) fn walk(&self, unless: &Unless) -> Walk {
        let skipped: HashSet<&[u8]> = unless.ignored.iter().map(String::as_bytes).collect();
        let mut found = Vec::new();
        for name in REPOSITORY {
            let path = self.git_dir.join(name);
            // A name that no file in the tree has.
            note(&mut found, &path, [b".git/", name.as_bytes()].concat());
        }
        let refs = self.git_dir.join("refs");
        let whole = enter(&mut found, &refs, b".git/refs/", &HashSet::new())
            && enter(&mut found, &self.work_tree, b"", &skipped);
        Walk(whole.then_some(found))
    }
}

impl Walk {
    /// The sum, without what is ignored; `None` if it would not be certain.
    pub(super) fn fingerprint(&self, ignored: &[Vec<u8>], unless: &Unless) -> Option<u64> {
        let ignored: HashSet<&[u8]> = ignored.iter().map(Vec::as_slice).collect();
        let is_ignored = |path: &[u8]| {
            let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            ignored.contains(path)
                || above
                    .into_iter()
                    .any(|(end, _)| ignored.contains(&path[..=end]))
        };
        let mut sum = 0_u64;
        for (_, stamp) in self
            .0
            .as_ref()?
            .iter()
            .filter(|(path, _)| !is_ignored(path))
        {
            if stamp.changed >= unless.settled_before {
                return None;
            }
            sum = sum.wrapping_add(stamp.hash);
        }
        Some(sum)
    }
}

/// Everything in a directory; false if it is too much or can't be read.
fn enter(
    found: &mut Vec<(Vec<u8>, Stamp)>,
    directory: &Path,
    prefix: &[u8],
    skipped: &HashSet<&[u8]>,
) -> bool {
    let Ok(entries) = fs::read_dir(directory) else {
        return prefix.starts_with(b".git/");
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name == OsStr::new(".git") {
            continue;
        }
        let path = [prefix, name.as_bytes()].concat();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_directory {
            if !skipped.contains(path.as_slice()) {
                note(found, &entry.path(), path);
            }
        } else {
            let inner = [&path[..], b"/"].concat();
            if !skipped.contains(inner.as_slice()) && !enter(found, &entry.path(), &inner, skipped)
            {
                return false;
            }
        }
        if found.len() > MANY {
            return false;
        }
    }
    true
}

fn note(found: &mut Vec<(Vec<u8>, Stamp)>, file: &Path, path: Vec<u8>) {
    if let Ok(metadata) = file.symlink_metadata() {
        let stamp = stamp(&path, &metadata);
        found.push((path, stamp));
    }
}

fn stamp(path: &[u8], found: &Metadata) -> Stamp {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    (
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    )
        .hash(&mut hasher);
    (found.size(), found.ino(), found.mode()).hash(&mut hasher);
    Stamp {
        hash: hasher.finish(),
        changed: found
            .ctime()
            .saturating_mul(1_000_000_000)
            .saturating_add(found.ctime_nsec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(root: &Path, unless: &Unless, ignored: &[&str]) -> Option<u64> {
        let at = Workplace {
            git_dir: root.join(".git"),
            work_tree: root.to_owned(),
            main: root.join(".git"),
            home: None,
            large: Default::default(),
            lent: None,
            is_own: false,
        };
        let ignored: Vec<_> = ignored
            .iter()
            .map(|path| path.as_bytes().to_vec())
            .collect();
        at.walk(unless).fingerprint(&ignored, unless)
    }

    #[test]
    fn z4_every_kind_of_change_shows_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join(".git/refs/heads")).unwrap();
        fs::create_dir_all(root.join("sub/target")).unwrap();
        for file in [".git/HEAD", "a", "sub/b", "sub/target/c", "x.log"] {
            fs::write(root.join(file), "text").unwrap();
        }
        let all = Unless {
            settled_before: i64::MAX,
            ..Unless::default()
        };
        let mut last = fingerprint(root, &all, &[]);
        assert!(last.is_some() && last == fingerprint(root, &all, &[]));
        let changes: [(&str, &dyn Fn()); 7] = [
            ("content", &|| fs::write(root.join("a"), "other").unwrap()),
            ("a new file", &|| {
                fs::write(root.join("sub/new"), "").unwrap()
            }),
            ("a name", &|| {
                fs::rename(root.join("a"), root.join("z")).unwrap()
            }),
            ("a file gone", &|| {
                fs::remove_file(root.join("sub/b")).unwrap()
            }),
            ("a ref", &|| {
                fs::write(root.join(".git/refs/heads/m"), "1").unwrap()
            }),
            ("HEAD", &|| {
                fs::write(root.join(".git/HEAD"), "ref").unwrap()
            }),
            ("the index", &|| {
                fs::write(root.join(".git/index"), "").unwrap()
            }),
        ];
        for (what, change) in changes {
            change();
            let now = fingerprint(root, &all, &[]);
            assert_ne!(now, last, "{what}");
            last = now;
        }
        // What is ignored does not count, whether it was known before the walk or after.
        let ignored = ["sub/target/", "x.log"];
        let last = fingerprint(root, &all, &ignored);
        fs::write(root.join("sub/target/more"), "").unwrap();
        fs::write(root.join("x.log"), "longer than before").unwrap();
        assert_eq!(fingerprint(root, &all, &ignored), last);
        let known = Unless {
            ignored: ignored.map(str::to_owned).to_vec(),
            ..all.clone()
        };
        assert_eq!(fingerprint(root, &known, &[]), last);
        // Nothing is certain about a file that changed after this.
        let unsettled = Unless {
            settled_before: 1,
            ..all
        };
        assert_eq!(fingerprint(root, &unsettled, &[]), None);
    }
}
