//! What nobody could give back goes aside before git writes over it: `NAME.before-restore`, `NAME.before-sync`.
//!
//! Held is what the index or a snapshot has. Of anything else at a place that will be written or removed, a file goes aside
//! as a whole, and a directory without what is held in it. Afterwards whatever found its place free again goes back.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{InsideError, Workplace};

/// Paths, relative to the tree.
pub(super) type Paths = BTreeSet<Vec<u8>>;

/// A place that will be written or removed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Relative to the tree.
    pub path: Vec<u8>,
    /// A submodule's directory stays what it is.
    pub is_module: bool,
}

/// What was moved, and what stays.
pub(super) struct Aside<'r> {
    root: &'r Path,
    suffix: &'static str,
    held: Paths,
    /// Directories that nothing is in the way of.
    open: HashSet<Vec<u8>>,
    moved: Vec<(PathBuf, PathBuf)>,
    made: Vec<PathBuf>,
}

impl<'r> Aside<'r> {
    /// Nothing yet. `held` are paths that can be had again.
    pub(super) fn new(root: &'r Path, suffix: &'static str, held: Paths) -> Self {
        Self {
            root,
            suffix,
            held,
            open: HashSet::new(),
            moved: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Makes way for everything that will be written or removed.
    pub(super) fn make_way(&mut self, places: &BTreeSet<Place>) -> io::Result<()> {
        places.iter().try_for_each(|place| self.clear(place))
    }

    fn clear(&mut self, place: &Place) -> io::Result<()> {
        let path = &place.path;
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (end, _) in ends {
            let above = &path[..end];
            if self.open.contains(above) {
                continue;
            }
            match self.full(above).symlink_metadata() {
                Ok(found) if found.is_dir() => self.open.insert(above.to_vec()),
                // A file, or a link, where a directory has to be.
                Ok(_) => return self.take(above),
                Err(_) => return Ok(()),
            };
        }
        match self.full(path).symlink_metadata() {
            Ok(found) if found.is_dir() && place.is_module => Ok(()),
            Ok(_) => self.take(path),
            Err(_) => Ok(()),
        }
    }

    fn take(&mut self, path: &[u8]) -> io::Result<()> {
        let to = free(&beside(&self.full(path), self.suffix))?;
        self.move_unheld(path, &to)
    }

    fn move_unheld(&mut self, path: &[u8], to: &Path) -> io::Result<()> {
        let from = self.full(path);
        if !from.symlink_metadata()?.is_dir() {
            return match self.held.contains(path) {
                true => Ok(()),
                false => self.rename(from, to),
            };
        }
        let names: Vec<_> = fs::read_dir(&from)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<_>>()?;
        let inside = [path, b"/"].concat();
        let first = self.held.range(inside.clone()..).next();
        if !first.is_some_and(|held| held.starts_with(&inside)) {
            return match names.is_empty() {
                true => Ok(()),
                false => self.rename(from, to),
            };
        }
        for name in names {
            self.move_unheld(&[&inside, name.as_bytes()].concat(), &to.join(&name))?;
        }
        Ok(())
    }

    fn rename(&mut self, from: PathBuf, to: &Path) -> io::Result<()> {
        let missing = to.ancestors().skip(1).take_while(|above| !above.exists());
        let missing: Vec<_> = missing.map(Path::to_owned).collect();
        for above in missing.into_iter().rev() {
            fs::create_dir(&above)?;
            self.made.push(above);
        }
        fs::rename(&from, to)?;
        self.moved.push((from, to.to_owned()));
        Ok(())
    }

    /// What found its place free goes back, what is there again is not kept twice. Answers what stays aside.
    pub(super) fn put_back(self) -> Vec<String> {
        let mut staying = Vec::new();
        for (from, to) in self.moved {
            let is_back = match from.symlink_metadata() {
                Err(_) => {
                    let parent = from.parent().map_or(Ok(()), fs::create_dir_all);
                    parent.and_then(|()| fs::rename(&to, &from)).is_ok()
                }
                Ok(_) => is_same(&from, &to) && fs::remove_file(&to).is_ok(),
            };
            if !is_back {
                let path = to.strip_prefix(self.root).unwrap_or(&to);
                staying.push(path.to_string_lossy().into_owned());
            }
        }
        for directory in self.made.iter().rev() {
            // Only where nothing stayed in it.
            let _ = fs::remove_dir(directory);
        }
        staying
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(path))
    }
}

impl Workplace {
    /// The paths of the index; apart from them those whose changes git was told not to see.
    pub(super) fn indexed(&self) -> Result<(Paths, Paths), InsideError> {
        let listed = self.git("ls-files").args(["-v", "-z"]).run()?;
        let (mut plain, mut unseen) = (BTreeSet::new(), BTreeSet::new());
        for line in lines(&listed) {
            let (Some(tag), Some(path)) = (line.first(), line.get(2..)) else {
                continue;
            };
            match tag {
                b'H' | b'M' => plain.insert(path.to_vec()),
                _ => unseen.insert(path.to_vec()),
            };
        }
        Ok((plain, unseen))
    }

    /// What a tree holds.
    pub(super) fn places_of(&self, tree: &str) -> Result<BTreeSet<Place>, InsideError> {
        let listed = self.git("ls-tree").args(["-r", "-z", tree]).run()?;
        let places = lines(&listed).filter_map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            Some(Place {
                path: line[tab + 1..].to_vec(),
                is_module: line.starts_with(b"160000"),
            })
        });
        Ok(places.collect())
    }

    /// Where two trees differ.
    pub(super) fn places_between(
        &self,
        from: &str,
        to: &str,
    ) -> Result<BTreeSet<Place>, InsideError> {
        let listed = self
            .git("diff-tree")
            .args(["-r", "-z", "--no-renames", from, to])
            .run()?;
        let mut parts = lines(&listed);
        let mut places = BTreeSet::new();
        while let (Some(meta), Some(path)) = (parts.next(), parts.next()) {
            places.insert(Place {
                path: path.to_vec(),
                is_module: meta.windows(6).take(9).any(|mode| mode == b"160000"),
            });
        }
        Ok(places)
    }
}

/// What ends with a zero byte each.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
}

/// A name with something added.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// The name, or with a number one that nobody has.
pub(super) fn free(path: &Path) -> io::Result<PathBuf> {
    (1..1000_u32)
        .map(|number| match number {
            1 => path.to_owned(),
            number => beside(path, &format!("-{number}")),
        })
        .find(|path| path.symlink_metadata().is_err())
        .ok_or_else(|| io::Error::other("too much is in the way"))
}

/// Whether two files, or two links, hold the same.
fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(first), Ok(second)) = (one.symlink_metadata(), other.symlink_metadata()) else {
        return false;
    };
    if first.is_symlink() && second.is_symlink() {
        return fs::read_link(one).ok() == fs::read_link(other).ok();
    }
    first.is_file()
        && second.is_file()
        && first.len() == second.len()
        && fs::read(one).is_ok_and(|text| fs::read(other).is_ok_and(|same| same == text))
}
