//! What becomes of a removed tree's branch in main.

use serde::{Deserialize, Serialize};
use weald_core::config::BranchPolicy;
use weald_core::tree::Tree;
use weald_git::delete_branch;

use super::Verdict;
use crate::{TreeError, Trees};
use weald_control::steps::step;

/// What became of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchOutcome {
    /// It is gone; its tip is in the vault.
    Deleted,
    /// It holds what the target lacks.
    KeptUnmerged,
    /// The configuration keeps it.
    KeptByPolicy,
    Absent,
}

impl Trees<'_> {
    /// Deletes the branch in main if the policy says so and nothing is lost by it.
    pub(super) fn settle_branch(
        &self,
        tree: &Tree,
        verdict: &Verdict,
    ) -> Result<BranchOutcome, TreeError> {
        let Some(tip) = self.branch_tip(&tree.branch)? else {
            return Ok(BranchOutcome::Absent);
        };
        let judged = tree.tip();
        let is_open = verdict.is_gone || tree.diverged || verdict.unlanded > 0;
        let landed = match is_open || tip != judged {
            true => self.is_landed(tree, &tip)?,
            false => true,
        };
        let goes = match self.config.remove_branch {
            BranchPolicy::Keep => return Ok(BranchOutcome::KeptByPolicy),
            _ if tree.adopted => return Ok(BranchOutcome::KeptByPolicy),
            // A branch that was there before goes only if that was said, and if all of it has landed.
            BranchPolicy::Always if tree.foreign_branch => landed,
            _ if tree.foreign_branch => return Ok(BranchOutcome::KeptByPolicy),
            BranchPolicy::Always => true,
            BranchPolicy::IfUnchanged if tip != tree.base.commit => {
                return Ok(BranchOutcome::KeptByPolicy);
            }
            _ => landed,
        };
        if !goes {
            return Ok(BranchOutcome::KeptUnmerged);
        }
        self.require_branch_tip(tree, &tip)?;
        let kept = format!("refs/tree/{}/branch", tree.id);
        self.vault().hold(&kept, &tip, &self.workshop())?;
        step("remove.branch_kept");
        let why = format!("weald: rm {}", tree.name);
        let (workshop, branch) = (self.workshop(), &tree.branch);
        self.change_main(|| delete_branch(self.common_dir(), &workshop, branch, &tip, &why))?;
        Ok(BranchOutcome::Deleted)
    }

    fn is_landed(&self, tree: &Tree, tip: &str) -> Result<bool, TreeError> {
        self.require_branch_tip(tree, tip)?;
        Ok(self.unlanded(tree, &[tip.to_owned()])? == 0)
    }
}
