//! The directory of a tree, known again before anything is done to it: it is the one on record, and of this repository.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weald_control::marker;
use weald_core::tree::{DirectoryIdentity, Tree, TreeKind};
use weald_git::{Door, born, device};

use super::{TreeError, Trees, at};

/// A tree's directory and repository, as the host's own record has them.
#[derive(Debug, Clone)]
pub struct Site {
    pub path: PathBuf,
    /// The repository in it, or its registration in main.
    pub git_dir: PathBuf,
    pub kind: TreeKind,
}

impl Site {
    /// Of a directory that has its repository in it.
    pub fn sealed(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            git_dir: path.join(".git"),
            kind: TreeKind::Sealed,
        }
    }
}

impl Trees<'_> {
    /// Refuses a tree that belongs to another repository.
    pub fn require_ours(&self, tree: &Tree) -> Result<(), TreeError> {
        let of_another = |repository: PathBuf| TreeError::OfAnother {
            name: tree.name.clone(),
            path: tree.path.clone(),
            repository,
        };
        if let Some(copy) = &self.engine.copy_of {
            let unknown = || PathBuf::from("an unknown place");
            return Err(of_another(copy.original.clone().unwrap_or_else(unknown)));
        }
        let here = self.common_dir();
        match marker::other_owner(&tree.path, self.host.state.as_deref(), here) {
            Some(other) => Err(of_another(other)),
            None => Ok(()),
        }
    }

    /// The tree's directory, if it is still the one that was made; a replaced or vanished one is refused.
    pub fn site(&self, tree: &Tree) -> Result<Site, TreeError> {
        self.opened(tree).map(|(site, _)| site)
    }

    /// The tree's directory, with the door that it was seen through.
    pub fn opened(&self, tree: &Tree) -> Result<(Site, Door), TreeError> {
        self.require_ours(tree)?;
        let found = match Door::open(&tree.path) {
            Ok(door) => door,
            Err(_) if tree.path.symlink_metadata().is_err() => {
                return Err(TreeError::Missing {
                    name: tree.name.clone(),
                    path: tree.path.clone(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let path = tree.path.display();
                return Err(TreeError::unreadable(
                    &tree.name,
                    format!("{path} can't be opened ({error}); chmod u+rwx {path}"),
                ));
            }
            Err(error) => {
                let why = format!("it is not a directory ({error})");
                return Err(TreeError::replaced(tree, &tree.path, why));
            }
        };
        if let Some(identity) = tree.identity
            && !self.is_known(tree, identity, &found)
        {
            let why = "another directory took its place";
            return Err(TreeError::replaced(tree, &tree.path, why));
        }
        let site = match tree.kind {
            TreeKind::Sealed => Site::sealed(&tree.path),
            TreeKind::Linked => Site {
                path: tree.path.clone(),
                git_dir: self.registrations().directory(tree.registration_name()),
                kind: tree.kind,
            },
        };
        let is_whole = match tree.kind {
            TreeKind::Sealed => found.has_directory(".git/objects"),
            TreeKind::Linked => {
                let pointer = found.read(".git", 64 * 1024).unwrap_or_default();
                leads_to(&tree.path, &pointer, &site.git_dir)
            }
        };
        match is_whole {
            true => Ok((site, found)),
            false => Err(TreeError::Damaged {
                name: tree.name.clone(),
                path: tree.path.clone(),
                why: "its .git is missing or replaced".to_owned(),
            }),
        }
    }

    /// Whether a directory is the one on record. Where the file system has no birth times and only the device number
    /// differs, the tree also has to borrow from this vault, or lead to its registration here.
    fn is_known(&self, tree: &Tree, identity: DirectoryIdentity, found: &Door) -> bool {
        let (device, inode, born) = found.identity();
        let here = DirectoryIdentity {
            device,
            inode,
            born,
        };
        let is_timeless = identity.born.is_none() && born.is_none() && identity.inode == inode;
        here == identity || (is_timeless && self.leads_here(tree, &tree.path, found))
    }

    /// Whether what is at `path`, seen through `door`, says itself that it is this tree: it borrows from this vault, or
    /// its `.git` leads to its registration. An agent can forge that, so it proves nothing alone.
    pub fn leads_here(&self, tree: &Tree, path: &Path, door: &Door) -> bool {
        match tree.kind {
            TreeKind::Sealed => {
                door.has_directory(".git/objects") && self.is_borrower(path, &tree.path)
            }
            TreeKind::Linked => {
                let name = tree.registration_name();
                let pointer = door.read(".git", 64 * 1024).unwrap_or_default();
                leads_to(path, &pointer, &self.registrations().directory(name))
            }
        }
    }

    /// What took a tree's place is nothing to be kept, locked or shown as the tree.
    pub(crate) fn refuse_replaced(&self, tree: &Tree) -> Result<(), TreeError> {
        match self.opened(tree) {
            Err(error @ TreeError::Replaced { .. }) => Err(error),
            _ => Ok(()),
        }
    }
}

/// A directory, to know it again.
pub fn identity_of(path: &Path) -> Result<DirectoryIdentity, TreeError> {
    let found = path.symlink_metadata().map_err(at(path))?;
    Ok(DirectoryIdentity {
        device: device(path, &found),
        inode: found.ino(),
        born: born(&found),
    })
}

/// What the `.git` of a linked tree says.
pub(crate) fn pointer_text(git_dir: &Path) -> String {
    format!("gitdir: {}\n", git_dir.display())
}

/// Whether the `.git` of the linked tree at `path` says `git_dir`, perhaps relative to itself or by another way there.
pub fn leads_to(path: &Path, pointer: &[u8], git_dir: &Path) -> bool {
    let pointer = pointer.trim_ascii_end();
    if pointer == pointer_text(git_dir).trim_ascii_end().as_bytes() {
        return true;
    }
    let Some(said) = pointer.strip_prefix(b"gitdir: ") else {
        return false;
    };
    let said = path.join(OsStr::from_bytes(said));
    matches!((said.canonicalize(), git_dir.canonicalize()), (Ok(said), Ok(real)) if said == real)
}
