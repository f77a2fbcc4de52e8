//! Leaving a conflict in the target's checkout, when somebody asked for that.
//!
//! This is plain `git merge` there, and needs no more than the user's own would: git's lock of the index keeps it and a
//! landing apart, and a landing refuses a checkout with a merge in it.

use std::fs;
use std::path::PathBuf;

use weald_core::landing::{Landing, Strategy};

use super::super::LandError;
use super::super::beginning::Beginning;
use crate::Landings;
use crate::refusal::Refusal;
use weald_trees::at;

/// A conflict that waits in a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftConflict {
    pub path: PathBuf,
    /// What takes it back.
    pub abort: &'static str,
}

impl Landings<'_> {
    /// Merges a landing's head into the checkout of its target as plain git does, and leaves the conflict there.
    pub fn leave_conflict(&self, landing: &Landing) -> Result<LeftConflict, LandError> {
        let target = &landing.target;
        if let Some(tree) = self.sealed_on(target)? {
            return Err(
                Refusal::TargetSealed(landing.tree.clone(), target.clone(), tree.name).into(),
            );
        }
        let Some(checkout) = self.checkout_of(target)? else {
            return Err(Refusal::TargetNotCheckedOut(landing.tree.clone(), target.clone()).into());
        };
        let message = self.words_of(landing)?;
        let merge = ["merge", "--no-ff", "--no-commit", "-m", &message];
        let (args, abort) = match landing.strategy {
            Strategy::Merge => (&merge[..], "git merge --abort"),
            _ => (&["merge", "--squash"][..], "git reset --merge"),
        };
        let answer = self.git_in_checkout(&checkout, &[args, &[landing.head.as_str()]].concat())?;
        // Exit code 1 is git's word for a conflict; also for files in its way, and then it says so and did nothing.
        if answer.code != 1 || answer.stderr.contains("Aborting") {
            return Err(Refusal::ConflictNotLeft(
                landing.tree.clone(),
                checkout.path,
                answer.stderr,
            )
            .into());
        }
        if landing.strategy != Strategy::Merge {
            // `git commit` begins with it.
            let prepared = checkout.git_dir.join("SQUASH_MSG");
            fs::write(&prepared, message).map_err(at(&prepared))?;
        }
        Ok(LeftConflict {
            path: checkout.path,
            abort,
        })
    }

    /// What the commit of a landing would say. Nothing tested it.
    fn words_of(&self, landing: &Landing) -> Result<String, LandError> {
        let tip = self.landing_tip(&landing.target)?;
        let start = Beginning {
            known: vec![tip],
            ..Beginning::default()
        };
        let commits = self.new_commits(&landing.head, &start)?;
        let tree = self.trees.named(Some(landing.tree.as_str()))?;
        let task = match &landing.task {
            Some(id) => self.trees.engine.look(|tx| tx.task(id))?,
            None => None,
        };
        self.message(landing, &tree, task.as_ref(), "none", &commits, None)
    }
}
