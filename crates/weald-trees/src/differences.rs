//! `weald diff`: what changed in a tree.

use super::inside::{Diff, DiffForm, DiffWork};
use super::{TreeError, Trees};

/// How much text a diff may have.
pub const TEXT_LIMIT: usize = 10 << 20;

/// What a diff starts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Against {
    /// The commit the tree started from.
    #[default]
    Base,
    /// Where the tree left the target as it is now.
    Target,
}

impl Trees<'_> {
    pub fn diff(
        &self,
        name: Option<&str>,
        against: Against,
        form: impl Into<DiffForm>,
    ) -> Result<Diff, TreeError> {
        let view = self.look(name)?;
        let tree = view.tree;
        let site = self.site(&tree)?;
        let target = match against {
            Against::Base => None,
            Against::Target => self.target_tip(&tree)?,
        };
        let job = DiffWork {
            base: tree.base.commit.clone(),
            against: target,
            form: form.into(),
            limit: TEXT_LIMIT,
        };
        self.visit(tree.name.as_str(), &site, job)
    }
}
