//! Whether a checkout is exactly what its index says, found by one walk over it: no git, no file is read.
//!
//! Only a yes is certain: every file that the index names is there with the very times, number, size and kind that git
//! last saw, older than the index, and there is nothing else, ignored or not. Whatever differs is left to git, which may
//! find that it is no change at all.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, openat2, statat};

use crate::checkout_index::{CheckoutIndex, EntryKind, IndexEntry};
use crate::door::{Door, STRICT};

/// Room for the names of a folder of usual size.
const NAMES: usize = 16 * 1024;

/// How many folders may lie in each other: all on the way are open at once.
const DEPTH: usize = 128;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// The ids of an empty file, of either kind.
const EMPTY: [&[u8]; 2] = [
    b"\xe6\x9d\xe2\x9b\xb2\xd1\xd6\x43\x4b\x8b\x29\xae\x77\x5a\xd8\xc2\xe4\x8c\x53\x91",
    b"\x47\x3a\x0f\x4c\x3b\xe8\xa9\x36\x81\xa2\x67\xe3\xb1\xe9\xa7\xdc\xda\x11\x85\x43\x6f\xe1\x41\xf7\x74\x91\x20\xa3\x03\x72\x18\x13",
];

impl Door {
    /// Whether the checkout behind the door is what `index` says, which was written at this second; its repository is the
    /// `.git` in it.
    pub fn is_as_indexed(&self, index: &CheckoutIndex, written: i64) -> io::Result<bool> {
        let walk = Walk { index, written };
        let mut names = vec![MaybeUninit::uninit(); NAMES];
        Ok(!index.has_marks()
            && walk.folder(&self.directory, &mut names, (0, 0), 0..index.len())?)
    }
}

/// What the index has in a folder: the place of a file, or those of all in a folder below.
enum Child {
    File(usize),
    Folder(Range<usize>),
}

struct Walk<'a> {
    index: &'a CheckoutIndex,
    written: i64,
}

impl<'a> Walk<'a> {
    /// Whether a folder, so many below the top, holds the entries at `places` and nothing else. Their paths go on in it at
    /// `start`.
    fn folder(
        &self,
        folder: &OwnedFd,
        names: &mut [MaybeUninit<u8>],
        (depth, start): (usize, usize),
        places: Range<usize>,
    ) -> io::Result<bool> {
        if depth > DEPTH {
            return Ok(false);
        }
        let children = self.children(start, places);
        let mut found = 0;
        let mut entries = RawDir::new(folder, names);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || start == 0 && name == c".git" {
                continue;
            }
            let known = children.binary_search_by_key(&name.to_bytes(), |(name, _)| *name);
            match known.map(|place| &children[place].1) {
                Ok(Child::File(place)) if self.fits(folder, name, *place) => found += 1,
                Ok(Child::Folder(_)) => found += 1,
                _ => return Ok(false),
            }
        }
        if found != children.len() {
            return Ok(false);
        }
        for (name, child) in children {
            if let Child::Folder(places) = child {
                // A link or a file in its place is not what the index says.
                let Ok(below) = openat2(folder, name, FOLDER, Mode::empty(), STRICT) else {
                    return Ok(false);
                };
                let inside = (depth + 1, start + name.len() + 1);
                if !self.folder(&below, names, inside, places)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// What the entries at `places` are to the folder that they are in, sorted by name.
    fn children(&self, start: usize, places: Range<usize>) -> Vec<(&'a [u8], Child)> {
        let mut children: Vec<(&[u8], Child)> = Vec::new();
        for place in places {
            let path = &self.index.path(place)[start..];
            let slash = path.iter().position(|byte| *byte == b'/');
            let (name, child) = match slash {
                Some(slash) => (&path[..slash], Child::Folder(place..place + 1)),
                None => (path, Child::File(place)),
            };
            match children.last_mut() {
                // Entries are sorted, so what is in one folder is together.
                Some((last, Child::Folder(places))) if slash.is_some() && *last == name => {
                    places.end = place + 1;
                }
                _ => children.push((name, child)),
            }
        }
        children.sort_unstable_by_key(|(name, _)| *name);
        children
    }

    /// Whether a file is what its entry says.
    fn fits(&self, folder: &OwnedFd, name: &CStr, place: usize) -> bool {
        let entry = self.index.entry(place);
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| is_same(&entry, &stat)) && self.is_certain(&entry)
    }

    /// Whether the entry would show a change: not if the file is as young as the index, nor if git marked it as to be read.
    fn is_certain(&self, entry: &IndexEntry<'_>) -> bool {
        entry.modified.0 < self.written && (entry.size > 0 || EMPTY.contains(&entry.id))
    }
}

/// Whether a file is the one that git saw; numbers are cut to 32 bits, as in the index.
fn is_same(entry: &IndexEntry<'_>, stat: &Stat) -> bool {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_kind = match entry.kind {
        EntryKind::File => kind == FileType::RegularFile && stat.st_mode & 0o100 == 0,
        EntryKind::Executable => kind == FileType::RegularFile && stat.st_mode & 0o100 != 0,
        EntryKind::Link => kind == FileType::Symlink,
        EntryKind::Submodule => false,
    };
    let compared = [
        (entry.modified.0 as u32, stat.st_mtime as u32),
        (entry.modified.1, stat.st_mtime_nsec as u32),
        (entry.changed.0 as u32, stat.st_ctime as u32),
        (entry.changed.1, stat.st_ctime_nsec as u32),
        (entry.inode, stat.st_ino as u32),
        (entry.size, stat.st_size as u32),
    ];
    is_kind && compared.iter().all(|(known, now)| known == now)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;

