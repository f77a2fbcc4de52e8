//! Agents as the store knows them: their records, the claims they work under, what is seen of them.
//!
//! `claiming` claims a task and records its agent in one step, `holding` is one claim for several agents, `reaping` notices
//! supervisors that are gone, `views` is what people see, `stages` the phases of a task, `records` the rest.

mod activity;
mod claiming;
mod error;
mod holding;
mod reaping;
mod records;
mod spending;
mod stages;
mod transcript;
mod views;

pub use activity::Activity;
pub use claiming::AgentRequest;
pub use error::RecordError;
pub use holding::holder;
pub use records::newest_on;
pub use stages::{StageView, stages_in_words};
pub use transcript::{Entry, Event, TRANSCRIPT_FILE};
pub use views::{AgentList, AgentQuery, AgentSort, AgentView};
