//! The life of an agent: started with its supervisor, watched, followed, and what comes of its work.

mod beginning;
mod empty;
mod following;
mod guest;
mod launching;
mod life;
mod phases;
mod race;
mod reporting;
pub mod rescue;
mod tail;
mod worker;

pub use beginning::{
    Beginning, begin, begin_in_main, can_start, defers, find, find_or_add, id_of, is_foreign_tree,
    place_of, require_begun, withdraw,
};
pub use following::follow;
pub use guest::Guest;
pub use launching::{
    SUPERVISOR_LOG, await_begin, enter, launch, put_back, start_in_main, tell_placed,
};
pub use life::live;
pub use phases::{Phases, PhasesEnd};
pub use race::{DroppedRace, drop_race, pick_entry, start_race};
pub use tail::Tail;
pub use worker::Worker;

use weald_core::agent::{Agent, AgentId};

use crate::{Failure, Ground};

/// Follows an agent until it has ended, and shows of it what a face shows.
pub type Follow<'f> = dyn Fn(&Ground, AgentId) -> Result<Agent, Failure> + 'f;
