//! `weald sweep`: what is left over goes, one cycle a call.
//!
//! Locks that outlived their task, leases and sessions of the dead, and files that nobody owns any more. One sweep at a time,
//! by a lease in the store. Nothing here removes a tree or a byte of anybody's work. The queue's lease stays: whoever takes
//! that over also moves the fence, and a lease that was merely given back would not be fenced off.

mod locks;
mod release;
mod sessions;

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::id::{TaskId, Token};
use weald_core::maintenance::{self, MaintenanceRefusal};
use weald_core::queue::QueueHolder;
use weald_core::session::{ProcessIdentity, ProcessState};
use weald_core::store::{Durability, StoreError, Write};
use weald_core::tree::Tree;

use crate::Upkeep;
use crate::finding::Found;
use crate::leftovers;
use crate::survey::Survey;
use weald_control::engine::Engine;
use weald_control::steps::step;
use weald_control::tasks::TaskError;
use weald_trees::TreeError;

pub use locks::{KeptTree, LockSweep, Outside};
pub use release::LockAtEnd;
pub use sessions::{Became, SessionSweep, SweptSession};

/// Why a sweep did not happen.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another sweep goes on, or took over.
    #[error(transparent)]
    Refused(#[from] MaintenanceRefusal),
    /// A task did not move.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A tree did not move.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// This process can't be named, so nobody could take over from it.
    #[error("/proc does not identify this process")]
    NoIdentity,
}

/// Whether a sweep does what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepMode {
    Apply,
    DryRun,
}

/// The right to sweep.
#[derive(Debug, Clone, Copy)]
pub struct SweepLease {
    token: Token,
    ttl: SignedDuration,
}

/// What a cycle did, or would do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SweepReport {
    /// Whether it did it.
    pub applied: bool,
    /// What became of locks.
    #[serde(flatten)]
    pub locks: LockSweep,
    /// Tasks that were given back: their lease ran out, and who held it is dead.
    pub leases: Vec<TaskId>,
    /// Sessions that ended, or that nobody has heard of.
    pub sessions: Vec<SweptSession>,
    /// Blocks of ports that were held for trees that are gone.
    pub ports: usize,
    /// Spares that nobody can use, and half-made ones.
    pub spares: usize,
    /// Folders of runs, and trees of gates, whose process is gone.
    pub runs: usize,
    /// Private folders of agents whose tree is gone.
    pub homes: usize,
    /// Logins that an agent left behind because its supervisor was killed.
    pub logins: usize,
    /// Layers of package managers' caches of trees that are gone.
    pub caches: usize,
    /// What could not be cleared away; the next cycle tries again.
    pub failed: Vec<String>,
}

/// The half of a sweep that needs no more than the store and the process table.
pub struct Sweeper<'a>(pub &'a Engine);

impl Sweeper<'_> {
    /// Takes the lease of maintenance, or says who has it.
    pub fn take_maintenance(
        &self,
        process: ProcessIdentity,
        ttl: SignedDuration,
    ) -> Result<SweepLease, SweepError> {
        self.0.change(None, Durability::Process, |tx| {
            let queue = tx.queue()?;
            let state = match &queue.maintenance.holder {
                Some(held) => self.0.processes.state(&held.process),
                None => ProcessState::Gone,
            };
            let taker = QueueHolder {
                process,
                session: None,
                acquired_at: tx.now(),
                expires_at: tx.now(),
            };
            let (queue, change) = maintenance::take(&queue, taker, state, ttl, tx.now())?;
            tx.record(None, change)?;
            let token = queue.maintenance.token;
            Ok(SweepLease { token, ttl })
        })
    }

    /// Holds the lease longer; refused once somebody else has it.
    pub fn renew_maintenance(&self, lease: &SweepLease) -> Result<(), SweepError> {
        self.0.change(None, Durability::Process, |tx| {
            let (_, change) = maintenance::renew(&tx.queue()?, lease.token, lease.ttl, tx.now())?;
            tx.record(None, change)?;
            Ok(())
        })
    }

    /// Gives the lease back; somebody else's is left alone.
    pub fn release_maintenance(&self, lease: &SweepLease) -> Result<(), SweepError> {
        let released = self.0.change(None, Durability::Process, |tx| {
            let (_, change) = maintenance::release(&tx.queue()?, lease.token)?;
            tx.record(None, change)?;
            Ok(())
        });
        match released {
            Err(SweepError::Refused(MaintenanceRefusal::Lost)) => Ok(()),
            other => other,
        }
    }
}

