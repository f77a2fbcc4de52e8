//! A move, step by step.

use std::fs;
use std::io;

use super::super::LandError;
use super::checkout::Checkout;
use super::examine::Examined;
use super::index_lock::IndexLock;
use super::known_index;
use super::plan::{self, Plan, Sources};
use super::refs::OpenRefs;
use super::stage::Stage;
use super::swap::{Swap, SwapError};
use super::{Move, PreparedMove};
use crate::Landings;
use crate::refusal::Refusal;
use weald_control::steps::{step, step_of};
use weald_trees::at;

/// Whether the ref moves with the checkout, or has moved already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefPart {
    Moves,
    /// Somebody checked the target out while it moved.
    Moved,
}

/// Paths as people read them.
pub(super) fn text_of(paths: Vec<Vec<u8>>) -> Vec<String> {
    let text = |path: Vec<u8>| String::from_utf8_lossy(&path).into_owned();
    paths.into_iter().map(text).collect()
}

/// What the user changed is in the way.
pub(super) fn dirty(wanted: &Move, checkout: &Checkout, paths: Vec<Vec<u8>>) -> LandError {
    Refusal::TargetDirty(checkout.path.clone(), wanted.target.clone(), text_of(paths)).into()
}

impl Landings<'_> {
    /// Moves checkout, index and ref; a refusal or a failure leaves them as they were.
    pub(crate) fn perform_move(&self, prepared: PreparedMove) -> Result<(), LandError> {
        step("land.prepared");
        let moved = match (&prepared.into, &prepared.place) {
            (Some(tree), _) => self.move_into(&prepared.wanted, tree),
            (None, None) => self.move_ref_alone(&prepared.wanted),
            (None, Some((checkout, stage))) => {
                self.move_both(&prepared.wanted, checkout, stage, RefPart::Moves)
            }
        };
        drop(prepared.objects);
        moved
    }

    /// A target that is checked out nowhere. Somebody may check it out at the same moment.
    fn move_ref_alone(&self, wanted: &Move) -> Result<(), LandError> {
        let open = self.prepare_refs(wanted, None)?;
        step_of("land.ref_prepared", open.process());
        match self.checkout_of(&wanted.target) {
            Ok(None) => {}
            Ok(Some(_)) => {
                open.abort();
                return Err(LandError::Outrun(wanted.target.clone()));
            }
            Err(error) => {
                open.abort();
                return Err(error);
            }
        }
        step("land.looked");
        self.commit_refs(wanted, None, open)?;
        step("land.ref_committed");
        let followed = match self.checkout_of(&wanted.target) {
            Ok(Some(checkout)) => {
                let private = self.trees.place.private();
                let stage = Stage::choose(private, &checkout, wanted.landing);
                self.move_both(wanted, &checkout, &stage, RefPart::Moved)
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = followed {
            self.trees.engine.notice(format!(
                "{} was checked out while it moved, and its files are still those of {}: {error}",
                wanted.target, wanted.old
            ));
        }
        Ok(())
    }

    /// The checkout with its index, and the ref. What is in the way is stashed if the configuration says so.
    fn move_both(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
        part: RefPart,
    ) -> Result<(), LandError> {
        self.claim_stage(checkout, stage)?;
        let moved = match self.move_checkout(wanted, checkout, stage, part) {
            Err(LandError::Refused(refusal))
                if matches!(*refusal, Refusal::TargetDirty(..))
                    && self.trees.config.landing_autostash =>
            {
                self.move_over_stash(wanted, checkout, stage, part)
            }
            moved => moved,
        };
        match &moved {
            Err(error) if stage.plan().exists() => self.trees.engine.notice(format!(
                "moving {} was interrupted ({error}); to repair it: weald doctor --fix",
                checkout.path.display()
            )),
            _ => {
                let removed = self.clear_stage(wanted.landing, checkout, stage);
                if let Err(error) = removed {
                    self.trees
                        .engine
                        .notice(format!("{}: {error}", stage.path.display()));
                }
            }
        }
        moved
    }

    pub(super) fn move_checkout(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
        part: RefPart,
    ) -> Result<(), LandError> {
        let lock = self.lock_index(checkout, wanted.landing)?;
        step("land.index_locked");
        self.require_unmoved(wanted, checkout, part)?;
        stage.begin().map_err(at(&stage.path))?;
        let examined = self.examine(wanted, checkout, stage)?;
        step("land.checked");
        self.fill_stage(wanted, checkout, stage, &examined)?;
        step("land.staged");
        let open = match part {
            RefPart::Moves => Some(self.prepare_refs(wanted, Some(checkout))?),
            RefPart::Moved => None,
        };
        step_of(
            "land.ref_prepared",
            open.as_ref().map_or(0, OpenRefs::process),
        );
        let swap =
            Swap::open(&checkout.path, &stage.files(), &stage.old()).map_err(at(&checkout.path))?;
        let planned = self
            .require_unmoved(wanted, checkout, part)
            .and_then(|()| plan_of(wanted, checkout, stage, &swap, &examined, open.as_ref()));
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => {
                open.into_iter().for_each(OpenRefs::abort);
                return Err(error);
            }
        };
        if let Err(error) = stage.write_plan(&plan) {
            open.into_iter().for_each(OpenRefs::abort);
            return Err(at(&stage.path)(error).into());
        }
        let process = open.as_ref().map_or(0, OpenRefs::process);
        step_of("land.planned", process);
        let site = Site {
            wanted,
            checkout,
            stage,
            swap: &swap,
            plan: &plan,
        };
        match self.swap_in(&site, &lock, process) {
            Ok(()) => {}
            Err(error) => {
                open.into_iter().for_each(OpenRefs::abort);
                return Err(self.put_all_back(&site, lock, error));
            }
        }
        step_of("land.index_renamed", process);
        if let Some(open) = open
            && let Err(error) = self.commit_refs(wanted, Some(checkout), open)
        {
            return Err(self.put_all_back(&site, lock, error));
        }
        step("land.ref_committed");
        drop(lock);
        step("land.unlocked");
        self.rescue_late(stage, &swap, &plan);
        Ok(())
    }

    /// The checkout is still on the target, nothing goes on in it, and the target is where it should be.
    fn require_unmoved(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        part: RefPart,
    ) -> Result<(), LandError> {
        if self.checkout_of(&wanted.target)?.as_ref() != Some(checkout) {
            return Err(LandError::Outrun(wanted.target.clone()));
        }
        match part {
            RefPart::Moves => self.require_tip(wanted),
            RefPart::Moved => Ok(()),
        }
    }

    /// Swaps the files, and puts the index in its place.
    fn swap_in(&self, site: &Site<'_>, lock: &IndexLock, process: u32) -> Result<(), LandError> {
        let mut is_first = true;
        let swapped = site.swap.forward(site.plan, || {
            if std::mem::take(&mut is_first) {
                step_of("land.swapping", process);
            }
        });
        match swapped {
            Ok(()) => {}
            Err(SwapError::Changed(path)) => {
                return Err(dirty(site.wanted, site.checkout, vec![path]));
            }
            Err(SwapError::File(path, error)) => {
                let path = site
                    .checkout
                    .path
                    .join(String::from_utf8_lossy(&path).as_ref());
                return Err(at(&path)(error).into());
            }
        }
        step_of("land.swapped", process);
        self.note_swapped(site)?;
        site.swap.sync(site.plan).map_err(at(&site.checkout.path))?;
        if !lock.is_held() {
            return Err(Refusal::IndexLockDeleted.into());
        }
        let index = &site.stage.index;
        Ok(site
            .stage
            .replace_index(&site.stage.new_index())
            .map_err(at(index))?)
    }

    /// The new index gets the stat data of the new files.
    fn note_swapped(&self, site: &Site<'_>) -> Result<(), LandError> {
        let index = site.stage.new_index();
        let is_sha256 = site.wanted.new.len() == 64;
        let noted = known_index::note_swapped(&index, is_sha256, &site.swap.checkout, site.plan);
        match noted.map_err(at(&index))? {
            true => Ok(()),
            false => self.refresh(site.checkout, site.stage, &index),
        }
    }

    /// Puts everything back. If that can't be done, the lock and the plan stay for `doctor`.
    fn put_all_back(&self, site: &Site<'_>, lock: IndexLock, error: LandError) -> LandError {
        let stage = site.stage;
        let put_back = || -> io::Result<()> {
            if !stage.holds_index() {
                match stage.old_index().exists() {
                    true => stage.replace_index(&stage.old_index())?,
                    false => fs::remove_file(&stage.index)?,
                }
            }
            let left = site.swap.back(site.plan, |_| true)?;
            self.rescue(site.plan.landing, &site.plan.checkout, stage, left)?;
            fs::remove_file(stage.plan())
        };
        match put_back() {
            Ok(()) => drop(lock),
            Err(_) => std::mem::forget(lock),
        }
        error
    }
}

/// Everything about one swap that goes on.
pub struct Site<'s> {
    wanted: &'s Move,
    checkout: &'s Checkout,
    stage: &'s Stage,
    swap: &'s Swap,
    plan: &'s Plan,
}

fn plan_of(
    wanted: &Move,
    checkout: &Checkout,
    stage: &Stage,
    swap: &Swap,
    examined: &Examined,
    open: Option<&OpenRefs>,
) -> Result<Plan, LandError> {
    let sources = Sources {
        checkout: &swap.checkout,
        files: &swap.files,
        touched: &examined.touched,
        seen: &examined.seen,
    };
    let paths = plan::paths(&sources).map_err(at(&checkout.path))?;
    if !paths.blocked.is_empty() {
        return Err(dirty(wanted, checkout, paths.blocked));
    }
    Ok(Plan {
        landing: wanted.landing,
        target: wanted.target.clone(),
        old: wanted.old.clone(),
        new: wanted.new.clone(),
        checkout: checkout.path.clone(),
        git_dir: checkout.git_dir.clone(),
        stage: stage.path.clone(),
        entries: paths.entries,
        emptied: paths.emptied,
        made: paths.made,
        locks: open.map_or_else(Vec::new, |open| open.locks.clone()),
    })
}
