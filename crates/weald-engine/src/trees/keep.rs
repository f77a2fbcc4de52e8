//! Setting a tree aside, and locking it.

use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeLock};
use weald_core::tree_rules::TreeInput;

use super::building::locked_text;
use super::{TreeError, TreeView, Trees, at};

/// What git shows as the reason of the lock that every sealed tree has.
pub(crate) const SEALED: &str = "sealed by weald";

impl Trees<'_> {
    /// Sets a tree aside: no clean-up takes it.
    pub fn keep(&self, name: Option<&str>) -> Result<TreeView, TreeError> {
        let view = self.look(name)?;
        let tree = self.decide(&view.tree, Durability::Process, TreeInput::Keep)?;
        Ok(TreeView { tree, ..view })
    }

    /// Locks a tree: nobody removes it.
    pub fn lock(&self, name: Option<&str>, reason: &str) -> Result<Tree, TreeError> {
        let tree = self.named(name)?;
        let lock = TreeLock {
            owner: self
                .actor()
                .map_or("somebody".to_owned(), ToString::to_string),
            reason: reason.to_owned(),
        };
        let tree = self.decide(&tree, Durability::Process, TreeInput::Lock(lock))?;
        self.show_lock(&tree)?;
        Ok(tree)
    }

    /// Takes the lock away.
    pub fn unlock(&self, name: Option<&str>) -> Result<Tree, TreeError> {
        let tree = self.named(name)?;
        let tree = self.decide(&tree, Durability::Process, TreeInput::Unlock)?;
        self.show_lock(&tree)?;
        Ok(tree)
    }

    /// Lets git show the lock.
    pub(crate) fn show_lock(&self, tree: &Tree) -> Result<(), TreeError> {
        let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
        let registrations = self.registrations();
        let text = locked_text(tree);
        registrations
            .set_locked(name, text.as_deref())
            .map_err(at(&registrations.directory(name)))
    }
}
