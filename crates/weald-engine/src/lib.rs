//! The façade: performs what the core decides, in one transaction each, and keeps the derived files behind it.
//!
//! Invariants: an operation reads what it decides on inside the transaction that writes the outcome; nothing that must
//! exclude is kept in memory; a failure of a derived file (the journal) never turns a committed change into an error.
//!
//! Code map: [`Engine`] with one file a subject (`tasks`, `task_import`, `sessions`, `messages`, `events`, `board`);
//! [`Place`] finds where a repository's state lives; [`load_config`] reads the layers; `journal` is the JSONL copy,
//! `views` are the files of other systems, `sources` speaks to the tracker that tasks come from;
//! [`Trees`] makes, watches and removes trees; [`SystemClock`] and [`SystemProcesses`] are the machine.

pub use weald_agents as agents;
mod install;

mod sources;


pub use weald_control::claude_plugin;
pub(crate) use weald_control::{
    board, claude_settings, configuration, confinement, engine, events, excludes, files,
    hook_memory, identity, journal, loosening, machine, marker, messages, place, sessions,
    standing, stashes, steps, task_import, tasks, tree_records, views,
};
pub(crate) use weald_landing as landing;
pub(crate) use weald_trees as trees;
pub(crate) use weald_upkeep as upkeep;

pub use agents::{
    Activity, AgentError, AgentList, AgentQuery, AgentRequest, AgentSort, AgentView, Agents,
    CheckoutState, EntryView, LOG_FILE, Prepared, RecordError, Resumption, StageView, Watched,
    agent_folder, holder, stages_in_words,
};
pub use board::{Board, KnownConflict};
pub use claude_settings::worktree_settings;
pub use configuration::{
    ConfigFileError, LoadedConfig, PRIVATE_FILE, SHARED_FILE, Sources, edit_file, load_config,
    load_own_config, remove_key, require_key,
};
pub use confinement::{
    SandboxRequest, hidden_names, hidden_uses, home_layer_of, sandbox_policy, without_secrets,
};
pub use engine::{Engine, Settings};
pub use events::{JournalLine, read_journal, read_journal_end};
pub use files::{is_program, open_own};
pub use hook_memory::is_news;
pub use identity::{
    Identity, IdentityError, IdentitySource, agent_above, agent_around, claude_session,
    codex_session, identify, program_above,
};
pub use install::{
    ChangedConfig, Client, Direction, EditError, FileOutcome, GitLink, Homes, InstallError,
    Installation, Kept, KeptBecause,
};
pub use journal::JOURNAL_FILE;
pub use landing::{
    ApprovedCommit, ApprovedFile, Clash, CommitScope, Hunk, LandError, LandRequest, Landings,
    LeftConflict, Observed, OnConflict, PathConflict, Progress, QueueView, Radar, Review, Told,
    Unknown, Unrecorded, Verification, WorkPatch, approval_folder, free_main,
};
pub use loosening::{Loosening, loosening};
pub use machine::{SystemClock, SystemProcesses};
pub use messages::{InboxQuery, MessageError, ReplyOutcome};
pub use place::{Place, PlaceError};
pub use sessions::{Contest, SessionError, SessionView};
pub use sources::{Source, SourceError, TellingError, follow_for_tracker, has_untold};
pub use standing::{CopyOf, Standing};
pub use steps::STEPS;
pub use task_import::{BadLines, Imported};
pub use tasks::{Claimed, Finished, NewTask, TaskDetail, TaskError};
pub use trees::{
    AdoptError, Adoption, Against, Binding, BranchExists, BranchOutcome, BroughtBack, ChangedFile,
    CommandResult, Created, Diff, DiffStyle, Dirty, Edit, Exited, ForeignTree, Holder, Host,
    KeptCommit, KeptWork, Look, NewTree, Outcome, OwnProgram, Patience, PoolStatus, Population,
    Proposed, PurgeRequest, Purged, RemoveRequest, Removed, RunFolder, RunRequest, RunSandbox,
    ScopeError, SetupReport, SnapshotRestored, SnapshotView, Synced, TrashEntry, TreeError,
    TreePorts, TreeView, Trees, Trust, Wanted, Wishes, bound_for, quoted, read_only_home,
    run_if_inside,
};
pub use upkeep::{
    AdoptedCopy, Candidate, CleanReport, CleanRequest, Code, Compared, Evicted, Finding, Freeing,
    Freshness, GroundCheck, KeptTree, LockAtEnd, LockSweep, NotEvicted, NotTaken, Orphan,
    OrphanClass, Outside, Overview, Present, Rebuilt, RecoveredTree, RevertedBy, RoomMode,
    SessionSweep, Severity, Skipped, Stale, SweepError, SweepLease, SweepMode, SweepReport,
    Sweeper, SweptSession, Taken, TaskProgress, TreeOverview, TreeUsage, Undone, Upkeep,
    UsageReport, succeed,
};
