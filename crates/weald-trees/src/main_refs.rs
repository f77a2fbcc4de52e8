//! Changes to refs of main.

use weald_git::{GitError, RefChange, update_refs};

use super::Trees;

impl Trees<'_> {
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
        let main = self.place.repository().common_dir();
        self.change_main(|| update_refs(main, changes, why))
    }
}
