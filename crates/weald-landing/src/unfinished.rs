//! Landings whose process ended in the middle of moving the target, or right after it.
//!
//! Whoever works the queue next ends them first. One that can't be brought in order is told, and blocks the landings on
//! its target, and no others.
//!
//! A process that was stopped while it moved files is ended by whoever takes over (by its identity, through a handle),
//! because its next system call could be a rename. Anywhere else in a landing the fence is enough, and the process is
//! left alone.

use std::collections::BTreeMap;

use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingInput, LandingStatus};
use weald_core::session::ProcessState;
use weald_core::store::Durability;

use super::LandError;
use super::moving::Recovered;
use super::queue::Lease;
use crate::Landings;
use crate::refusal::Refusal;

/// Targets that nothing can land on, and why.
#[derive(Debug, Default)]
pub struct Blocked(BTreeMap<String, Unfinished>);

#[derive(Debug)]
struct Unfinished {
    /// The landing in the way, if it is in the queue.
    open: Option<LandingId>,
    refusal: Refusal,
}

/// Whose word it takes that the process which was moving the target is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    Processes,
    /// A person's, where the process table says nothing.
    Person,
}

impl Blocked {
    fn add(&mut self, target: &str, id: LandingId, open: Option<LandingId>, error: &LandError) {
        use Refusal::{LandingBusy, LandingPerhapsBusy};
        let wait = match error {
            LandError::Refused(refusal) => match **refusal {
                LandingBusy(..) | LandingPerhapsBusy(..) => refusal.reason().hint,
                _ => None,
            },
            _ => None,
        };
        let refusal = Refusal::LandingUnfinished(id, target.to_owned(), error.to_string(), wait);
        self.0
            .insert(target.to_owned(), Unfinished { open, refusal });
    }

    /// Refuses a target that is blocked.
    pub(super) fn require_free(&self, target: &str) -> Result<(), LandError> {
        match self.0.get(target) {
            None => Ok(()),
            Some(blocked) => Err(blocked.refusal.clone().into()),
        }
    }

    /// Refuses to wait for a landing that is itself in the way; without any, for the whole queue.
    pub(super) fn require_none_of(&self, mine: &[LandingId]) -> Result<(), LandError> {
        let is_waited_for = |blocked: &&Unfinished| {
            blocked
                .open
                .is_some_and(|id| mine.is_empty() || mine.contains(&id))
        };
        match self.0.values().find(is_waited_for) {
            None => Ok(()),
            Some(blocked) => Err(blocked.refusal.clone().into()),
        }
    }
}

impl Landings<'_> {
    /// Ends what other processes left: in the middle of moving the target, or right after it. Answers what stays blocked.
    pub fn recover_landings(&self, lease: &Lease) -> Result<Blocked, LandError> {
        let view = self.queue()?;
        for landing in &view.unsettled {
            self.settle(landing)?;
        }
        let mut blocked = Blocked::default();
        let is_moving = |landing: &&Landing| landing.status == LandingStatus::Moving;
        for landing in view.open.iter().filter(is_moving) {
            match self.end_unfinished(lease, landing, Proof::Processes) {
                Err(error @ (LandError::Store(_) | LandError::Queue(_))) => return Err(error),
                Err(error) => blocked.add(&landing.target, landing.id, Some(landing.id), &error),
                Ok(()) => {}
            }
        }
        for (left, target) in self.ended_plans()? {
            match self.clear_leftover(&left) {
                Err(error @ (LandError::Store(_) | LandError::Queue(_))) => return Err(error),
                Err(error) => blocked.add(&target, left.landing, None, &error),
                Ok(()) => {}
            }
        }
        Ok(blocked)
    }

    /// The same for one landing; what is in its way is an error.
    pub fn recover_landing(&self, lease: &Lease, id: LandingId) -> Result<(), LandError> {
        let landing = self.landing(id)?;
        match landing.status {
            LandingStatus::Moving => self.end_unfinished(lease, &landing, Proof::Processes),
            _ => Ok(()),
        }
    }

    /// Ends a landing whose process can't be asked for, because a person says that it is gone.
    pub fn recover_by_hand(&self, id: LandingId) -> Result<Landing, LandError> {
        self.refuse_agents()?;
        self.require_unfinished(id)?;
        let lease = self.take_queue()?;
        // Somebody else may have ended it meanwhile.
        let ended = self
            .require_unfinished(id)
            .and_then(|landing| self.end_unfinished(&lease, &landing, Proof::Person));
        self.release_queue(&lease)?;
        ended?;
        self.landing(id)
    }

    fn require_unfinished(&self, id: LandingId) -> Result<Landing, LandError> {
        let landing = self.landing(id)?;
        if landing.status != LandingStatus::Moving {
            return Err(Refusal::NothingToRecover(id, landing.status).into());
        }
        let worker = landing.intent.as_ref().map(|intent| &intent.worker);
        match worker {
            Some(worker) if self.trees.engine.processes.state(worker) == ProcessState::Running => {
                Err(Refusal::LandingBusy(landing.target, worker.pid).into())
            }
            _ => Ok(landing),
        }
    }

    /// What follows from a landing, now or by whoever came next. It has landed: what is in the way of the rest is told, and
    /// neither hides that nor is in the way of others.
    pub(super) fn settle(&self, landing: &Landing) -> Result<(), LandError> {
        let settled = match landing.status {
            LandingStatus::Landed => self.settle_landed(landing),
            _ => self.settle_unlanded(landing),
        };
        match settled {
            Err(error @ (LandError::Store(_) | LandError::Queue(_))) => Err(error),
            Err(error) => {
                self.trees
                    .engine
                    .notice(format!("landing {} is not settled: {error}", landing.id));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn end_unfinished(
        &self,
        lease: &Lease,
        landing: &Landing,
        proof: Proof,
    ) -> Result<(), LandError> {
        let worker = landing.intent.as_ref().map(|intent| &intent.worker);
        if let Some(worker) = worker.filter(|_| proof == Proof::Processes)
            && Some(worker) != self.trees.me().as_ref()
            && self.trees.engine.processes.state(worker) != ProcessState::Gone
            && !self.trees.end_process(worker)
        {
            return Err(Refusal::LandingPerhapsBusy(
                landing.id,
                landing.target.clone(),
                worker.pid,
                worker.host.clone(),
            )
            .into());
        }
        match self.recover_move(landing, &lease.fence)? {
            Recovered::Landed => {
                let landed = LandingInput::Land;
                let landed = self.advance(lease, landing.id, Durability::Power, landed)?;
                self.settle(&landed)
            }
            Recovered::TakenBack => self
                .advance(
                    lease,
                    landing.id,
                    Durability::Process,
                    LandingInput::Requeue,
                )
                .map(drop),
        }
    }
}
