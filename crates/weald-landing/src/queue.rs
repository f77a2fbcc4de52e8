//! The queue: what waits in it, who works it, and who may say so.
//!
//! Every step of a landing carries the token of the lease it is made under, and is checked in the transaction that
//! records it: a process that lost the lease records nothing any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::Scope;
use std::time::Duration;

use weald_core::id::{LandingId, Token};
use weald_core::landing::{Landing, LandingInput};
use weald_core::landing_rules;
use weald_core::queue::{Queue, QueueInput, QueuePause, QueueRefusal};
use weald_core::queue_rules;
use weald_core::session::ProcessState;
use weald_core::store::{Durability, Write};
use weald_git::{Commit, between_steps};

use super::LandError;
use super::moving::FENCE;
use crate::Landings;
use crate::refusal::Refusal;

/// The right to work the queue.
pub struct Lease {
    pub token: Token,
    /// What the fence in main holds for it.
    pub fence: String,
}

/// The queue as people see it.
#[derive(Debug, Clone)]
pub struct QueueView {
    pub queue: Queue,
    /// What has not ended, in order.
    pub open: Vec<Landing>,
    /// What landed, and whose process did not come to what follows from it.
    pub unsettled: Vec<Landing>,
    /// Whether the process that works it lives, as far as can be told.
    pub is_worked: bool,
}

