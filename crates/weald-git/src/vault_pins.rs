//! Commits that were made in the vault itself: complete there without being fed.

use std::path::Path;

use crate::process::GitError;
use crate::ref_files;
use crate::refs::{Commit, Expected, RefChange, update_refs};
use crate::vault::Vault;

impl Vault {
    /// Notes that `commit`, which was made here on top of what is here, is complete; main has it by now, too.
    pub fn pin_made(&self, commit: &str, workshop: &Path) -> Result<(), GitError> {
        let name = format!("refs/main/{commit}");
        if Commit::parse(commit).is_none() || self.path.join(&name).is_file() {
            return Ok(());
        }
        // One file: a process would cost more than all the rest of it.
        if ref_files::create(&self.path, workshop, &name, commit, "weald: landed", 0).is_ok() {
            return Ok(());
        }
        let change = RefChange {
            name,
            new: Some(commit.to_owned()),
            expected: Expected::Any,
        };
        update_refs(&self.path, &[change], "weald: landed")
    }
}
