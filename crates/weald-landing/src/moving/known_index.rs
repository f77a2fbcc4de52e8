//! The checkout's index, read without git: it tells whether the files that a landing touches are as git last saw them.
//!
//! Only a yes counts, and it is stricter than git's own: times to the nanosecond, nothing as young as the index. Whatever
//! is odd (a format, a conflict, a sparse entry, a file that was written since) is for git to look at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weald_git::{CheckoutIndex, EntryKind, IndexEntry};

use super::folder::{Folder, Stamp, ancestors};
use super::plan::{Action, Plan};
use super::touched::{Side, Touched};

/// How exact the times of a file system are that knows no parts of a second.
const COARSE: i64 = 2;

/// An index of the plain kind.
pub(super) struct KnownIndex {
    entries: CheckoutIndex,
    /// When it was written.
    written: (i64, i64),
}

impl KnownIndex {
    /// Reads an index; `None` if there is none, or it is not of the plain kind.
    pub(super) fn read(path: &Path, is_sha256: bool) -> io::Result<Option<Self>> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let found = file.metadata()?;
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
        file.read_to_end(&mut bytes)?;
        let entries = CheckoutIndex::parse(bytes, is_sha256);
        Ok(entries.map(|entries| Self {
            entries,
            written: (found.mtime(), found.mtime_nsec()),
        }))
    }

    /// Whether index and files hold what the landing starts from, wherever it touches them. False says nothing.
    pub(super) fn is_clean(&self, touched: &[Touched], seen: &BTreeMap<Vec<u8>, Stamp>) -> bool {
        let paths: BTreeSet<&[u8]> = touched.iter().map(|one| one.path.as_slice()).collect();
        touched.iter().all(|one| {
            let entry = self.entries.find(&one.path).ok();
            match (entry, &one.old) {
                (Some(place), Some(old)) => {
                    self.is_unchanged(&self.entries.entry(place), old, seen.get(&one.path))
                }
                (None, None) => self.is_free(&one.path, &paths),
                _ => false,
            }
        })
    }

    pub(super) fn into_entries(self) -> CheckoutIndex {
        self.entries
    }

    fn is_unchanged(&self, entry: &IndexEntry<'_>, old: &Side, file: Option<&Stamp>) -> bool {
        if entry.is_absent || mode_of(entry.kind) != old.mode || hex::encode(entry.id) != old.id {
            return false;
        }
        match (entry.kind, file) {
            (EntryKind::Submodule, _) => true,
            (_, Some(file)) => is_as_seen(entry, file) && !self.is_young(entry),
            (_, None) => false,
        }
    }

    /// Whether a file may have been written again without a trace: it is no older than the index.
    fn is_young(&self, entry: &IndexEntry<'_>) -> bool {
        let (seconds, parts) = entry.modified;
        match parts {
            0 => seconds + COARSE >= self.written.0,
            _ => (seconds, i64::from(parts)) >= self.written,
        }
    }

    /// Whether the index has nothing above or below a path, but for what the landing touches, too.
    fn is_free(&self, path: &[u8], touched: &BTreeSet<&[u8]>) -> bool {
        let is_known = |above: &[u8]| self.entries.find(above).is_ok();
        let below = [path, b"/"].concat();
        let first = self.entries.find(&below).unwrap_or_else(|place| place);
        let rest = (first..self.entries.len()).map(|place| self.entries.entry(place).path);
        ancestors(path).all(|above| touched.contains(above) || !is_known(above))
            && rest
                .take_while(|other| other.starts_with(&below))
                .all(|other| touched.contains(other))
    }
}

fn mode_of(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "100644",
        EntryKind::Executable => "100755",
        EntryKind::Link => "120000",
        EntryKind::Submodule => "160000",
    }
}

/// Whether a file is what the index says of it. An entry without a size is one that git wants to be read.
fn is_as_seen(entry: &IndexEntry<'_>, file: &Stamp) -> bool {
    let is_kind = match file.mode & 0o170_000 {
        0o120_000 => entry.kind == EntryKind::Link,
        0o100_000 if file.mode & 0o100 == 0 => entry.kind == EntryKind::File,
        0o100_000 => entry.kind == EntryKind::Executable,
        _ => false,
    };
    let cut = |(seconds, parts): (i64, u64)| (seconds as u32, parts as u32);
    let known = |(seconds, parts): (i64, u32)| (seconds as u32, parts);
    is_kind
        && entry.size != 0
        && entry.size == file.size as u32
        && entry.inode == file.inode as u32
        && known(entry.modified) == cut(file.modified)
        && known(entry.changed) == cut(file.changed)
}

