//! Where directories of trees are now, by what they are. Each folder is read once, however many trees are missing.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use weald_core::tree::{DirectoryIdentity, Tree};

use weald_trees::Trees;
use weald_trees::building::building;
use weald_trees::identity_of;

/// How many entries of a folder are looked at.
const ENTRIES: usize = 10_000;

/// Folders that were read.
pub(crate) struct Whereabouts {
    places: Vec<PathBuf>,
    folders: Mutex<HashMap<PathBuf, HashMap<DirectoryIdentity, PathBuf>>>,
}

impl Whereabouts {
    /// `places` are further directories in which moved trees may be.
    pub(crate) fn new(places: &[PathBuf]) -> Self {
        Self {
            places: places.to_vec(),
            folders: Mutex::default(),
        }
    }

    /// Where a tree's directory is now.
    pub(crate) fn of(&self, trees: &Trees<'_>, tree: &Tree) -> Option<PathBuf> {
        let identity = tree.identity?;
        let name = tree.path.file_name()?;
        let root_name = tree.path.parent()?.file_name()?;
        let main = trees.place.root();
        let beside = main.parent().map(|parent| parent.join(root_name));
        let mut candidates = vec![main.join(root_name).join(name)];
        candidates.extend(beside.iter().map(|root| root.join(name)));
        for place in &self.places {
            candidates.extend([place.clone(), place.join(name)]);
        }
        let is_it = |path: &PathBuf| identity_of(path).ok() == Some(identity);
        // One that is being made again is not moved, only not done.
        let unfinished = building(tree);
        let found = candidates.into_iter().find(is_it);
        let above = tree.path.ancestors().skip(1).take(2).map(Path::to_owned);
        let mut folders = above.chain(main.parent().map(Path::to_owned)).chain(beside);
        let found = found.or_else(|| folders.find_map(|folder| self.in_folder(folder, identity)));
        found
            .filter(|path| *path != unfinished)?
            .canonicalize()
            .ok()
    }

    fn in_folder(&self, folder: PathBuf, identity: DirectoryIdentity) -> Option<PathBuf> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = folders
            .entry(folder)
            .or_insert_with_key(|folder| read(folder));
        entries.get(&identity).cloned()
    }
}

fn read(folder: &Path) -> HashMap<DirectoryIdentity, PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).take(ENTRIES);
    paths
        .filter_map(|path| Some((identity_of(&path).ok()?, path)))
        .collect()
}
