//! Setting a tree aside.

use weald_core::landing::LandingStatus;
use weald_core::store::Durability;
use weald_core::tree_rules::TreeInput;

use super::{TreeError, TreeView, Trees};

impl Trees<'_> {
    /// Sets a tree aside: no clean-up takes it.
    pub fn keep(&self, name: Option<&str>) -> Result<TreeView, TreeError> {
        self.require_own(&self.named(name)?)?;
        let view = self.look(name)?;
        let tree = self.decide(&view.tree, Durability::Process, TreeInput::Keep)?;
        Ok(TreeView { tree, ..view })
    }

    /// Takes that back: clean-up may take it again.
    pub fn unkeep(&self, name: Option<&str>) -> Result<TreeView, TreeError> {
        let tree = self.named(name)?;
        self.require_own(&tree)?;
        let all = self.engine.look(|tx| tx.landings_of(&tree.name))?;
        let landed = all.iter().any(|one| {
            one.tree_id == tree.id
                && one.status == LandingStatus::Landed
                && one.reverts.is_none()
                && one.reverted_by.is_none()
        });
        let tree = self.decide(&tree, Durability::Process, TreeInput::Unkeep { landed })?;
        Ok(self.view(tree))
    }
}
