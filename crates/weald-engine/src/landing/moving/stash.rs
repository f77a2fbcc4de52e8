//! Stashing what is in a landing's way, if the configuration says so, and putting it back.

use std::fs;

use weald_git::Git;

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::stage::Stage;
use crate::trees::{Trees, at};

impl Trees<'_> {
    /// Stashes every change of the checkout; answers the stash's commit, `None` if there was nothing to stash.
    pub(super) fn stash(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<Option<String>, LandError> {
        let before = self.stash_tip()?;
        let message = format!("weald: land {}", wanted.landing);
        let answer = self.git_in_checkout(
            checkout,
            &[
                "stash",
                "push",
                "--quiet",
                "--include-untracked",
                "-m",
                &message,
            ],
        )?;
        if answer.code != 0 {
            return Err(LandError::refused(
                "target_dirty",
                format!(
                    "what is changed can't be stashed; nothing was changed: {}",
                    answer.stderr
                ),
            )
            .hint(format!(
                "git -C {} status, then land again",
                checkout.path.display()
            )));
        }
        let stashed = self.stash_tip()?.filter(|tip| Some(tip) != before.as_ref());
        if let Some(stashed) = &stashed {
            fs::create_dir_all(&stage.path).map_err(at(&stage.path))?;
            fs::write(stage.stash_note(), stashed).map_err(at(&stage.path))?;
        }
        Ok(stashed)
    }

    /// Puts a stash back; one that does not fit any more is kept, and told.
    pub(super) fn unstash(&self, checkout: &Checkout, stashed: Option<String>) {
        let Some(stashed) = stashed else {
            return;
        };
        let popped = self.stash_entry(&stashed).and_then(|entry| {
            let entry = entry.unwrap_or_default();
            self.git_in_checkout(checkout, &["stash", "pop", "--quiet", "--index", &entry])
        });
        let why = match popped {
            Ok(answer) if answer.code == 0 => return,
            Ok(answer) => answer.stderr,
            Err(error) => error.to_string(),
        };
        self.tell_stash(checkout, &stashed, &why);
    }

    /// Tells where stashed changes are.
    pub(super) fn tell_stash(&self, checkout: &Checkout, stashed: &str, why: &str) {
        let entry = self.stash_entry(stashed).ok().flatten();
        let entry = entry.unwrap_or_else(|| stashed.to_owned());
        self.engine.notice(format!(
            "your changes in {} are kept in the stash ({why}): git -C {0} stash apply --index {entry}",
            checkout.path.display()
        ));
    }

    fn stash_tip(&self) -> Result<Option<String>, LandError> {
        let tip = self.place.repository().resolve("refs/stash")?;
        Ok(tip.map(|tip| tip.as_str().to_owned()))
    }

    /// The name of a stash entry now: others may have been put on top.
    pub(super) fn stash_entry(&self, commit: &str) -> Result<Option<String>, LandError> {
        let common = self.place.repository().common_dir();
        let list = Git::new(common, "reflog")
            .args(["show", "--format=%H", "refs/stash", "--"])
            .output()?;
        let text = String::from_utf8_lossy(&list.stdout).into_owned();
        let place = text.lines().position(|line| line == commit);
        Ok(place.map(|place| format!("stash@{{{place}}}")))
    }
}
