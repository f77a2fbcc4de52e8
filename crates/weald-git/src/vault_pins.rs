//! Commits that were made in the vault itself: complete there without being fed.

use std::fs;
use std::path::Path;

use crate::process::GitError;
use crate::ref_files;
use crate::ref_name::RefName;
use crate::reference::Commit;
use crate::refs::{Expected, RefChange, update_refs};
use crate::vault::Vault;

/// From so many pins on they are put into one file.
const MANY_PINS: usize = 500;

/// What logs of the vault would say.
const HELD: &str = "weald: held";

impl Vault {
    /// Whether a commit is known to be complete here.
    pub(crate) fn is_pinned(&self, commit: &str) -> bool {
        let name = format!("refs/main/{commit}");
        // The file first: a pin that is packed meanwhile is seen twice, not never.
        self.path.join(&name).is_file()
            || ref_files::is_packed(&self.path, &name).unwrap_or_default()
    }

    /// Whether many pins are files of their own.
    pub(crate) fn has_many_pins(&self) -> bool {
        let entries = fs::read_dir(self.path.join("refs/main"));
        entries.is_ok_and(|entries| entries.count() > MANY_PINS)
    }

    /// Puts refs into one file, if there are many pins.
    pub(crate) fn pack_pins(&self) -> Result<(), GitError> {
        match self.has_many_pins() {
            true => self.git("pack-refs").args(["--all"]).run().map(drop),
            false => Ok(()),
        }
    }

    /// Notes that `commit`, which was made here on top of what is here, is complete; main has it by now, too.
    pub fn pin_made(&self, commit: &str, workshop: &Path) -> Result<(), GitError> {
        if Commit::parse(commit).is_none() || self.is_pinned(commit) {
            return Ok(());
        }
        self.hold(&format!("refs/main/{commit}"), commit, workshop)
    }

    /// Makes a ref with a name of weald's own that does not exist yet, and holds `commit`, which is known to be complete here:
    /// nobody looks whether it is. False if nothing was made and git has to be asked.
    pub fn makes_ref(&self, name: &str, commit: &str, workshop: &Path) -> bool {
        // One file: a process would cost more than all the rest of it.
        let made = |name| ref_files::create(&self.path, workshop, &name, commit, HELD, 0).is_ok();
        Commit::parse(commit).is_some() && RefName::parse(name).is_some_and(made)
    }

    /// Lets such a ref hold `commit`, whatever it held before.
    pub fn hold(&self, name: &str, commit: &str, workshop: &Path) -> Result<(), GitError> {
        if self.makes_ref(name, commit, workshop) {
            return Ok(());
        }
        let change = RefChange {
            name: name.to_owned(),
            new: Some(commit.to_owned()),
            expected: Expected::Any,
        };
        update_refs(&self.path, &[change], HELD)
    }
}
