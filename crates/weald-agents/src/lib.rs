//! Agents: a task is claimed, a tree is there, a driver's command runs in it under a supervisor.
//!
//! `probing` asks for a sandbox first, `starting` claims and records, `placing` finds the tree (`ending` ends who was there before), `supervising` watches the command (with `output`, `activity`, `orders`, `silence`, and `terminals` for those that people attach to),
//! `reaping` notices supervisors that are gone, `views` is what people see, `records` is the rest. `drivers` know how agents are started and understood, `by_hand` is for those that a person runs.

mod briefing;
pub mod by_hand;
pub mod drivers;
mod ending;
mod error;
mod homes;
mod in_main;
mod leaving;
mod login;
mod orders;
mod output;
mod placing;
mod probing;
mod racing;
mod resuming;
mod silence;
mod spending;
mod starting;
mod supervising;
mod suspending;
mod terminals;
mod verdicts;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use drivers::fuzzing;

pub use briefing::Prepared;
pub use error::AgentError;
pub use homes::is_home_in_use;
pub use leaving::CheckoutState;
pub use output::{event_of, older};
pub use probing::is_temporary_inside;
pub use racing::EntryView;
pub use resuming::Resumption;
pub use supervising::Watched;
pub use terminals::attach;
pub use weald_control::agent_folder::{LOG_FILE, agent_folder};
pub use weald_control::agents::{
    Activity, AgentList, AgentQuery, AgentRequest, AgentSort, AgentView, RecordError, StageView,
    holder, newest_on, stages_in_words,
};

use weald_trees::Trees;

/// The agents of one repository.
pub struct Agents<'a> {
    trees: &'a Trees<'a>,
}

impl<'a> Agents<'a> {
    pub fn new(trees: &'a Trees<'a>) -> Self {
        Self { trees }
    }
}
