//! The control plane: what the store knows of tasks, sessions, messages, agents and events, each with the rules of the core;
//! the configuration; where a repository keeps its state, and which processes are alive.
//!
//! An operation reads what it decides on inside the transaction that writes the outcome; nothing that must exclude is kept in
//! memory; a failure of a derived file (journal, file views) never turns a committed change into an error.
//!
//! [`engine::Engine`] has one file a subject (`tasks`, `task_import`, `sessions`, `messages`, `events`, `board`, `agents/`);
//! [`place`] finds where the state is, `standing` distinguishes a repository from a copy of it, `marker` finds main from inside a
//! worktree; `configuration` reads the layers, `confinement` makes a sandbox's policy of them; `journal` is the log as lines,
//! `views` are the files of other systems, `machine` is the clock and the process table.

pub mod agent_folder;
pub mod agents;
pub mod approvals;
pub mod board;
pub mod claude_plugin;
pub mod claude_settings;
pub mod configuration;
pub mod confinement;
pub mod engine;
pub mod events;
pub mod excludes;
pub mod files;
pub mod hook_memory;
pub mod identity;
pub mod journal;
pub mod lookup;
pub mod loosening;
pub mod machine;
pub mod marker;
pub mod messages;
pub mod next_task;
pub mod place;
pub mod refusals;
pub mod sessions;
pub mod standing;
pub mod stashes;
pub mod steps;
pub mod task_import;
pub mod tasks;
pub mod tree_records;
pub mod views;
