//! Whether an edit stays in a tree, for hooks of agents that nothing else holds there.
//!
//! A help against mistakes, not a wall: that is the sandbox. Links and `..` are followed to where they lead, by their names:
//! nothing is opened. What is decided on that is `weald_core::claude::bound`, here as inside a sandbox.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use weald_core::claude::{Bound, Readings, bound, normal};
use weald_core::tree::Tree;

use super::snapshots::SnapshotView;
use super::turns::Waited;
use super::{TreeError, Trees, at};

/// As many links as the kernel follows.
const LINKS: usize = 40;

/// What a path is, seen from a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// In the tree, or where edits are allowed besides.
    Inside,
    Outside {
        why: String,
        /// The path in the tree that was meant, where that can be told.
        meant: Option<PathBuf>,
    },
}

impl Edit {
    /// A link in the tree leads there.
    pub fn by_link(out: &Path) -> Self {
        Self::Outside {
            why: format!("a link leads it to {}", out.display()),
            meant: None,
        }
    }
}

/// Where an edit of `path` goes, seen from the tree in this folder. Nothing of it has to exist.
pub fn bound_for(path: &Path, tree: &Path, allowed: &[PathBuf]) -> io::Result<Bound> {
    let plain = normal(path);
    let readings = Readings {
        led: led(&plain)?,
        followed: led(path)?,
        plain,
    };
    // A folder that leads in a circle holds nothing.
    let allowed: Vec<_> = allowed.iter().filter_map(|own| led(own).ok()).collect();
    Ok(bound(&readings, &led(tree)?, &allowed))
}

impl Trees<'_> {
    /// The live tree in which a path is.
    pub fn tree_at(&self, path: &Path) -> Result<Option<Tree>, TreeError> {
        let live = self.records()?.into_iter().filter(Tree::is_live);
        let mut around: Vec<_> = live.filter(|tree| path.starts_with(&tree.path)).collect();
        around.sort_by_key(|tree| tree.path.as_os_str().len());
        Ok(around.pop())
    }

    /// Whether writing `path` writes in the tree, or in one of the folders `allowed`. The path is absolute.
    pub fn judge_edit(
        &self,
        tree: &Tree,
        path: &Path,
        allowed: &[PathBuf],
    ) -> Result<Edit, TreeError> {
        let site = self.site(tree)?;
        match bound_for(path, &site.path, allowed).map_err(at(path))? {
            Bound::Inside => Ok(Edit::Inside),
            Bound::ByLink(out) => Ok(Edit::by_link(&out)),
            Bound::Elsewhere(out) => self.elsewhere(tree, &out),
        }
    }

    /// What a path outside was meant to be: the same place in the tree.
    fn elsewhere(&self, tree: &Tree, path: &Path) -> Result<Edit, TreeError> {
        let main = self.place.root();
        let (why, below) = match self.tree_at(path)? {
            Some(other) => (
                format!("it is in worktree {}", other.name),
                path.strip_prefix(&other.path).ok(),
            ),
            None => match path.strip_prefix(&main) {
                Ok(below) => ("it is in the main checkout".to_owned(), Some(below)),
                Err(_) => ("it is outside the repository".to_owned(), None),
            },
        };
        let is_work = |below: &&Path| !below.starts_with(".git") && !below.as_os_str().is_empty();
        let meant = below.filter(is_work).map(|below| tree.path.join(below));
        Ok(Edit::Outside { why, meant })
    }

    /// Takes everything out of a tree that nobody else has: its commits, and a snapshot if something changed since the last.
    /// Where another process is about to do so, that is enough.
    pub fn keep_work(&self, tree: &Tree) -> Result<Option<SnapshotView>, TreeError> {
        let turns = self.snapshot_turns(tree);
        let turn = match turns.wait()? {
            Waited::Had(turn) => Some(turn),
            Waited::Overdue => None,
            Waited::Another => return Ok(None),
        };
        let kept = self.keep_in_turn(tree);
        drop(turn);
        turns.forget();
        kept
    }

    fn keep_in_turn(&self, tree: &Tree) -> Result<Option<SnapshotView>, TreeError> {
        let site = self.site(tree)?;
        let mut unless = self.unless(Vec::new())?;
        unless.like = self.numbered(tree)?.pop_last().map(|(_, commit)| commit);
        let (view, found) = self.snapshot_unless(tree, &site, "an agent stopped", Some(unless))?;
        self.remember_kept(tree, &found.look);
        Ok(view)
    }
}

/// Where a path leads: links are followed, also those to what is not there, and the rest is kept as it is.
fn led(path: &Path) -> io::Result<PathBuf> {
    let parts = |path: &Path| -> VecDeque<OsString> {
        let parts = path.components();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let (mut found, mut rest, mut links) = (PathBuf::new(), parts(path), 0);
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            found.pop();
            continue;
        }
        found.push(part);
        if let Ok(target) = found.read_link() {
            links += 1;
            if links > LINKS {
                return Err(io::Error::other("it leads in a circle"));
            }
            found.pop();
            let mut further = parts(&target);
            further.append(&mut rest);
            rest = further;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w8_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        std::os::unix::fs::symlink("/not/there", root.join("real/dangling")).unwrap();
        std::os::unix::fs::symlink("circle", root.join("circle")).unwrap();
        for (path, leads) in [
            ("link/new/file", root.join("real/new/file")),
            ("link/../x", root.join("x")),
            ("link/./dangling/a", PathBuf::from("/not/there/a")),
            ("not/there/../yet", root.join("not/yet")),
            ("real", root.join("real")),
        ] {
            assert_eq!(led(&root.join(path)).unwrap(), leads, "{path}");
        }
        assert!(led(&root.join("circle/a")).is_err());
    }
}
