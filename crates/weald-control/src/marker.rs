//! Finding main from inside a tree.
//!
//! Not by git: inside a sealed tree git answers for the inner repository. A marker next to the trees, or an index in the
//! user's own state directory, names main; it is believed only if main's registration points back at this very directory
//! (path, device, inode). The search goes from the top down: what an agent plants lies in its tree, and the tree itself
//! is found first.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use weald_core::id::TreeId;
use weald_core::tree::DirectoryIdentity;
use weald_git::{Registration, Registrations, Repository, born, device};

use crate::files::{self, same_directory};
use crate::place::PlaceError;

/// The file next to trees.
pub const MARKER: &str = ".weald";

const LIMIT: u64 = 16 * 1024;

/// What a registration says about its tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeNote {
    pub tree: TreeId,
    #[serde(flatten)]
    pub identity: DirectoryIdentity,
}

impl TreeNote {
    /// As it is written down.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As it was written down.
    pub fn of(registration: &Registration) -> Option<Self> {
        serde_json::from_str(registration.note.as_deref()?).ok()
    }
}

/// Whether trees lie in a directory: it has a marker.
pub fn is_marked(root: &Path) -> bool {
    let found = root.join(MARKER).symlink_metadata();
    found.is_ok_and(|found| found.is_file())
}

