//! What is on disk of a repository's objects: directories, packs, ids.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git_files::{path_of, read_small};
use crate::process::{Git, GitError};
use crate::reference::Commit;

/// How long reading the index of a pack may take.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// The object directories of a repository: its own, and those it borrows from.
pub(crate) fn object_stores(git_dir: &Path) -> Vec<PathBuf> {
    let mut stores = vec![git_dir.join("objects")];
    let mut next = 0;
    while let Some(store) = stores.get(next).cloned() {
        next += 1;
        let Ok(text) = read_small(&store.join("info/alternates")) else {
            continue;
        };
        for line in text.split(|byte| *byte == b'\n') {
            let path = store.join(path_of(line));
            if !line.is_empty() && !line.starts_with(b"#") && !stores.contains(&path) {
                stores.push(path);
            }
        }
        if next > 16 {
            break;
        }
    }
    stores
}

/// Every pack that has an index.
pub(crate) fn packs_of(stores: &[PathBuf]) -> Vec<PathBuf> {
    let mut packs = Vec::new();
    for store in stores {
        let Ok(entries) = fs::read_dir(store.join("pack")) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "idx") {
                packs.push(path.with_extension("pack"));
            }
        }
    }
    packs.sort();
    packs
}

/// The ids in a pack.
pub(crate) fn ids_of_pack(git_dir: &Path, pack: &Path) -> Result<Vec<String>, GitError> {
    let index =
        File::open(pack.with_extension("idx")).map_err(|source| GitError::NotStarted { source })?;
    let answer = Git::new(git_dir, "show-index")
        .input_from(index)
        .limit(TIME_LIMIT)
        .run()?;
    let text = String::from_utf8_lossy(&answer);
    let ids = text.lines().filter_map(|line| line.split(' ').nth(1));
    Ok(ids.map(str::to_owned).collect())
}

/// The ids of all loose objects.
pub(crate) fn loose_objects(stores: &[PathBuf]) -> Vec<String> {
    let mut ids = Vec::new();
    for store in stores {
        for first in 0..=255_u8 {
            let prefix = format!("{first:02x}");
            let Ok(entries) = fs::read_dir(store.join(&prefix)) else {
                continue;
            };
            for entry in entries.flatten() {
                let rest = entry.file_name();
                let id = format!("{prefix}{}", rest.to_string_lossy());
                if Commit::parse(&id).is_some() {
                    ids.push(id);
                }
            }
        }
    }
    ids
}
