//! Refs of main: what trees see of them, and changes to them.

use weald_git::{GitError, MainRef, RefChange, list_refs, update_refs};

use super::{TreeError, Trees};

impl Trees<'_> {
    /// The same trees, with main's refs read once for all of them.
    pub fn with_refs_of_now(&self) -> Result<Trees<'_>, TreeError> {
        Ok(Trees {
            known_refs: Some(self.main_refs()?),
            ..self.clone()
        })
    }

    /// Refs of main that a tree sees.
    pub fn main_refs(&self) -> Result<Vec<MainRef>, TreeError> {
        if let Some(known) = &self.known_refs {
            return Ok(known.clone());
        }
        let git_dir = self.common_dir();
        Ok(list_refs(git_dir, &["refs/remotes/", "refs/tags/"])?)
    }

    /// Changes refs of main. Refs in tables share one lock, and a stopped process that was moving the target holds it: when
    /// its lease has run out it is ended, as by whoever takes the queue over.
    pub(crate) fn change_main(
        &self,
        change: impl Fn() -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        match change() {
            Err(error) if error.says_locked() && (self.host.free_main)(self) => change(),
            changed => changed,
        }
    }

    /// The same for changes that git makes, all or none of them.
    pub(crate) fn update_main(&self, changes: &[RefChange], why: &str) -> Result<(), GitError> {
        let main = self.common_dir();
        self.change_main(|| update_refs(main, changes, why))
    }
}
