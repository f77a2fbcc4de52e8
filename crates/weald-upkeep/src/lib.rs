//! Upkeep: what is left over goes, what broke is repaired, what was done is taken back.

mod clean;
mod codes;
mod copied;
mod deinit;
mod doctor;
mod finding;
mod leftovers;
mod overview;
mod rebuild;
mod recover;
mod repair;
mod survey;
mod sweep;
mod undo;
mod usage;
mod whereabouts;

pub use clean::{
    Candidate, CleanReport, CleanRequest, NotTaken, Orphan, OrphanClass, OrphanOutcome, Skipped,
    Stale, Taken,
};
pub use codes::{Code, Severity};
pub use copied::AdoptedCopy;
pub use deinit::{Departure, InTheWay, delete_departed, depart_copy, departed_folder};
pub use doctor::Checkup;
pub use finding::Finding;
pub use overview::{Freshness, Overview, TaskProgress, TreeOverview};
pub use rebuild::{Compared, Present, Rebuilt, RecoveredTree, succeed};
pub use sweep::{
    Became, KeptTree, LockAtEnd, LockSweep, Outside, SessionSweep, SweepError, SweepLease,
    SweepMode, SweepReport, Sweeper, SweptSession,
};
pub use undo::{RevertedBy, UndoError, Undone};
pub use usage::{Evicted, Freeing, NotEvicted, RoomMode, TreeUsage, UsageReport};

use weald_core::event::Change;
use weald_core::id::Seq;
use weald_core::store::{Durability, StoreError};
use weald_landing::Landings;
use weald_trees::Trees;

/// The upkeep of one repository.
pub struct Upkeep<'a> {
    pub(crate) trees: &'a Trees<'a>,
    pub(crate) landings: Landings<'a>,
}

impl<'a> Upkeep<'a> {
    pub fn new(trees: &'a Trees<'a>) -> Self {
        Self {
            trees,
            landings: Landings::new(trees),
        }
    }

    /// Records one change in the caller's name.
    pub(crate) fn record(&self, durability: Durability, change: Change) -> Result<Seq, StoreError> {
        let actor = self.trees.actor();
        let engine = self.trees.engine;
        engine.change(actor, durability, |tx| tx.record(actor, change))
    }
}