/// Refuses a sweep that lost its lease, in the transaction that would change something.
fn require_lease(tx: &dyn Write, lease: Option<&SweepLease>) -> Result<(), SweepError> {
    if let Some(lease) = lease {
        maintenance::require_holder(&tx.queue()?, lease.token)?;
    }
    Ok(())
}

impl Upkeep<'_> {
    pub fn sweep(&self, mode: SweepMode) -> Result<SweepReport, SweepError> {
        let lease = match mode {
            SweepMode::DryRun => None,
            SweepMode::Apply => {
                let me = self.trees.me().ok_or(SweepError::NoIdentity)?;
                let ttl = self.trees.config.sweep_lease;
                Some(Sweeper(self.trees.engine).take_maintenance(me, ttl)?)
            }
        };
        step("sweep.taken");
        let swept = self.sweep_under(lease.as_ref());
        if let Some(lease) = &lease {
            Sweeper(self.trees.engine).release_maintenance(lease)?;
        }
        swept
    }

    fn sweep_under(&self, lease: Option<&SweepLease>) -> Result<SweepReport, SweepError> {
        let sweeper = Sweeper(self.trees.engine);
        let survey = Survey::new(self.trees, &[]);
        let cycle = self.trees.config.sweep_cycle;
        let outside = |tree: &Tree| Outside {
            foreign_lock: self.trees.foreign_lock(tree),
            standing: survey.process_in(&tree.path),
        };
        let sessions = sweeper.sweep_sessions(lease)?;
        let mut report = SweepReport {
            applied: lease.is_some(),
            leases: sessions.leases,
            sessions: sessions.sessions,
            locks: sweeper.sweep_locks(cycle, lease, &outside)?,
            ..SweepReport::default()
        };
        if lease.is_some() && !report.locks.unlocked.is_empty() {
            step("sweep.unlocked");
        }
        // After the record: git shows what it says.
        for name in lease.iter().flat_map(|_| &report.locks.unlocked) {
            if let Err(error) = self.trees.show_no_lock(name) {
                report.failed.push(error.to_string());
            }
        }
        let failed = &mut report.failed;
        let mut clear = |found| self.clear(lease, found, failed);
        report.ports = clear(leftovers::ports(&survey))?;
        report.runs = clear(leftovers::runs(&survey))? + clear(leftovers::gates(&survey))?;
        report.homes = clear(leftovers::homes(&survey))?;
        // Deletions take a while, and an agent that began meanwhile needs its login.
        report.logins = clear(leftovers::logins(&Survey::new(self.trees, &[])))?;
        report.caches = clear(leftovers::caches(&survey))?;
        report.spares = clear(leftovers::spares(&survey))?;
        Ok(report)
    }

    /// Clears it all away, if this is no dry run, and counts it. The lease is renewed before each: who lost it stops.
    fn clear(
        &self,
        lease: Option<&SweepLease>,
        found: Found,
        failed: &mut Vec<String>,
    ) -> Result<usize, SweepError> {
        let found = found.unwrap_or_else(|error| {
            failed.push(error.to_string());
            Vec::new()
        });
        let Some(lease) = lease else {
            return Ok(found.len());
        };
        let mut done = 0;
        for repair in found.into_iter().filter_map(|finding| finding.repair) {
            Sweeper(self.trees.engine).renew_maintenance(lease)?;
            match repair.perform(self.trees.place, Some(self.trees)) {
                Ok(()) => done += 1,
                Err(error) => failed.push(error.to_string()),
            }
            step("sweep.leftover");
        }
        Ok(done)
    }
}
