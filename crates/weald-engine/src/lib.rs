//! The façade: performs what the core decides, in one transaction each, and keeps the derived files behind it.
//!
//! Invariants: an operation reads what it decides on inside the transaction that writes the outcome; nothing that must
//! exclude is kept in memory; a failure of a derived file (the journal) never turns a committed change into an error.
//!
//! Code map: [`Engine`] with one file a subject (`tasks`, `task_import`, `sessions`, `messages`, `events`, `board`);
//! [`Place`] finds where a repository's state lives; [`load_config`] reads the layers; `journal` is the JSONL copy,
//! `views` are the files of other systems;
//! [`Trees`] makes, watches and removes trees; [`SystemClock`] and [`SystemProcesses`] are the machine.

pub mod agents;
mod board;
mod configuration;
mod confinement;
mod engine;
mod events;
mod excludes;
mod files;
mod identity;
mod journal;
mod landing;
mod loosening;
mod machine;
mod marker;
mod messages;
mod place;
mod sessions;
mod steps;
mod task_import;
mod tasks;
mod trees;
mod views;

pub use agents::{
    Activity, AgentError, AgentList, AgentQuery, AgentRequest, AgentSort, AgentView, EntryView,
    LOG_FILE, Prepared, Resumption, StageView, Watched, agent_folder, holder, stages_in_words,
};
pub use board::{Board, KnownConflict};
pub use configuration::{
    ConfigFileError, LoadedConfig, PRIVATE_FILE, SHARED_FILE, Sources, edit_file, load_config,
    load_own_config, remove_key, require_key,
};
pub use confinement::{SandboxRequest, sandbox_policy};
pub use engine::{Engine, Settings};
pub use events::{JournalLine, read_journal, read_journal_end};
pub use identity::{Identity, IdentityError, IdentitySource, agent_above, identify};
pub use journal::JOURNAL_FILE;
pub use landing::{
    ApprovedCommit, ApprovedFile, Clash, CommitScope, Hunk, LANDING_STEPS, LandError, LandRequest,
    LeftConflict, Observed, OnConflict, PathConflict, Progress, QueueView, Radar, Review, Told,
    Unknown, Unrecorded, Verification, WorkPatch, approval_folder,
};
pub use loosening::{Loosening, loosening};
pub use machine::{SystemClock, SystemProcesses};
pub use messages::{InboxQuery, MessageError, ReplyOutcome};
pub use place::{Place, PlaceError};
pub use sessions::{Contest, SessionError, SessionView};
pub use task_import::Imported;
pub use tasks::{Claimed, Finished, NewTask, TaskDetail, TaskError};
pub use trees::{
    AdoptError, Adoption, Against, Binding, BranchExists, BranchOutcome, ChangedFile,
    CommandResult, Created, Diff, DiffStyle, Dirty, Exited, Finding, ForeignTree, Freshness, Host,
    Look, NewTree, Outcome, Overview, OwnProgram, Patience, PoolStatus, Population, Proposed,
    Purged, RemoveRequest, Removed, RunFolder, RunRequest, RunSandbox, ScopeError, SetupReport,
    Severity, SnapshotRestored, SnapshotView, Synced, TaskProgress, TrashEntry, TreeError,
    TreeOverview, TreePorts, TreeView, Trees, Trust, run_if_inside,
};
