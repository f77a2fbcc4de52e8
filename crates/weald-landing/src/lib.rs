//! Landing: a tree's commits reach the target through one queue, tested as exactly what lands.
//!
//! The queue's lease says who works it; its token is also a ref in main (the fence), so a holder that wakes up late can't
//! move anything. Candidates are made in the vault, without a checkout; the target and the checkout that it is checked out
//! in move together, or not at all.

mod approval;
mod beginning;
mod candidate;
mod check;
mod commit;
mod differences;
mod error;
mod fetch;
mod gate;
mod gitlinks;
mod interrupt;
mod lander;
mod large_files;
mod moving;
mod queue;
mod radar;
mod readiness;
mod refusal;
mod revert;
mod setbacks;
mod settle;
mod signing;
mod source;
mod unfinished;
mod verify;
mod waiting;
mod window;

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use weald_git::{Person, SigningConfig};

use weald_trees::Trees;

use differences::Difference;

pub use approval::{ApprovedCommit, ApprovedFile, Review, approval_folder};
pub use commit::CommitScope;
pub use error::LandError;
pub use gate::gate_log;
pub use lander::QueueEnd;
pub use moving::{FENCE, Leftover, LeftoverKind, plans};
pub use moving::{LeftConflict, free_main};
pub use queue::Lease;
pub use queue::QueueView;
pub use radar::{Clash, Hunk, Observed, PathConflict, Radar, Told, Unknown, WorkPatch};
pub use refusal::Refusal;
pub use setbacks::last_output;
pub use source::{LandRequest, OnConflict};
pub use verify::{Unrecorded, Verification};

/// The landings of one repository.
pub struct Landings<'a> {
    pub(crate) trees: &'a Trees<'a>,
    /// Who commits landings, once somebody asked.
    known_committer: OnceLock<Person>,
    /// How what lands is signed, once somebody asked.
    known_signing: OnceLock<SigningConfig>,
    /// Where the main checkout is, once somebody asked: `None` in a bare repository, `Some(None)` at an unknown place.
    known_main: OnceLock<Option<Option<PathBuf>>>,
    /// What differs between the two commits that were compared last.
    known_difference: Mutex<Option<Difference>>,
}

impl<'a> Landings<'a> {
    pub fn new(trees: &'a Trees<'a>) -> Self {
        Self {
            trees,
            known_committer: OnceLock::new(),
            known_signing: OnceLock::new(),
            known_main: OnceLock::new(),
            known_difference: Mutex::default(),
        }
    }
}
