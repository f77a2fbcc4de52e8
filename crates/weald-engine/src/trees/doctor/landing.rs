//! Checks of landings: moves that were cut short, what they left, and changes that wait in the stash.

use std::io;

use weald_core::landing::{Landing, LandingStatus};

use super::{Round, Severity};
use crate::landing::{LandError, Lease, LeftoverKind};
use crate::trees::{TreeError, Trees};

impl Round<'_, '_> {
    /// Nothing is looked for while a process works the queue: what it makes is its own.
    pub(super) fn check_landings(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let view = trees.queue().map_err(|error| told(trees, error))?;
        let holder = view.queue.holder.as_ref();
        if holder.is_some_and(|holder| trees.may_live(&holder.process)) {
            return Ok(());
        }
        let is_moving = |landing: &&Landing| landing.status == LandingStatus::Moving;
        for landing in view.open.iter().filter(is_moving) {
            self.check_move(landing);
        }
        for landing in &view.unsettled {
            let what = format!(
                "landing {} of tree {} is on {}, and nobody came to what follows from that",
                landing.id, landing.tree, landing.target
            );
            let would = "complete its task, and let its tree go as configured";
            self.found("landing_unsettled", Severity::Warn, what, would, || {
                alone(trees, |lease| trees.recover_landings(lease))
            });
        }
        let left = trees
            .landing_leftovers()
            .map_err(|error| told(trees, error))?;
        for left in left {
            if left.kind == LeftoverKind::Unknown {
                let place = left.path.display();
                let what = format!(
                    "{place} is called like a stage of landing {}, but no record of weald's names it",
                    left.landing
                );
                let would = format!("look at it; if nothing in it is yours: rm -r {place}");
                self.told("landing_leftover", Severity::Warn, what, would);
                continue;
            }
            let what = format!(
                "{} is left of landing {}",
                left.path.display(),
                left.landing
            );
            let would = "put back what it holds, and delete it";
            self.found("landing_leftover", Severity::Warn, what, would, || {
                alone(trees, |_| trees.clear_leftover(&left))
            });
        }
        for stash in trees
            .landing_stashes()
            .map_err(|error| told(trees, error))?
        {
            let name = stash.split(':').next().unwrap_or_default().to_owned();
            let what = format!("changes that were in a landing's way are in the stash ({stash})");
            let would = format!("git stash pop --index {name}, in the checkout that they are of");
            self.told("landing_stash", Severity::Info, what, would);
        }
        Ok(())
    }

    fn check_move(&mut self, landing: &Landing) {
        let trees = self.trees;
        let worker = landing.intent.as_ref().map(|intent| &intent.worker);
        if worker.is_some_and(|worker| trees.may_live(worker)) {
            return;
        }
        let what = format!(
            "landing {} of tree {} was cut short while {} moved",
            landing.id, landing.tree, landing.target
        );
        let would = "bring it to its end if it is on the way there, else take it back";
        self.found("landing_unfinished", Severity::Error, what, would, || {
            alone(trees, |lease| trees.recover_landings(lease))
        });
    }
}

/// Does something while no other process works the queue.
fn alone(
    trees: &Trees<'_>,
    work: impl FnOnce(&Lease) -> Result<(), LandError>,
) -> Result<(), TreeError> {
    let lease = trees.take_queue().map_err(|error| told(trees, error))?;
    let done = work(&lease);
    let released = trees.release_queue(&lease);
    done.and(released).map_err(|error| told(trees, error))
}

/// An error of a landing among those of trees.
fn told(trees: &Trees<'_>, error: LandError) -> TreeError {
    match error {
        LandError::Tree(error) => error,
        other => TreeError::File {
            path: trees.place.repository().common_dir().to_owned(),
            source: io::Error::other(other.to_string()),
        },
    }
}
