//! Stashing what is in a landing's way, if the configuration says so, and putting it back.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;

use weald_core::id::LandingId;
use weald_core::kept_change::KeptChange;
use weald_core::landing::LandingInput;
use weald_core::store::Durability;
use weald_git::{Git, MergeRequest, Merged, merge_trees};

use super::super::LandError;
use super::super::stashes::{message, stash_entries};
use super::Move;
use super::checkout::Checkout;
use super::folder::Folder;
use super::stage::Stage;
use super::touched;
use crate::trees::{Trees, at};

impl Trees<'_> {
    /// Stashes the changes of the checkout, untracked files only if one is in the way; answers the stash's commit, `None` if
    /// there was nothing to stash.
    pub(super) fn stash(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<Option<String>, LandError> {
        let before = self.stash_tip()?;
        let untracked = self.is_untracked_in_the_way(wanted, checkout)?;
        self.refuse_unstashable(checkout, stage, untracked)?;
        self.keep_originals(checkout, stage, untracked)?;
        let message = message(wanted.landing);
        let mut args = vec!["stash", "push", "--quiet", "-m", &message];
        args.extend(untracked.then_some("--include-untracked"));
        let answer = self.git_in_checkout(checkout, &args)?;
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

    fn is_untracked_in_the_way(
        &self,
        wanted: &Move,
        checkout: &Checkout,
    ) -> Result<bool, LandError> {
        let touched = self.touched_by(wanted)?;
        let folder = Folder::open(&checkout.path).map_err(at(&checkout.path))?;
        let found = touched::in_the_way(&folder, &touched).map_err(at(&checkout.path))?;
        Ok(!found.is_empty())
    }

    /// Puts a stash back after a move that happened or not; one that does not fit any more stays, and the landing's
    /// record says so.
    pub(super) fn unstash(
        &self,
        wanted: &Move,
        is_moved: bool,
        checkout: &Checkout,
        stage: &Stage,
        stashed: Option<String>,
    ) {
        let Some(stashed) = stashed else {
            return;
        };
        let why = match self.pop(checkout, &stashed) {
            Ok(None) => {
                let moved = is_moved.then_some(wanted);
                if let Err(error) = self.restore_originals(moved, checkout, stage) {
                    let place = checkout.path.display();
                    self.engine.notice(format!(
                        "your changes are back in {place}, but not all as they were: {error}"
                    ));
                }
                return;
            }
            Ok(Some(why)) => why,
            Err(error) => error.to_string(),
        };
        let entry = self.stash_entry(&stashed).ok().flatten();
        self.keep_stash(wanted.landing, checkout, &stashed, entry, &why);
    }

    /// Puts a stash back, or answers why not. git would leave half of one that does not fit in the checkout, so that is
    /// found out before.
    fn pop(&self, checkout: &Checkout, stashed: &str) -> Result<Option<String>, LandError> {
        if let Some(path) = self.misfit(checkout, stashed)? {
            return Ok(Some(format!("{path} does not fit what landed")));
        }
        let entry = self.stash_entry(stashed)?.unwrap_or_default();
        let args = ["stash", "pop", "--quiet", "--index", &entry];
        let answer = self.git_in_checkout(checkout, &args)?;
        Ok(Some(answer.stderr).filter(|_| answer.code != 0))
    }

    /// A path of a stash that can't be put back: it conflicts with what is there now, or something is in its place.
    fn misfit(&self, checkout: &Checkout, stashed: &str) -> Result<Option<String>, LandError> {
        let git = |name: &str| Git::new(&checkout.git_dir, name);
        let head = git("rev-parse").args(["--verify", "HEAD"]).run()?;
        let head = String::from_utf8_lossy(&head).trim().to_owned();
        let request = MergeRequest {
            ours: &head,
            theirs: stashed,
            base: Some(&format!("{stashed}^1")),
            attributes: &head,
        };
        if let Merged::Conflict { paths, .. } = merge_trees(&checkout.git_dir, request)? {
            return Ok(Some(paths.join(", ")));
        }
        // The third parent has what was untracked; there is none without any.
        let untracked = git("ls-tree")
            .args(["-r", "-z", "--name-only", &format!("{stashed}^3")])
            .output()?;
        let mut paths = untracked.stdout.split(|byte| *byte == 0);
        let in_the_way = paths.find(|path| {
            let place = checkout.path.join(OsStr::from_bytes(path));
            let found = fs::symlink_metadata(place);
            !path.is_empty() && found.map_or_else(|e| e.kind() != ErrorKind::NotFound, |_| true)
        });
        Ok(in_the_way.map(|path| String::from_utf8_lossy(path).into_owned()))
    }

    /// Records that a landing that was cut short left a stash; one that is not listed any more was put back.
    pub(super) fn keep_left_stash(
        &self,
        landing: LandingId,
        checkout: &Checkout,
        stashed: &str,
    ) -> Result<(), LandError> {
        if let Some(entry) = self.stash_entry(stashed)? {
            let why = "the landing was cut short";
            self.keep_stash(landing, checkout, stashed, Some(entry), why);
        }
        Ok(())
    }

    fn keep_stash(
        &self,
        landing: LandingId,
        checkout: &Checkout,
        stashed: &str,
        entry: Option<String>,
        why: &str,
    ) {
        let name = entry.unwrap_or_else(|| stashed.to_owned());
        let kept = KeptChange::stash(checkout.path.clone(), &name, stashed, why);
        self.keep_change(landing, kept);
    }

    /// Records a change of the user's that is not where it was, so that every answer about the landing names it.
    pub(super) fn keep_change(&self, landing: LandingId, kept: KeptChange) {
        let text = format!("{}: {}", kept.text(), kept.command);
        let recorded = self.engine.change(self.actor(), Durability::Power, |tx| {
            self.step_landing(tx, landing, LandingInput::Kept(kept))
        });
        if recorded.is_err() {
            self.engine.notice(text);
        }
    }

    fn stash_tip(&self) -> Result<Option<String>, LandError> {
        let tip = self.place.repository().resolve("refs/stash")?;
        Ok(tip.map(|tip| tip.as_str().to_owned()))
    }

    /// The name of a stash entry now: others may have been put on top.
    pub(super) fn stash_entry(&self, commit: &str) -> Result<Option<String>, LandError> {
        let entries = stash_entries(self.place.repository())?;
        let entry = entries.into_iter().find(|entry| entry.commit == commit);
        Ok(entry.map(|entry| entry.name))
    }
}
