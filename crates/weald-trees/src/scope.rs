//! Whether a path is in a tree, and what it is called there.
//!
//! A path of the main checkout is told as the tree's own; what would leave the tree, by `..` or by a link, is refused;
//! a tree that is gone refuses everything.

use std::path::{Component, Path, PathBuf};

use weald_git::Door;

use super::{TreeError, Trees, at};

/// The longest path that the kernel takes.
const LONGEST: usize = 4096;

/// Why a path is not in the tree.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// The tree itself can't be used.
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error("{} is outside worktree {tree}: {why}", .path.display())]
    Outside {
        path: PathBuf,
        tree: String,
        why: &'static str,
    },
}

impl Trees<'_> {
    /// The path in the tree that `path` means.
    pub fn scoped(&self, name: Option<&str>, path: &Path) -> Result<PathBuf, ScopeError> {
        let tree = self.named(name)?;
        let site = self.site(&tree)?;
        let outside = |why| ScopeError::Outside {
            path: path.to_owned(),
            tree: tree.name.to_string(),
            why,
        };
        // Each part of it costs a look.
        if path.as_os_str().len() > LONGEST {
            return Err(outside("no path is that long"));
        }
        let main = self.place.root();
        let relative = match path.strip_prefix(&site.path) {
            Ok(inside) => inside,
            Err(_) if path.is_relative() => path,
            Err(_) => {
                let inside = path.strip_prefix(&main).map_err(|_| {
                    outside("it is neither in the worktree nor in the main checkout")
                })?;
                if self
                    .list()?
                    .iter()
                    .any(|other| path.starts_with(&other.tree.path))
                {
                    return Err(outside("it is in another worktree"));
                }
                inside
            }
        };
        if relative.components().next() == Some(Component::Normal(".git".as_ref()))
            && path.strip_prefix(&site.path).is_err()
            && path.is_absolute()
        {
            return Err(outside("it is in the main repository's .git"));
        }
        let door = Door::open(&site.path).map_err(at(&site.path))?;
        let mut existing = relative;
        loop {
            if existing.as_os_str().is_empty() {
                break;
            }
            match door.holds(existing) {
                Ok(true) => break,
                Ok(false) => return Err(outside("it leaves the worktree")),
                Err(_) => existing = existing.parent().unwrap_or(Path::new("")),
            }
        }
        let rest = relative.strip_prefix(existing).unwrap_or(relative);
        let plain = rest
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        match plain {
            true => Ok(site.path.join(relative)),
            false => Err(outside("it leaves the worktree")),
        }
    }
}
