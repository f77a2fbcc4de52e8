//! Checks of landings: moves that were cut short, what they left, and changes that wait in the stash.

use std::io;

use weald_core::landing::{Landing, LandingStatus};
use weald_core::session::ProcessState;

use super::{Code, Finding, Round};
use weald_control::stashes::stash_entries;
use weald_landing::Landings;
use weald_landing::{LandError, Lease, LeftoverKind};
use weald_trees::{TreeError, Trees};

impl Round<'_, '_> {
    /// Nothing is looked for while a process works the queue: what it makes is its own.
    pub(super) fn check_landings(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let view = Landings::new(trees)
            .queue()
            .map_err(|error| told(trees, error))?;
        let holder = view.queue.holder.as_ref();
        let holder = holder.map(|holder| trees.engine.processes.state(&holder.process));
        if holder == Some(ProcessState::Running) {
            return Ok(());
        }
        let is_moving = |landing: &&Landing| landing.status == LandingStatus::Moving;
        for landing in view.open.iter().filter(is_moving) {
            self.check_move(landing);
        }
        let expires = view.queue.holder.as_ref().map(|holder| holder.expires_at);
        let now = trees.now()?;
        if holder == Some(ProcessState::Unknown) && expires.is_some_and(|expires| now < expires) {
            return Ok(());
        }
        for landing in &view.unsettled {
            let what = format!(
                "{} has landing {} of worktree {}, but its clean-up did not run",
                landing.target, landing.id, landing.tree
            );
            let would = "complete its task and clean up its worktree as configured";
            let finding = Finding::new(Code::LandingUnsettled, what, would);
            let settle = |lease: &Lease| Landings::new(trees).recover_landings(lease).map(drop);
            self.note(finding.repair(|| alone(trees, settle)));
        }
        let left = Landings::new(trees)
            .landing_leftovers()
            .map_err(|error| told(trees, error))?;
        for left in left {
            if left.kind == LeftoverKind::Unknown {
                let place = left.path.display();
                let what = format!(
                    "{place} is named like a stage of landing {}, but weald has no record of it",
                    left.landing
                );
                let would = format!("check it; if nothing in it is yours: rm -r {place}");
                self.note(Finding::new(Code::LandingLeftover, what, would));
                continue;
            }
            let what = format!(
                "{} is left over from landing {}",
                left.path.display(),
                left.landing
            );
            let would = "put back its content, then delete it";
            let finding = Finding::new(Code::LandingLeftover, what, would);
            let clear = || alone(trees, |_| Landings::new(trees).clear_leftover(&left));
            self.note(finding.repair(clear));
        }
        self.check_stashes()
    }

    fn check_stashes(&mut self) -> Result<(), TreeError> {
        for entry in stash_entries(self.trees.place.repository())? {
            let (Some(landing), name) = (entry.landing, entry.name) else {
                continue;
            };
            let what = format!(
                "changes that were in the way of landing {landing} are in the stash ({name})"
            );
            let would = format!("git stash pop --index {name}, in the checkout they came from");
            self.note(Finding::new(Code::LandingStash, what, would));
        }
        Ok(())
    }

    fn check_move(&mut self, landing: &Landing) {
        let trees = self.trees;
        let worker = landing.intent.as_ref().map(|intent| &intent.worker);
        let state = worker.map(|worker| trees.engine.processes.state(worker));
        if let (Some(worker), Some(ProcessState::Unknown)) = (worker, state) {
            let what = format!(
                "landing {} of worktree {} is moving {}, and it is unknown whether its process ({} on {}) is alive",
                landing.id, landing.tree, landing.target, worker.pid, worker.host
            );
            let would = format!(
                "if that process is gone: weald doctor --recover {}",
                landing.id
            );
            self.note(Finding::new(Code::LandingUnfinished, what, would));
            return;
        }
        if state == Some(ProcessState::Running) {
            return;
        }
        let what = format!(
            "landing {} of worktree {} was interrupted while {} moved",
            landing.id, landing.tree, landing.target
        );
        let would = "finish it if it got far enough, else undo it";
        let finding = Finding::new(Code::LandingUnfinished, what, would);
        let recover = |lease: &Lease| Landings::new(trees).recover_landing(lease, landing.id);
        self.note(finding.repair(|| alone(trees, recover)));
    }
}

/// Does something while no other process works the queue.
fn alone(
    trees: &Trees<'_>,
    work: impl FnOnce(&Lease) -> Result<(), LandError>,
) -> Result<(), TreeError> {
    let lease = Landings::new(trees)
        .take_queue()
        .map_err(|error| told(trees, error))?;
    let done = work(&lease);
    let released = Landings::new(trees).release_queue(&lease);
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
