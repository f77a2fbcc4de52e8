//! Going into a tree with a shell, and leaving it.

use std::path::PathBuf;

use serde::Serialize;
use weald_core::session::Session;
use weald_core::store::Durability;
use weald_core::tree::Tree;
use weald_core::tree_rules::TreeInput;

use super::remove::{RemoveRequest, Removed};
use super::view::Dirty;
use super::{TreeError, TreeView, Trees};

/// How a tree was left.
#[derive(Debug, Clone, Serialize)]
pub struct Exited {
    /// The tree.
    pub tree: Tree,
    /// `kept`, `removed` or `left`.
    pub outcome: &'static str,
    /// What a removal did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
}

impl Trees<'_> {
    /// Goes in: the target inside is refreshed, the time noted.
    pub fn enter(&self, name: Option<&str>) -> Result<TreeView, TreeError> {
        let tree = self.named(name)?;
        self.site(&tree)?;
        let view = self.look_at(tree)?;
        let tree = self.decide(&view.tree, Durability::Process, TreeInput::Entered)?;
        Ok(TreeView { tree, ..view })
    }

    /// Where a session works: in its tree, or in the main checkout. A tree that is gone is refused, never replaced.
    pub fn directory_of(&self, session: &Session) -> Result<PathBuf, TreeError> {
        match &session.tree {
            Some(name) => {
                let tree = self.named(Some(name.as_str()))?;
                Ok(self.site(&tree)?.path)
            }
            None => Ok(self.place.root()),
        }
    }

    /// Leaves a tree and keeps it; a short-lived one without changes goes.
    pub fn leave(&self, name: Option<&str>) -> Result<Exited, TreeError> {
        let view = self.look(name)?;
        let unchanged = view.dirty == Dirty::Known(false) && view.ahead == Some(0);
        if view.tree.scratch_for.is_some() && unchanged {
            return self.leave_and_remove(Some(view.tree.name.as_str()), RemoveRequest::default());
        }
        Ok(Exited {
            tree: view.tree,
            outcome: "left",
            removed: None,
        })
    }

    /// Leaves a tree and sets it aside.
    pub fn leave_and_keep(&self, name: Option<&str>) -> Result<Exited, TreeError> {
        Ok(Exited {
            tree: self.keep(name)?.tree,
            outcome: "kept",
            removed: None,
        })
    }

    /// Leaves a tree and removes it.
    pub fn leave_and_remove(
        &self,
        name: Option<&str>,
        request: RemoveRequest,
    ) -> Result<Exited, TreeError> {
        self.require_own(&self.named(name)?)?;
        let request = RemoveRequest {
            leaving: true,
            ..request
        };
        let removed = self.remove(name, &request)?;
        Ok(Exited {
            tree: removed.tree.clone(),
            outcome: "removed",
            removed: Some(removed),
        })
    }
}
