//! Large files of Git LFS that a landing brings: main has their content, or nothing lands.
//!
//! An import takes over what the tree has. What is missing after that may only be with a remote, if the same pointer came
//! from one or was on the target before.

use std::collections::{BTreeMap, BTreeSet};

use weald_core::tree::Tree;
use weald_git::{LargeFile, list_pointers};

use super::LandError;
use crate::Landings;
use crate::refusal::Refusal;

/// How many damaged copies a hint names.
const NAMED: usize = 4;

impl Landings<'_> {
    /// Refuses a candidate with pointers to content that nobody has.
    pub(crate) fn require_large_files(
        &self,
        tree: &Tree,
        onto: &str,
        candidate: &str,
    ) -> Result<(), LandError> {
        let repository = self.trees.place.repository();
        let vault = self.trees.vault();
        let range = format!("{candidate}\n^{onto}\n");
        let mut missing = list_pointers(|name| vault.git(name), &range)?;
        if !missing.is_empty() {
            let store = self.trees.large_files_of(repository.common_dir())?;
            missing.retain(|_, file| !store.holds(file));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let known = repository
            .git("rev-list")
            .args(["--objects", "--no-object-names", "--remotes", onto])
            .run()?;
        let known = String::from_utf8_lossy(&known);
        let known: BTreeSet<&str> = known.lines().collect();
        missing.retain(|blob, _| !known.contains(blob.as_str()));
        let paths = self.pointer_paths(candidate, &missing)?;
        if paths.is_empty() {
            return Ok(());
        }
        // A copy of the right length would be taken for whole, so damaged ones go first.
        let places = missing.values().take(NAMED);
        let places = places.map(|file| format!(".git/lfs/{} ", file.place()));
        Err(Refusal::LargeFileMissing(tree.name.clone(), paths, places.collect()).into())
    }

    /// The files of a commit that are such pointers, and that git-lfs fills.
    fn pointer_paths(
        &self,
        commit: &str,
        pointers: &BTreeMap<String, LargeFile>,
    ) -> Result<Vec<String>, LandError> {
        if pointers.is_empty() {
            return Ok(Vec::new());
        }
        let vault = self.trees.vault();
        let listed = vault.git("ls-tree").args(["-r", "-z", commit]).run()?;
        let mut paths = Vec::new();
        for line in listed.split(|byte| *byte == 0) {
            let line = String::from_utf8_lossy(line);
            let Some((entry, path)) = line.split_once('\t') else {
                continue;
            };
            if entry
                .rsplit(' ')
                .next()
                .is_some_and(|id| pointers.contains_key(id))
            {
                paths.push(path.to_owned());
            }
        }
        let answer = vault
            .git("check-attr")
            .args(["-z", "--stdin", "--source", commit, "filter"])
            .input(paths.join("\0"))
            .run()?;
        let answer = String::from_utf8_lossy(&answer);
        let fields: Vec<_> = answer.split('\0').collect();
        let filled = fields.chunks_exact(3).filter(|fields| fields[2] == "lfs");
        Ok(filled.map(|fields| fields[0].to_owned()).collect())
    }
}
