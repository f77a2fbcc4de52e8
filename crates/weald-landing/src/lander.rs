//! Working the queue, or waiting while somebody else does.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use weald_core::id::LandingId;
use weald_core::landing::Landing;
use weald_core::queue::QueueRefusal;

use super::LandError;
use super::queue::Lease;
use super::source::LandRequest;
use super::window::Turn;
use crate::Landings;
use weald_control::configuration::SHARED_FILE;

/// How long waiting looks away.
const GLANCE: Duration = Duration::from_millis(500);

/// How working the queue ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueEnd {
    /// Everything that was waited for has ended.
    Done,
    /// The queue is paused.
    Paused,
    /// The repository's configuration changed: it has to be read again.
    Reload,
}

impl Landings<'_> {
    /// Puts everything that is asked for into the queue.
    pub fn queue_landings(&self, request: &LandRequest) -> Result<Vec<Landing>, LandError> {
        let trees = self.landing_trees(request)?;
        trees
            .iter()
            .try_for_each(|tree| self.trees.require_own(tree))?;
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

    /// Works the queue, or waits while somebody else does, until all of `mine` have ended and are cleaned up; without any,
    /// until the queue is empty.
    pub fn work_queue(
        &self,
        mine: &[LandingId],
        request: &LandRequest,
    ) -> Result<QueueEnd, LandError> {
        let mut has_settled = false;
        loop {
            let (seq, view) = (self.trees.engine.look(|tx| tx.last_seq())?, self.queue()?);
            let waits = |landing: &Landing| mine.is_empty() || mine.contains(&landing.id);
            let is_open = view.open.iter().any(waits);
            // Whoever landed it cleans up, and that is part of the answer. If they are gone it is done here, once.
            let is_unsettled = !has_settled && view.unsettled.iter().any(waits);
            if !is_open && !is_unsettled {
                return Ok(QueueEnd::Done);
            }
            if is_open && view.queue.paused.is_some() {
                return Ok(QueueEnd::Paused);
            }
            self.go_on()?;
            match self.take_queue() {
                Ok(lease) => {
                    let worked = self.work(&lease, mine, request);
                    let released = self.release_queue(&lease);
                    match worked.and_then(|progress| released.map(|()| progress)) {
                        Ok(QueueEnd::Done) => has_settled = true,
                        Ok(QueueEnd::Paused) if !is_open => has_settled = true,
                        Ok(other) => return Ok(other),
                        // Somebody took over: they go on with it.
                        Err(LandError::Queue(QueueRefusal::Stale { .. })) => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(LandError::Queue(QueueRefusal::Held { .. }) | LandError::Outrun(_)) => {
                    self.trees.engine.store().wait(seq, GLANCE)?;
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
    ) -> Result<QueueEnd, LandError> {
        let blocked = self.recover_landings(lease)?;
        let lost = AtomicBool::new(false);
        thread::scope(|scope| {
            let renewing = self.keep_renewing(scope, lease, &lost);
            let worked = Turn::new(self, lease, mine, request, &lost)
                .without(&blocked)
                .work(scope);
            drop(renewing);
            let worked = worked?;
            blocked.require_none_of(mine)?;
            Ok(worked)
        })
    }

    /// Whether the repository's own settings are others by now than those that this process read.
    pub(super) fn settings_moved(&self) -> Result<bool, LandError> {
        let Some((branch, read)) = &self.trees.target else {
            return Ok(false);
        };
        let now = self.trees.place.repository().target(branch)?;
        let Some(now) = now.filter(|now| now.tip.as_str() != read) else {
            return Ok(false);
        };
        self.trees
            .vault()
            .require(&self.trees.main_refs()?, &[read, now.tip.as_str()])?;
        self.settings_differ(read, now.tip.as_str())
    }

    /// Whether two commits have other settings of the repository.
    pub(super) fn settings_differ(&self, one: &str, other: &str) -> Result<bool, LandError> {
        let asked = self
            .trees
            .vault()
            .git("diff-tree")
            .args(["--quiet", one, other, "--", SHARED_FILE])
            .output()?;
        Ok(!asked.status.success())
    }
}