/// Brings the stat data of swapped files up to date in a new index. False if that is for git to do; nothing is written then.
pub(super) fn note_swapped(
    index: &Path,
    is_sha256: bool,
    checkout: &Folder,
    plan: &Plan,
) -> io::Result<bool> {
    let Some(mut entries) = CheckoutIndex::read(index, is_sha256)? else {
        return Ok(false);
    };
    for entry in &plan.entries {
        let (Action::Change { new, .. } | Action::Add { new }) = &entry.action else {
            continue;
        };
        let path = &entry.path.0;
        let (Ok(place), Some((stamp, stat))) = (entries.find(path), checkout.look(path)?) else {
            return Ok(false);
        };
        // One that somebody may have written since, even within the same tick of the clock, has to be read.
        if !stamp.is_same_file(new) || stamp.changed <= stamp.modified {
            return Ok(false);
        }
        entries.set_stat(place, &stat);
    }
    std::fs::write(index, entries.to_bytes())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    use weald_git::Git;

    use super::super::touched::stamps;
    use super::*;

    const FILES: [&str; 4] = ["a", "d/b", "d/c", "run"];

    struct Field {
        home: tempfile::TempDir,
    }

    impl Field {
        /// Files in an index that is a little younger than they are.
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let field = Self { home };
            Git::outside(&field.at(""), "init")
                .args(["-q", "."])
                .run()
                .unwrap();
            fs::create_dir(field.at("d")).unwrap();
            for file in FILES {
                fs::write(field.at(file), file).unwrap();
            }
            field.git("add", &["."]);
            field.age(Duration::ZERO);
            field
        }

        fn at(&self, path: &str) -> PathBuf {
            self.home.path().join(path)
        }

        fn git(&self, name: &str, args: &[&str]) -> String {
            let git = Git::new(&self.at(".git"), name).work_tree(&self.at(""));
            String::from_utf8(git.args(args).run().unwrap()).unwrap()
        }

        /// Makes the index a second younger than what was written last, and `less`.
        fn age(&self, less: Duration) {
            let index = File::options().write(true).open(self.at(".git/index"));
            let mark = self.at(".git/mark");
            fs::write(&mark, "").unwrap();
            let now = mark.metadata().unwrap().modified().unwrap();
            let time = now + Duration::from_secs(1) - less;
            index.unwrap().set_modified(time).unwrap();
        }

        fn side(&self, path: &str) -> Option<Side> {
            let listed = self.git("ls-files", &["-s", path]);
            let mut words = listed.split_whitespace();
            let mode = words.next()?.to_owned();
            let id = words.next()?.to_owned();
            Some(Side { mode, id })
        }

        fn is_clean(&self, touched: &[Touched]) -> bool {
            let folder = Folder::open(&self.at("")).unwrap();
            let seen = stamps(&folder, touched).unwrap();
            let known = KnownIndex::read(&self.at(".git/index"), false).unwrap();
            known.is_some_and(|known| known.is_clean(touched, &seen))
        }
    }

    fn touched(path: &str, old: Option<Side>) -> Touched {
        Touched {
            path: path.into(),
            old,
            new: None,
        }
    }

    #[test]
    fn m7_the_index_alone_tells_that_nothing_was_changed() {
        let field = Field::new();
        let all: Vec<_> = FILES.map(|path| touched(path, field.side(path))).into();
        assert!(field.is_clean(&all));
        // As young as the files: somebody may have written them since.
        field.age(Duration::from_secs(60));
        assert!(!field.is_clean(&all));
        field.age(Duration::ZERO);
        // What is new must be free, for files and for folders.
        for (path, is_free) in [("e", true), ("d/e", true), ("a/b", false), ("d", false)] {
            assert_eq!(field.is_clean(&[touched(path, None)]), is_free, "{path}");
        }
        let folder = ["d/b", "d/c"].map(|path| touched(path, field.side(path)));
        let replaced = [&folder[..], &[touched("d", None)]].concat();
        assert!(field.is_clean(&replaced));
    }

    #[test]
    fn m7_whatever_changed_is_for_git_to_look_at() {
        type Change = (&'static str, &'static dyn Fn(&Field));
        let changes: [Change; 7] = [
            ("content", &|field| fs::write(field.at("a"), "b").unwrap()),
            ("gone", &|field| fs::remove_file(field.at("a")).unwrap()),
            ("a link", &|field| {
                fs::remove_file(field.at("a")).unwrap();
                std::os::unix::fs::symlink("x", field.at("a")).unwrap();
            }),
            ("mode", &|field| {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(field.at("a"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("time kept", &|field| {
                let time = field.at("a").metadata().unwrap().modified().unwrap();
                fs::write(field.at("a"), "b").unwrap();
                let file = File::options().write(true).open(field.at("a"));
                file.unwrap().set_modified(time).unwrap();
            }),
            ("staged", &|field| {
                fs::write(field.at("a"), "b").unwrap();
                field.git("add", &["a"]);
                field.age(Duration::ZERO);
            }),
            ("taken out", &|field| {
                field.git("rm", &["-q", "--cached", "a"]);
                field.age(Duration::ZERO);
            }),
        ];
        for (what, change) in changes {
            let field = Field::new();
            let one = [touched("a", field.side("a"))];
            assert!(field.is_clean(&one), "{what}");
            change(&field);
            assert!(!field.is_clean(&one), "{what}");
        }
    }
}
