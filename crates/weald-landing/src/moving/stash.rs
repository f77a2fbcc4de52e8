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
use super::Move;
use super::checkout::Checkout;
use super::folder::Folder;
use super::originals::Originals;
use super::perform::RefPart;
use super::stage::Stage;
use super::touched;
use crate::Landings;
use crate::refusal::Refusal;
use weald_control::stashes::{message, stash_entries};
use weald_control::steps::step;
use weald_trees::at;

impl Landings<'_> {
    /// Moves a checkout after what is in the way was stashed, and puts that back.
    pub(super) fn move_over_stash(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
        part: RefPart,
    ) -> Result<(), LandError> {
        let stashed = self.stash(wanted, checkout, stage)?;
        step("stash.pushed");
        let moved = self.move_checkout(wanted, checkout, stage, part);
        let moved_to = moved.is_ok().then_some(wanted);
        match self.unstash(wanted, moved_to, checkout, stage, stashed) {
            None => moved,
            Some(kept) => moved.map_err(|error| not_put_back(error, kept)),
        }
    }

    /// Stashes the changes of the checkout, untracked files only if one is in the way; answers the stash's commit, `None` if
    /// there was nothing to stash.
    fn stash(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<Option<String>, LandError> {
        let before = self.stashes_of(wanted.landing)?;
        let in_the_way = self.untracked_in_the_way(wanted, checkout)?;
        let untracked = !in_the_way.is_empty();
        self.refuse_unstashable(checkout, stage, &in_the_way)?;
        let mut known = self.keep_originals(checkout, stage, untracked)?;
        let message = message(wanted.landing);
        let mut args = vec!["stash", "push", "--quiet", "-m", &message];
        args.extend(untracked.then_some("--include-untracked"));
        let answer = self.git_in_checkout(checkout, &args)?;
        let mut now = self.stashes_of(wanted.landing)?.into_iter();
        let stashed = now.find(|entry| !before.contains(entry));
        known.stash.clone_from(&stashed);
        if let Err(error) = stage.write_originals(&known) {
            // The entry is there, and has to be put back or named all the same.
            let place = stage.originals_note();
            self.trees
                .engine
                .notice(format!("{}: {error}", place.display()));
        }
        if answer.code == 0 {
            return Ok(stashed);
        }
        // git may have stopped after it made the entry.
        let kept = self.unstash(wanted, None, checkout, stage, stashed);
        let refused = LandError::from(Refusal::NotStashed(checkout.path.clone(), answer.stderr));
        Err(match kept {
            None => refused,
            Some(kept) => not_put_back(refused, kept),
        })
    }

    fn untracked_in_the_way(
        &self,
        wanted: &Move,
        checkout: &Checkout,
    ) -> Result<Vec<Vec<u8>>, LandError> {
        let touched = self.touched_by(wanted)?;
        let folder = Folder::open(&checkout.path).map_err(at(&checkout.path))?;
        Ok(touched::in_the_way(&folder, &touched).map_err(at(&checkout.path))?)
    }

    /// Puts a stash back after a move that happened or not. One that does not fit any more stays, the landing's record says
    /// so, and its name is answered.
    fn unstash(
        &self,
        wanted: &Move,
        moved: Option<&Move>,
        checkout: &Checkout,
        stage: &Stage,
        stashed: Option<String>,
    ) -> Option<String> {
        let stashed = stashed?;
        let why = match self.pop(checkout, &stashed) {
            Ok(None) => {
                step("stash.popped");
                self.restore_originals(wanted.landing, moved, checkout, stage);
                return None;
            }
            Ok(Some(why)) => why,
            Err(error) => error.to_string(),
        };
        let entry = self.stash_entry(&stashed).ok().flatten();
        Some(self.keep_stash(wanted.landing, checkout, &stashed, entry, &why))
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

    /// What a landing that was cut short left of a stash: an entry that is listed is recorded; where it was put back
    /// already, files come back as they were.
    pub(super) fn recover_stash(
        &self,
        wanted: &Move,
        is_moved: bool,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<(), LandError> {
        let Some(known) = Originals::read(stage).map_err(at(&stage.path))? else {
            return Ok(());
        };
        let made = stash_entries(self.trees.place.repository())?.into_iter();
        let listed = made.clone().find(|entry| match &known.stash {
            Some(commit) => entry.commit == *commit,
            None => entry.landing == Some(wanted.landing),
        });
        if let Some(entry) = listed {
            let why = "the landing was cut short";
            self.keep_stash(
                wanted.landing,
                checkout,
                &entry.commit,
                Some(entry.name),
                why,
            );
        } else if known.stash.is_some() {
            let moved = is_moved.then_some(wanted);
            self.restore_originals(wanted.landing, moved, checkout, stage);
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
    ) -> String {
        let name = entry.unwrap_or_else(|| stashed.to_owned());
        let kept = KeptChange::stash(checkout.path.clone(), &name, stashed, why);
        self.keep_change(landing, kept);
        name
    }

    /// Records a change of the user's that is not where it was, so that every answer about the landing names it.
    pub(super) fn keep_change(&self, landing: LandingId, kept: KeptChange) {
        let text = format!("{}: {}", kept.text(), kept.command);
        let recorded = self
            .trees
            .engine
            .change(self.trees.actor(), Durability::Power, |tx| {
                self.step_landing(tx, landing, LandingInput::Kept(kept))
            });
        if recorded.is_err() {
            self.trees.engine.notice(text);
        }
    }

    /// The commits of entries that a landing made.
    fn stashes_of(&self, landing: LandingId) -> Result<Vec<String>, LandError> {
        let entries = stash_entries(self.trees.place.repository())?.into_iter();
        let own = entries.filter(|entry| entry.landing == Some(landing));
        Ok(own.map(|entry| entry.commit).collect())
    }

    /// The name of a stash entry now: others may have been put on top.
    pub(super) fn stash_entry(&self, commit: &str) -> Result<Option<String>, LandError> {
        let entries = stash_entries(self.trees.place.repository())?;
        let entry = entries.into_iter().find(|entry| entry.commit == commit);
        Ok(entry.map(|entry| entry.name))
    }
}

/// What was stashed is still in its entry after this.
fn not_put_back(error: LandError, kept: String) -> LandError {
    match error {
        LandError::Refused(refusal) => Refusal::NotPutBack(refusal, kept).into(),
        other => other,
    }
}
