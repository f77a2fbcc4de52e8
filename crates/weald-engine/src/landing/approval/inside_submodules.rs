//! What a landing changes in submodules: a gitlink is one entry, and the files behind it are written all the same.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use weald_git::Git;

use super::super::LandError;
use crate::trees::Trees;

/// A change behind a gitlink.
pub(super) struct InSubmodule {
    /// From the top of the superproject.
    pub path: String,
    /// Nobody can say what changed: the gitlink itself is meant.
    pub is_unknown: bool,
}

impl Trees<'_> {
    /// Every path that differs behind the gitlinks that differ. `place` is a repository that has both commits.
    pub(super) fn changed_in_submodules(
        &self,
        place: &Path,
        from: &str,
        to: &str,
    ) -> Result<Vec<InSubmodule>, LandError> {
        let listed = Git::new(place, "diff-tree")
            .args(["-r", "-z", "--raw", "--no-abbrev", "--no-renames", from, to])
            .run()?;
        let text = String::from_utf8_lossy(&listed).into_owned();
        let mut fields = text.split('\0');
        let mut changed = Vec::new();
        while let (Some(entry), Some(path)) = (fields.next(), fields.next()) {
            let words: Vec<_> = entry.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old, new, ..] = words[..] else {
                continue;
            };
            if new_mode != GITLINK {
                continue;
            }
            let old = (old_mode == GITLINK).then_some(old);
            match self.paths_between(old, new) {
                Some(paths) => changed.extend(paths.into_iter().map(|inner| InSubmodule {
                    path: format!("{path}/{inner}"),
                    is_unknown: false,
                })),
                None => changed.push(InSubmodule {
                    path: path.to_owned(),
                    is_unknown: true,
                }),
            }
        }
        Ok(changed)
    }

    /// What differs between two commits of a submodule, or all of a new one; `None` where they are not here.
    fn paths_between(&self, old: Option<&str>, new: &str) -> Option<Vec<String>> {
        let vault = self.vault();
        let git = match old {
            Some(old) => {
                vault
                    .git("diff-tree")
                    .args(["-r", "-z", "--name-only", "--no-renames", old, new])
            }
            None => vault.git("ls-tree").args(["-r", "-z", "--name-only", new]),
        };
        let common = self.place.repository().common_dir();
        let mut stores = Vec::new();
        stores_below(&common.join("modules"), 4, &mut stores);
        let stores = std::env::join_paths(stores).unwrap_or_else(|_| OsString::new());
        let listed = git
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", stores)
            .run()
            .ok()?;
        let text = String::from_utf8_lossy(&listed).into_owned();
        let paths = text.split('\0').filter(|path| !path.is_empty());
        Some(paths.map(str::to_owned).collect())
    }
}

/// How git writes that an entry is a submodule's commit.
const GITLINK: &str = "160000";

/// The objects of main's submodules, nested ones too.
fn stores_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let objects = entry.path().join("objects");
        match objects.is_dir() && entry.path().join("HEAD").is_file() {
            true => {
                found.push(objects);
                stores_below(&entry.path().join("modules"), depth - 1, found);
            }
            false => stores_below(&entry.path(), depth - 1, found),
        }
    }
}
