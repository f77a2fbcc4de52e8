//! What a landing changes in submodules: a gitlink is one entry, and the files behind it are written all the same.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use weald_git::Git;

use super::super::LandError;
use crate::trees::Trees;

impl Trees<'_> {
    /// Every path that differs behind the gitlinks that differ, from the top of the superproject. `place` is a repository
    /// that has both commits.
    pub(super) fn changed_in_submodules(
        &self,
        place: &Path,
        from: &str,
        to: &str,
    ) -> Result<Vec<String>, LandError> {
        let listed = Git::new(place, "diff-tree")
            .args(["-r", "-z", "--raw", "--no-abbrev", "--no-renames", from, to])
            .run()?;
        let text = String::from_utf8_lossy(&listed).into_owned();
        let mut fields = text.split('\0');
        let mut changed = Vec::new();
        while let (Some(entry), Some(path)) = (fields.next(), fields.next()) {
            let words: Vec<_> = entry.trim_start_matches(':').split(' ').collect();
            let [_, new_mode, old, new, ..] = words[..] else {
                continue;
            };
            if new_mode == GITLINK {
                let inner = self.paths_between(old, new);
                changed.extend(inner.iter().map(|inner| format!("{path}/{inner}")));
            }
        }
        Ok(changed)
    }

    /// What differs between two commits of a submodule, or all of the new one where the old one is not here. A new one that is
    /// not here was not made in the tree: it comes from where main knows the submodule, or does not land.
    fn paths_between(&self, old: &str, new: &str) -> Vec<String> {
        let common = self.place.repository().common_dir();
        let mut stores = Vec::new();
        stores_below(&common.join("modules"), 4, &mut stores);
        stores_below(&common.join("weald"), 4, &mut stores);
        let stores = std::env::join_paths(stores).unwrap_or_else(|_| OsString::new());
        let vault = self.vault();
        let run = |name: &str, args: &[&str]| {
            let git = vault.git(name).args(args);
            let listed = git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &stores).run();
            listed.ok()
        };
        let differing = ["-r", "-z", "--name-only", "--no-renames", old, new];
        let listed = run("diff-tree", &differing)
            .or_else(|| run("ls-tree", &["-r", "-z", "--name-only", new]));
        let text = String::from_utf8_lossy(&listed.unwrap_or_default()).into_owned();
        let paths = text.split('\0').filter(|path| !path.is_empty());
        paths.map(str::to_owned).collect()
    }
}

/// How git writes that an entry is a submodule's commit.
const GITLINK: &str = "160000";

/// The objects of submodules, main's and their vaults', nested ones too.
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