impl Landings<'_> {
    /// What waits, and who works it.
    pub fn queue(&self) -> Result<QueueView, LandError> {
        let (queue, landings) = self
            .trees
            .engine
            .look(|tx| Ok::<_, LandError>((tx.queue()?, tx.open_landings()?)))?;
        let holder = queue.holder.as_ref();
        let (unsettled, open) = landings.into_iter().partition(Landing::is_unsettled);
        Ok(QueueView {
            is_worked: holder.is_some_and(|holder| self.trees.may_live(&holder.process)),
            queue,
            open,
            unsettled,
        })
    }

    pub fn landing(&self, id: LandingId) -> Result<Landing, LandError> {
        self.trees
            .engine
            .look(|tx| tx.landing(id))?
            .ok_or(LandError::NoLanding(id))
    }

    /// The last landings, newest first.
    pub fn landings(&self, limit: usize) -> Result<Vec<Landing>, LandError> {
        let mut all = self.trees.engine.look(|tx| tx.landings())?;
        all.reverse();
        all.truncate(limit);
        Ok(all)
    }

    /// Lets nothing land until [`Trees::resume_queue`]. What is being moved at this moment still lands.
    pub fn pause_queue(&self, reason: &str) -> Result<Queue, LandError> {
        let by = self.trees.actor().cloned();
        self.change_queue(Durability::Process, |now| {
            QueueInput::Pause(QueuePause {
                reason: reason.to_owned(),
                by,
                at: now,
            })
        })
    }

    /// Lets things land again.
    pub fn resume_queue(&self) -> Result<Queue, LandError> {
        self.change_queue(Durability::Process, |_| QueueInput::Resume)
    }

    /// Takes a landing out of the queue. The tree stays as it is.
    pub fn drop_landing(&self, id: LandingId) -> Result<Landing, LandError> {
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                let current = tx.landing(id)?.ok_or(LandError::NoLanding(id))?;
                let (dropped, change) =
                    landing_rules::decide(&current, LandingInput::Drop, tx.now())?;
                tx.record(self.trees.actor(), change)?;
                Ok(dropped)
            })
    }

    fn change_queue(
        &self,
        durability: Durability,
        input: impl FnOnce(weald_core::Timestamp) -> QueueInput,
    ) -> Result<Queue, LandError> {
        self.trees
            .engine
            .change(self.trees.actor(), durability, |tx| {
                let (queue, change) = queue_rules::decide(&tx.queue()?, input(tx.now()), tx.now())?;
                tx.record(self.trees.actor(), change)?;
                Ok(queue)
            })
    }

    /// Takes the lease and moves the fence.
    pub fn take_queue(&self) -> Result<Lease, LandError> {
        let process = self.trees.me().ok_or(Refusal::NoProcessTable)?;
        let ttl = self.trees.config.landing_lease;
        let (taken, was_free) =
            self.trees
                .engine
                .change(self.trees.actor(), Durability::Process, |tx| {
                    let queue = tx.queue()?;
                    let was_free = queue.holder.is_none();
                    let holder = match &queue.holder {
                        Some(held) => self.trees.engine.processes.state(&held.process),
                        None => ProcessState::Gone,
                    };
                    let take = QueueInput::Take {
                        process: process.clone(),
                        session: self.trees.actor().cloned(),
                        ttl,
                        holder,
                    };
                    let (queue, change) = queue_rules::decide(&queue, take, tx.now())?;
                    tx.record(self.trees.actor(), change)?;
                    Ok::<_, LandError>((queue, was_free))
                })?;
        let lease = Lease {
            token: taken.token,
            fence: String::new(),
        };
        // Who gave the queue back moves nothing any more: nobody has to be fenced off.
        let held = self.held_fence().filter(|_| was_free);
        match held.map_or_else(|| self.move_fence(lease.token), Ok) {
            Ok(fence) => Ok(Lease { fence, ..lease }),
            Err(error) => {
                let _ = self.release_queue(&lease);
                Err(error)
            }
        }
    }

    /// What the fence holds, if it can stay as it is. In tables a ref can't be moved to a blob that was pruned.
    fn held_fence(&self) -> Option<String> {
        if self.trees.place.repository().has_reftable() {
            let held = self.fence().ok().flatten()?;
            let token = self.token_in(&held).ok().flatten();
            return token.map(|_| held);
        }
        let file = self.trees.place.repository().common_dir().join(FENCE);
        let text = weald_control::files::read_small(&file, 256)
            .ok()
            .flatten()?;
        Commit::parse(text.trim()).map(|id| id.as_str().to_owned())
    }

    /// Gives the lease back; somebody else's is left alone.
    pub fn release_queue(&self, lease: &Lease) -> Result<(), LandError> {
        let token = lease.token;
        match self.change_queue(Durability::Process, |_| QueueInput::Release { token }) {
            Ok(_) | Err(LandError::Queue(QueueRefusal::Stale { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Renews the lease until the answer is dropped; `lost` tells when somebody else has it.
    pub(crate) fn keep_renewing<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        lease: &Lease,
        lost: &'scope AtomicBool,
    ) -> mpsc::Sender<()> {
        let (sender, receiver) = mpsc::channel::<()>();
        let (token, ttl) = (lease.token, self.trees.config.landing_lease);
        let pause = Duration::try_from(ttl).unwrap_or_default() / 3;
        scope.spawn(move || {
            while receiver.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
                let renew =
                    || self.change_queue(Durability::Process, |_| QueueInput::Renew { token, ttl });
                let renewed = between_steps(renew);
                if let Err(LandError::Queue(QueueRefusal::Stale { .. })) = renewed {
                    lost.store(true, Ordering::Release);
                    return;
                }
            }
        });
        sender
    }

    /// One step of a landing, under the lease.
    pub(crate) fn advance(
        &self,
        lease: &Lease,
        id: LandingId,
        durability: Durability,
        input: LandingInput,
    ) -> Result<Landing, LandError> {
        self.trees
            .engine
            .change(self.trees.actor(), durability, |tx| {
                queue_rules::check_token(&tx.queue()?, lease.token)?;
                self.step_landing(tx, id, input)
            })
    }

    /// The end of a landing that did not happen, with what it means for its task.
    pub(crate) fn end_unlanded(
        &self,
        lease: &Lease,
        id: LandingId,
        input: LandingInput,
    ) -> Result<Landing, LandError> {
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                queue_rules::check_token(&tx.queue()?, lease.token)?;
                let ended = self.step_landing(tx, id, input)?;
                self.unland_task(tx, &ended)?;
                Ok(ended)
            })
    }

    /// The same inside a transaction whose lease was checked.
    pub(crate) fn step_landing(
        &self,
        tx: &mut dyn Write,
        id: LandingId,
        input: LandingInput,
    ) -> Result<Landing, LandError> {
        let current = tx.landing(id)?.ok_or(LandError::NoLanding(id))?;
        let (landing, change) = landing_rules::decide(&current, input, tx.now())?;
        tx.record(self.trees.actor(), change)?;
        Ok(landing)
    }
}
