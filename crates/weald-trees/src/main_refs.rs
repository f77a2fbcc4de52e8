//! Changes to refs of main.

use weald_git::{GitError, RefChange, update_refs};

use super::{TreeError, Trees};
use std::sync::Arc;

impl Trees<'_> {
    /// The same trees, with main's refs read once for all of them.
    pub fn with_refs_of_now(&self) -> Result<Trees<'_>, TreeError> {
        Ok(Trees {
            engine: self.engine,
            place: self.place,
            config: self.config,
            target: self.target.clone(),
            host: self.host.clone(),
            known_refs: Some(self.main_refs()?),
            known_trees: Arc::clone(&self.known_trees),
            known_keeper: self.known_keeper.clone(),
            chores: Default::default(),
            wishes: self.wishes.clone(),
        })
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
        let main = self.place.repository().common_dir();
        self.change_main(|| update_refs(main, changes, why))
    }
}