/// FNV-1a: a name for a folder, not a secret.
pub fn hash_of(path: &Path) -> u64 {
    path.as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

/// What a search found.
pub enum Found {
    /// The start is in a tree of this repository.
    Tree {
        /// The repository: a directory that git's own discovery understands.
        main: PathBuf,
        tree: PathBuf,
    },
    Nothing,
}

/// Looks at every directory from the top down to `start`.
pub fn find(start: &Path, state: Option<&Path>) -> Result<Found, PlaceError> {
    let mut way: Vec<&Path> = start.ancestors().collect();
    way.reverse();
    for directory in way.into_iter().skip(1) {
        let Some(common_dir) = names(directory, state).into_iter().flatten().next() else {
            // A tree that was moved is still a tree, whatever its own files say.
            if let Some(common_dir) = state.and_then(|state| moved(state, directory)) {
                return Err(lost(directory, common_dir, "it was moved"));
            }
            continue;
        };
        match confirmed(&common_dir, directory) {
            Confirmed::Yes => {
                let main = match common_dir.file_name().is_some_and(|name| name == ".git") {
                    true => common_dir.parent().unwrap_or(&common_dir).to_owned(),
                    false => common_dir,
                };
                return Ok(Found::Tree {
                    main,
                    tree: directory.to_owned(),
                });
            }
            // Something else next to the trees: the trash, a plain folder.
            Confirmed::Unregistered if !has_git(directory) => {}
            Confirmed::Unregistered => {
                return Err(lost(
                    directory,
                    common_dir,
                    "its registration does not point back at it",
                ));
            }
            Confirmed::NoRepository => {
                return Err(lost(
                    directory,
                    common_dir,
                    "its repository is not where it was",
                ));
            }
        }
    }
    Ok(Found::Nothing)
}

fn has_git(directory: &Path) -> bool {
    directory.join(".git").symlink_metadata().is_ok()
}

fn lost(tree: &Path, main: PathBuf, why: &str) -> PlaceError {
    PlaceError::LostTree {
        tree: tree.to_owned(),
        why: why.to_owned(),
        main: Some(main),
    }
}

/// A repository that borrows from a vault is the inside of a tree that was moved or lost; its own state is an agent's.
pub(crate) fn refuse_inner(repository: &Repository) -> Result<(), PlaceError> {
    let alternates = repository.common_dir().join("objects/info/alternates");
    let text = files::read_small(&alternates, LIMIT)
        .ok()
        .flatten()
        .unwrap_or_default();
    let vault = Path::new("weald/vault/objects");
    let Some(line) = text.lines().find(|line| Path::new(line).ends_with(vault)) else {
        return Ok(());
    };
    let objects = repository.common_dir().join("objects").join(line);
    let main = objects
        .ancestors()
        .nth(3)
        .and_then(|main| main.canonicalize().ok());
    Err(PlaceError::LostTree {
        tree: repository
            .checkout()
            .unwrap_or(repository.common_dir())
            .to_owned(),
        why: "nothing next to it confirms that: it was moved or copied".to_owned(),
        main,
    })
}

enum Confirmed {
    Yes,
    Unregistered,
    NoRepository,
}

/// Whether the repository's registration points back at this very directory.
fn confirmed(common_dir: &Path, directory: &Path) -> Confirmed {
    use std::os::unix::fs::MetadataExt;
    if !common_dir.join("objects").is_dir() {
        return Confirmed::NoRepository;
    }
    let Ok(found) = directory.symlink_metadata() else {
        return Confirmed::Unregistered;
    };
    let registrations = Registrations::new(common_dir, &common_dir.join("weald/workshop"));
    let fits = |registration: &Registration| {
        registration.path() == Some(directory)
            && TreeNote::of(registration).is_some_and(|note| {
                note.identity
                    == DirectoryIdentity {
                        device: device(directory, &found),
                        inode: found.ino(),
                        born: born(&found),
                    }
            })
    };
    let name = directory.file_name().and_then(|name| name.to_str());
    let by_name = name.and_then(|name| registrations.read(name));
    if by_name.as_ref().is_some_and(fits) {
        return Confirmed::Yes;
    }
    match registrations.list().unwrap_or_default().iter().any(fits) {
        true => Confirmed::Yes,
        false => Confirmed::Unregistered,
    }
}

fn marker_of(root: &Path) -> Option<PathBuf> {
    let text = files::read_small(&root.join(MARKER), LIMIT).ok()??;
    text.lines().next().map(|line| root.join(line))
}

fn index_file(state: &Path, tree: &Path) -> PathBuf {
    state.join("trees").join(format!("{:016x}", hash_of(tree)))
}

fn indexed(state: &Path, tree: &Path) -> Option<PathBuf> {
    let text = files::read_small(&index_file(state, tree), LIMIT).ok()??;
    let mut lines = text.lines();
    let main = lines.next().map(PathBuf::from);
    let path = lines.next().map(PathBuf::from);
    main.filter(|_| path.as_deref() == Some(tree))
}

/// Whether a tree is said to be of the repository at `common_dir`, by the marker next to it or by the user's index.
pub fn is_named_for(tree: &Path, state: Option<&Path>, common_dir: &Path) -> bool {
    let named = names(tree, state);
    let mut named = named.into_iter().flatten();
    named.any(|named| same_directory(&named, common_dir))
}

/// Another repository than the one at `common_dir` that a tree belongs to: its registration points at this very directory.
pub fn other_owner(tree: &Path, state: Option<&Path>, common_dir: &Path) -> Option<PathBuf> {
    let marked = tree.parent().and_then(marker_of);
    // Nearly always, and enough: the user who writes the marker owns the folder.
    if marked.as_deref() == Some(common_dir) {
        return None;
    }
    let indexed = state.and_then(|state| indexed(state, tree));
    let others = marked.into_iter().chain(indexed);
    let mut others = others.filter(|other| !same_directory(other, common_dir));
    others.find(|other| matches!(confirmed(other, tree), Confirmed::Yes))
}

fn names(tree: &Path, state: Option<&Path>) -> [Option<PathBuf>; 2] {
    [
        tree.parent().and_then(marker_of),
        state.and_then(|state| indexed(state, tree)),
    ]
}

/// The repository of a directory that is a tree, wherever it is now.
fn moved(state: &Path, directory: &Path) -> Option<PathBuf> {
    // A number is given again after a deletion; the time is not.
    let born = born_text(directory)?;
    identity_files(state, directory).iter().find_map(|file| {
        let text = files::read_small(file, LIMIT).ok()??;
        let main = text.lines().next().map(PathBuf::from);
        main.filter(|_| text.lines().nth(2) == Some(&born))
    })
}

fn born_text(directory: &Path) -> Option<String> {
    let found = directory.symlink_metadata().ok()?;
    born(&found).map(|born| born.to_string())
}

/// The files of a directory in the index: by its birth time, which stays, and as earlier versions called it, by its device.
fn identity_files(state: &Path, directory: &Path) -> Vec<PathBuf> {
    let Ok(found) = directory.symlink_metadata() else {
        return Vec::new();
    };
    let number = found.ino();
    let lasting = born(&found).map(|born| format!("{number:x}-{born:x}"));
    let earlier = format!("{:x}-{number:x}", device(directory, &found));
    let names = lasting.into_iter().chain([earlier]);
    names
        .map(|name| state.join("directories").join(name))
        .collect()
}

/// Writes the marker into a folder that holds nothing but trees.
pub fn mark(root: &Path, common_dir: &Path) -> io::Result<()> {
    let file = root.join(MARKER);
    let mut text = common_dir.as_os_str().as_bytes().to_vec();
    text.push(b'\n');
    if fs::read(&file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    files::replace_bytes(&file, &text)
}

/// Puts a tree into the user's index.
pub fn index(state: &Path, tree: &Path, common_dir: &Path) -> io::Result<()> {
    fs::create_dir_all(state.join("trees"))?;
    let text = format!("{}\n{}\n", common_dir.display(), tree.display());
    files::replace(&index_file(state, tree), &text)?;
    let places = identity_files(state, tree);
    let (Some(file), Some(born)) = (places.first(), born_text(tree)) else {
        return Ok(());
    };
    fs::create_dir_all(state.join("directories"))?;
    files::replace(file, &format!("{text}{born}\n"))
}

/// Takes a tree out of the user's index.
pub fn unindex(state: &Path, tree: &Path) {
    let _ = fs::remove_file(index_file(state, tree));
}

/// Takes a directory out of it that is about to be deleted: its number will be another's.
pub fn forget(state: &Path, directory: &Path) {
    for file in identity_files(state, directory) {
        let _ = fs::remove_file(file);
    }
}

/// What weald keeps is its user's own. Another one, who may not enter it, can tell nothing about it, least of all that it is
/// broken.
pub(crate) fn refuse_foreign(repository: &Repository) -> Result<(), PlaceError> {
    let path = repository.common_dir().join("weald");
    let is_closed =
        rustix::fs::access(&path, Access::READ_OK | Access::EXEC_OK) == Err(Errno::ACCESS);
    let owner = path.symlink_metadata().map(|found| found.uid());
    match owner {
        Ok(owner) if is_closed && owner != rustix::process::geteuid().as_raw() => {
            Err(PlaceError::ForeignState { path, owner })
        }
        _ => Ok(()),
    }
}

/// weald's own folders in a repository are real: a link would lead the state elsewhere.
pub(crate) fn refuse_links(repository: &Repository) -> Result<(), PlaceError> {
    let home = repository.common_dir().join("weald");
    match [home.clone(), home.join("private")]
        .iter()
        .find(|path| path.is_symlink())
    {
        None => Ok(()),
        Some(path) => Err(PlaceError::LinkedState { path: path.clone() }),
    }
}
