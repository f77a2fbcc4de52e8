//! Working the queue, or waiting while somebody else does.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingInput, LandingStatus};
use weald_core::queue::QueueRefusal;
use weald_core::session::ProcessState;
use weald_core::store::Durability;

use super::LandError;
use super::interrupt::go_on;
use super::moving::Recovered;
use super::queue::{Lease, end_process};
use super::source::LandRequest;
use super::window::Turn;
use crate::configuration::SHARED_FILE;
use crate::trees::Trees;

/// How long waiting looks away.
const GLANCE: Duration = Duration::from_millis(500);

/// How working the queue ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Everything that was waited for has ended.
    Done,
    /// The queue is paused.
    Paused,
    /// The repository's configuration changed: it has to be read again.
    Reload,
}

impl Trees<'_> {
    /// Puts everything that is asked for into the queue.
    pub fn queue_landings(&self, request: &LandRequest) -> Result<Vec<Landing>, LandError> {
        let trees = self.landing_trees(&request.names)?;
        let mut queued: Vec<Landing> = Vec::new();
        for tree in &trees {
            match self.enqueue(tree, request) {
                Ok(landing) => queued.push(landing),
                Err(error) => {
                    // Nothing of a batch stays in the queue that nobody was told of.
                    let open = queued.iter().filter(|landing| landing.status.is_open());
                    for landing in open {
                        self.drop_landing(landing.id)?;
                    }
                    return Err(error);
                }
            }
        }
        Ok(queued)
    }

    /// Works the queue, or waits while somebody else does, until all of `mine` have ended; without any, until the queue is
    /// empty.
    pub fn work_queue(
        &self,
        mine: &[LandingId],
        request: &LandRequest,
    ) -> Result<Progress, LandError> {
        loop {
            let (seq, view) = (self.engine.look(|tx| tx.last_seq())?, self.queue()?);
            let waits = |landing: &Landing| mine.is_empty() || mine.contains(&landing.id);
            let left = mine.is_empty() && !view.unsettled.is_empty() && !view.is_worked;
            if !left && !view.open.iter().any(waits) {
                return Ok(Progress::Done);
            }
            if view.queue.paused.is_some() {
                return Ok(Progress::Paused);
            }
            go_on()?;
            match self.take_queue() {
                Ok(lease) => {
                    let worked = self.work(&lease, mine, request);
                    let released = self.release_queue(&lease);
                    match worked.and_then(|progress| released.map(|()| progress)) {
                        Ok(Progress::Done) => {}
                        Ok(other) => return Ok(other),
                        // Somebody took over: they go on with it.
                        Err(LandError::Queue(QueueRefusal::Stale { .. })) => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(LandError::Queue(QueueRefusal::Held { .. }) | LandError::Outrun(_)) => {
                    self.engine.store().wait(seq, GLANCE)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn work(
        &self,
        lease: &Lease,
        mine: &[LandingId],
        request: &LandRequest,
    ) -> Result<Progress, LandError> {
        self.recover_landings(lease)?;
        let lost = AtomicBool::new(false);
        thread::scope(|scope| {
            let renewing = self.keep_renewing(scope, lease, &lost);
            let worked = Turn::new(self, lease, mine, request, &lost).work(scope);
            drop(renewing);
            worked
        })
    }

    /// Ends what other processes left: in the middle of moving the target, or right after it.
    pub(crate) fn recover_landings(&self, lease: &Lease) -> Result<(), LandError> {
        let view = self.queue()?;
        for landing in &view.unsettled {
            match self.settle_landed(landing) {
                Err(error @ (LandError::Store(_) | LandError::Queue(_))) => return Err(error),
                // It has landed; what is in the way of the rest must not be in the way of others.
                Err(error) => self
                    .engine
                    .notice(format!("landing {} is not settled: {error}", landing.id)),
                Ok(()) => {}
            }
        }
        let is_moving = |landing: &&Landing| landing.status == LandingStatus::Moving;
        view.open
            .iter()
            .filter(is_moving)
            .try_for_each(|landing| self.recover_landing(lease, landing))
    }

    fn recover_landing(&self, lease: &Lease, landing: &Landing) -> Result<(), LandError> {
        let worker = landing.intent.as_ref().map(|intent| &intent.worker);
        if let Some(worker) = worker
            && Some(worker) != self.me().as_ref()
            && self.engine.processes.state(worker) != ProcessState::Gone
            && !end_process(self, worker)
        {
            return Err(LandError::refused(
                "landing_busy",
                format!(
                    "process {} on {} was stopped while it moved {}, and can't be ended from here",
                    worker.pid, worker.host, landing.target
                ),
            )
            .hint(format!("end it: kill -9 {}", worker.pid)));
        }
        match self.recover_move(landing, &lease.fence)? {
            Recovered::Landed => {
                let landed = LandingInput::Land;
                let landed = self.advance(lease, landing.id, Durability::Power, landed)?;
                self.settle_landed(&landed)
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

    /// Whether the repository's own settings are others by now than those that this process read.
    pub(super) fn settings_moved(&self) -> Result<bool, LandError> {
        let Some((branch, read)) = &self.target else {
            return Ok(false);
        };
        let now = self.place.repository().target(branch)?;
        let Some(now) = now.filter(|now| now.tip.as_str() != read) else {
            return Ok(false);
        };
        self.vault()
            .require(&self.main_refs()?, &[read, now.tip.as_str()])?;
        self.settings_differ(read, now.tip.as_str())
    }

    /// Whether two commits have other settings of the repository.
    pub(super) fn settings_differ(&self, one: &str, other: &str) -> Result<bool, LandError> {
        let asked = self
            .vault()
            .git("diff-tree")
            .args(["--quiet", one, other, "--", SHARED_FILE])
            .output()?;
        Ok(!asked.status.success())
    }
}
