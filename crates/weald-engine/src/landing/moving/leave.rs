//! Leaving a conflict in the target's checkout, when somebody asked for that.

use weald_core::landing::{Landing, Strategy};

use super::super::LandError;
use super::users_git::UsersGit;
use crate::trees::Trees;

impl Trees<'_> {
    /// Merges a landing's head into the checkout of its target as plain git does, and leaves the conflict there.
    pub(crate) fn leave_conflict(&self, landing: &Landing) -> Result<(), LandError> {
        let target = &landing.target;
        let Some(checkout) = self.checkout_of(target)? else {
            return Err(LandError::refused(
                "target_not_checked_out",
                format!("{target} is checked out nowhere, so the conflict can't be left there"),
            )
            .hint(format!("weald sync {}", landing.tree)));
        };
        let message = format!("Merge tree {}", landing.tree);
        let merge = ["merge", "--no-ff", "--no-commit", "-m", &message];
        let (args, abort) = match landing.strategy {
            Strategy::Merge => (&merge[..], "git merge --abort"),
            _ => (&["merge", "--squash"][..], "git reset --merge"),
        };
        // The checkout's own git directory is in one of the two.
        let mut write = vec![checkout.path.clone()];
        let common = self.place.repository().common_dir();
        if !common.starts_with(&checkout.path) {
            write.push(common.to_owned());
        }
        let answer = self.users_git(&UsersGit {
            checkout: &checkout,
            work_tree: &checkout.path,
            index: None,
            write,
            args: &[args, &[landing.head.as_str()]].concat(),
        })?;
        let place = checkout.path.display();
        // Exit code 1 is git's word for a conflict; also for files in its way, and then it says so and did nothing.
        if answer.code != 1 || answer.stderr.contains("Aborting") {
            return Err(LandError::refused(
                "conflict_not_left",
                format!("git did not merge in {place}: {}", answer.stderr),
            )
            .hint(format!("weald sync {}", landing.tree)));
        }
        self.engine.notice(format!(
            "the conflict is left in {place}; resolve it and `git commit`, or take it back: {abort}"
        ));
        Ok(())
    }
}
