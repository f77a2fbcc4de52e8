//! Agents: a task is claimed, a tree is there, a driver's command runs in it under a supervisor.
//!
//! `probing` asks for a sandbox first, `starting` claims and records, `placing` finds the tree (`ending` ends who was there before), `supervising` watches the command (with `output`, `activity`, `orders`, `silence`),
//! `reaping` notices supervisors that are gone, `views` is what people see, `records` is the rest. `drivers` know how agents are started and understood.

mod activity;
mod briefing;
pub mod drivers;
mod ending;
mod error;
mod holding;
mod in_main;
mod leaving;
mod orders;
mod output;
mod placing;
mod probing;
mod racing;
mod reaping;
mod records;
mod resuming;
mod silence;
mod stages;
mod starting;
mod supervising;
mod verdicts;
mod views;

pub use activity::Activity;
pub use briefing::Prepared;
pub use error::AgentError;
pub use holding::holder;
pub use leaving::CheckoutState;
pub use output::LOG_FILE;
pub use probing::is_temporary_inside;
pub use racing::EntryView;
pub use records::agent_folder;
pub(crate) use records::agents_folder;
pub use resuming::Resumption;
pub use stages::{StageView, stages_in_words};
pub use starting::AgentRequest;
pub use supervising::Watched;
pub use views::{AgentList, AgentQuery, AgentSort, AgentView};
