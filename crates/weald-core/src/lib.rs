//! The pure heart of weald: types, state machines, decisions, and the contract of a store.
//!
//! Invariants: no file, process, clock, randomness or thread is touched here. A decision is a function
//! `(state, input, now) -> Result<(state, change), refusal>`; layers further out perform it.
//!
//! Code map: [`task`], [`tree`], [`agent`], [`session`], [`message`], [`landing`] and [`queue`] hold the records, a module of
//! `_rules` for each what may happen to them; [`maintenance`] is a lease of its own in the queue's record; [`dependencies`],
//! [`landed`] and [`phases`] say what follows; [`event`] the log; [`store`] the contract of a backend; [`id`], [`name`] and
//! [`naming`] what things may be called; [`config`] the keys; [`import`] tasks from elsewhere; [`file_view`] files for other
//! tools. [`setup`] and [`ports`] what a new tree gets; [`radar`] which trees may clash; [`sweep`] what goes by itself;
//! [`eviction`] what goes for want of room; [`role`] whose it is to change; [`reading`] what no line may hold.

pub mod agent;
pub mod agent_rules;
pub mod agent_view;
pub mod approval;
pub mod attention;
pub mod binding;
mod choice;
pub mod claude;
pub mod clean;
pub mod cloud_event;
pub mod config;
pub mod cost;
pub mod dependencies;
pub mod error_code;
pub mod event;
pub mod eviction;
pub mod file_view;
pub mod git_diff;
pub mod hosts;
pub mod id;
pub mod import;
pub mod kept_change;
pub mod kill_switch;
pub mod landed;
pub mod landing;
pub mod landing_message;
pub mod landing_rules;
pub mod maintenance;
pub mod meant;
pub mod message;
pub mod message_rules;
pub mod name;
pub mod naming;
pub mod nearest;
pub mod needs;
pub mod objections;
pub mod phases;
pub mod ports;
pub mod preconditions;
pub mod project;
pub mod prompt;
pub mod queue;
pub mod queue_rules;
pub mod races;
pub mod radar;
pub mod reading;
pub mod rebuild;
pub mod resuming;
pub mod retrying;
pub mod role;
pub mod secrets;
pub mod session;
pub mod session_rules;
pub mod setback;
pub mod setup;
pub mod signature;
pub mod source;
pub mod store;
pub mod sweep;
pub mod task;
mod task_refusal;
pub mod task_rules;
pub mod thinning;
pub mod tree;
pub mod tree_rules;
pub mod undo;
pub mod verdict;

pub use jiff::civil::Date;
pub use jiff::tz::TimeZone;
pub use jiff::{SignedDuration, Timestamp};
