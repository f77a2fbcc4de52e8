//! The tree of an agent that had nothing to land: it goes, unless it holds what would be missed.

use weald_core::name::TreeName;
use weald_core::objections::Objection;

use crate::trees::{RemoveRequest, TreeError, Trees};

impl Trees<'_> {
    /// Puts an unchanged tree into the trash. What it holds beside its branch, if anything, is the answer, and it stays:
    /// commits on other branches, stashes, files that nobody committed.
    pub fn leave_unchanged(&self, name: &TreeName) -> Option<String> {
        let error = self
            .remove(Some(name.as_str()), &RemoveRequest::default())
            .err()?;
        if let TreeError::Removal { objections, .. } = &error
            && objections.iter().any(is_about_work)
        {
            return Some(format!("nothing of it is on its branch, but {error}"));
        }
        self.engine.notice(format!("{name} stays: {error}"));
        None
    }
}

/// Whether it would be lost, not merely disturbed.
fn is_about_work(objection: &Objection) -> bool {
    match objection {
        Objection::Dirty { .. } | Objection::Unlanded { .. } | Objection::Unknown(_) => true,
        Objection::Running(_) | Objection::Locked(_) | Objection::Referenced(_) => false,
    }
}