    use rustix::fs::{CWD, Timespec, Timestamps, utimensat};

    use super::*;
    use crate::Git;

    fn git(work: &Path, args: &[&str]) -> Vec<u8> {
        let git = Git::new(&work.join(".git"), args[0]).work_tree(work);
        git.args(&args[1..]).run().unwrap()
    }

    /// A checkout whose files are older than its index.
    fn checkout() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let work = home.path();
        Git::outside(work, "init").args(["-q"]).run().unwrap();
        fs::create_dir_all(work.join("a/b/c")).unwrap();
        let files = ["a.x", "a/b/c/deep", "a/b.y", "a0", "empty", ".gitignore"];
        for name in files {
            let text = match name {
                "empty" => "",
                ".gitignore" => "*.log\n",
                name => name,
            };
            fs::write(work.join(name), text).unwrap();
            age(&work.join(name));
        }
        symlink("a0", work.join("link")).unwrap();
        age(&work.join("link"));
        git(work, &["add", "."]);
        home
    }

    fn age(file: &Path) {
        let time = Timespec {
            tv_sec: 1_700_000_000,
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        utimensat(CWD, file, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    fn is_clean(work: &Path) -> bool {
        let file = work.join(".git/index");
        let written = fs::metadata(&file).unwrap().mtime();
        let index = CheckoutIndex::read(&file, false).unwrap();
        let door = Door::open(work).unwrap();
        index.is_some_and(|index| door.is_as_indexed(&index, written).unwrap())
    }

    #[test]
    fn every_change_shows_in_a_walk_whatever_git_says() {
        type Change = (&'static str, fn(&Path));
        let changes: [Change; 13] = [
            ("a new file", |work| {
                fs::write(work.join("new"), "").unwrap()
            }),
            ("an ignored file", |work| {
                fs::write(work.join("a/b/x.log"), "").unwrap();
            }),
            ("an empty folder", |work| {
                fs::create_dir(work.join("a/d")).unwrap()
            }),
            ("a repository below", |work| {
                fs::create_dir(work.join("a/.git")).unwrap();
            }),
            ("a file is gone", |work| {
                fs::remove_file(work.join("a/b/c/deep")).unwrap();
            }),
            ("a folder is gone", |work| {
                fs::remove_dir_all(work.join("a/b")).unwrap();
            }),
            ("other bytes at the old time", |work| {
                fs::write(work.join("a0"), "b0").unwrap();
                age(&work.join("a0"));
            }),
            ("a mode", |work| {
                let mode = Permissions::from_mode(0o755);
                fs::set_permissions(work.join("a.x"), mode).unwrap();
            }),
            ("a link to elsewhere", |work| {
                fs::remove_file(work.join("link")).unwrap();
                symlink("a.x", work.join("link")).unwrap();
            }),
            ("a link instead of a folder", |work| {
                fs::rename(work.join("a"), work.with_extension("moved")).unwrap();
                symlink(work.with_extension("moved"), work.join("a")).unwrap();
            }),
            ("a folder instead of a file", |work| {
                fs::remove_file(work.join("a0")).unwrap();
                fs::create_dir(work.join("a0")).unwrap();
            }),
            ("a mark", |work| {
                drop(git(work, &["update-index", "--assume-unchanged", "a0"]));
            }),
            ("an index as old as a file", |work| {
                let written = fs::metadata(work.join(".git/index")).unwrap();
                let file = File::open(work.join("a0")).unwrap();
                file.set_modified(written.modified().unwrap()).unwrap();
                git(work, &["update-index", "--refresh"]);
                let index = File::options().write(true).open(work.join(".git/index"));
                let time = written.modified().unwrap();
                index.unwrap().set_modified(time).unwrap();
            }),
        ];
        for (what, change) in changes {
            let home = checkout();
            assert!(is_clean(home.path()), "before {what}");
            change(home.path());
            assert!(!is_clean(home.path()), "{what}");
        }
    }

    #[test]
    fn folders_without_end_are_left_to_git() {
        for (depth, expected) in [(DEPTH, true), (DEPTH + 1, false)] {
            let home = checkout();
            let deep = home.path().join("f/".repeat(depth));
            fs::create_dir_all(&deep).unwrap();
            fs::write(deep.join("file"), "text").unwrap();
            age(&deep.join("file"));
            git(home.path(), &["add", "."]);
            assert_eq!(is_clean(home.path()), expected, "{depth}");
        }
    }

    #[test]
    fn an_index_knows_the_tree_that_it_makes() {
        let home = checkout();
        let index = || CheckoutIndex::read(&home.path().join(".git/index"), false);
        assert_eq!(index().unwrap().unwrap().tree(), None);
        let tree = git(home.path(), &["write-tree"]);
        let tree = String::from_utf8(tree).unwrap().trim_end().to_owned();
        assert_eq!(index().unwrap().unwrap().tree(), Some(tree));
        fs::write(home.path().join("a/more"), "more").unwrap();
        git(home.path(), &["add", "a/more"]);
        assert_eq!(index().unwrap().unwrap().tree(), None);
    }
}
