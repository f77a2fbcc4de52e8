//! The life of an agent: started with its supervisor, watched, followed, and what comes of its work.

mod attaching;
mod beginning;
mod empty;
mod following;
mod guest;
mod holding;
mod launching;
mod life;
mod limit;
mod phases;
mod race;
mod reporting;
pub mod rescue;
mod resuming;
mod retrying;
mod tail;
mod telling;
mod wish;
mod worker;
mod worker_behind;

pub use attaching::attach;
pub use beginning::{
    Beginning, begin, begin_in_main, can_start, defers, find, find_or_add, is_foreign_tree,
    place_of, require_begun, withdraw,
};
pub use following::{follow, follow_quietly, told_retry};
pub use guest::Guest;
pub use launching::{
    SUPERVISOR_LOG, await_begin, enter, launch, put_back, start_in_main, tell_placed,
};
pub use life::live;
pub use phases::{Phases, PhasesEnd};
pub use race::{drop_race, pick_entry, start_race};
pub use resuming::{continued, is_resumed, refuse_undecided, tell_again, tell_last};
pub use tail::Tail;
pub use telling::Look;
pub use wish::{AgentWish, typed_agent};
pub use worker::Worker;
pub use worker_behind::{BehindWorker, start_behind};
