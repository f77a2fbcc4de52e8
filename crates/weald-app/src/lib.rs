//! What weald offers: everything that a face (command line, broker, MCP, pages) may call.
//!
//! An operation gets a [`Call`]: who makes it, who hears of it meanwhile and what ends it early, on an [`App`], which is
//! where and with which settings. It answers with a value, or with a [`Failure`].
//!
//! [`Engine`] is what needs the store alone; [`Trees`], [`Landings`], [`Agents`] and [`Upkeep`] stand on each other and are
//! made of an engine, a [`Place`] and the configuration; [`run_if_inside`] is the half of this binary that runs in sandboxes.

#![warn(missing_docs)]

mod app;
mod asking;
mod authority;
mod background;
mod call;
pub mod called_as;
mod environment;
pub mod exit;
mod failure;
mod foreground;
mod git_view;
mod ground;
mod hidden_files;
pub mod landing;
mod lookup;
pub mod notifier;
pub mod notify;
pub mod operations;
mod project;
pub mod screen;
mod shown_diff;
pub mod supervision;
pub mod tracker;
mod wish;

pub use app::App;
pub use asking::{Ask, Report};
pub use authority::{Authority, Mandate, NotAllowed};
pub use call::{Call, MCP_MARK, progress, window};
pub use environment::Environment;
pub use failure::Failure;
pub use ground::Ground;
pub use project::{DetectedTool, INCLUDE_FILE, ProjectProposal, ProposedSetting};
pub use shown_diff::{Reader, ShownDiff};
pub use weald_agents as agents;
pub use weald_agents::{
    Activity, AgentError, AgentList, AgentQuery, AgentRequest, AgentSort, AgentView, Agents,
    CheckoutState, EntryView, LOG_FILE, Prepared, RecordError, Resumption, StageView, Watched,
    agent_folder, holder, stages_in_words,
};
pub use weald_control::board::{Board, KnownConflict};
pub use weald_control::claude_plugin;
pub use weald_control::claude_settings::worktree_settings;
pub use weald_control::configuration::{
    ConfigFileError, LoadedConfig, PRIVATE_FILE, SHARED_FILE, Sources, edit_file, load_config,
    load_own_config, remove_key, require_key,
};
pub use weald_control::confinement::{
    SandboxRequest, hidden_names, hidden_uses, home_layer_of, missing_registries, sandbox_policy,
    without_secrets,
};
pub use weald_control::engine::{Engine, Settings};
pub use weald_control::events::{JournalLine, read_journal, read_journal_end};
pub use weald_control::files::{is_program, open_own};
pub use weald_control::hook_memory::is_news;
pub use weald_control::identity::{
    Identity, IdentityError, IdentitySource, agent_above, agent_around, claude_session,
    codex_session, identify, person_of, program_above,
};
pub use weald_control::journal::JOURNAL_FILE;
pub use weald_control::loosening::{Loosening, loosening};
pub use weald_control::machine::{SystemClock, SystemProcesses};
pub use weald_control::messages::{InboxQuery, MessageError, ReplyOutcome};
pub use weald_control::place::{Place, PlaceError};
pub use weald_control::refusals::{refusals_told, refusals_with_hint};
pub use weald_control::sessions::{Contest, SessionError, SessionView};
pub use weald_control::standing::{CopyOf, Standing};
pub use weald_control::task_import::{BadLines, Imported};
pub use weald_control::tasks::{Claimed, Finished, NewTask, TaskDetail, TaskError};
pub use weald_integrations::{
    AppArmorProfile, ChangedConfig, Client, Direction, EditError, FileOutcome, GitLink, Homes,
    InstallError, Installation, Kept, KeptBecause,
};
pub use weald_integrations::{
    Source, SourceError, UpdateError, follow_for_tracker, has_failed_updates,
};
pub use weald_landing::{
    ApprovedCommit, ApprovedFile, Clash, CommitScope, Hunk, LandError, LandRequest, Landings,
    LeftConflict, Observed, OnConflict, PathConflict, QueueEnd, QueueView, Radar, Review, Told,
    Unknown, Unrecorded, Verification, WorkPatch, approval_folder, free_main, gate_log,
    last_output,
};
pub use weald_trees::{
    AdoptError, Adoption, Against, Binding, BranchExists, BranchOutcome, BroughtBack, ChangedFile,
    CommandResult, CreateOutcome, Created, Diff, DiffForm, DiffStyle, Dirty, Edit, Exited,
    ForeignTree, Found, Holder, Host, KeptCommit, KeptWork, NewTree, OwnProgram, Patience,
    PoolStatus, Population, Proposed, PurgeRequest, Purged, RemoveRequest, Removed, RunFolder,
    RunRequest, RunSandbox, ScopeError, SetupReport, SnapshotRestored, SnapshotView, SyncOutcome,
    Synced, TrashEntry, TreeError, TreePorts, TreeView, Trees, Trust, Wanted, Wishes, bound_for,
    quoted, read_only_home, run_if_inside,
};
pub use weald_upkeep::{
    AdoptedCopy, Became, Candidate, Checkup, CleanReport, CleanRequest, Code, Compared, Departure,
    Evicted, Finding, Freeing, Freshness, InTheWay, KeptTree, LockAtEnd, LockSweep, NotEvicted,
    NotTaken, Orphan, OrphanClass, OrphanOutcome, Outside, Overview, Present, Rebuilt,
    RecoveredTree, RevertedBy, RoomMode, SessionSweep, Severity, Skipped, Stale, SweepError,
    SweepLease, SweepMode, SweepReport, Sweeper, SweptSession, Taken, TaskProgress, TreeOverview,
    TreeUsage, UndoError, Undone, Upkeep, UsageReport, delete_departed, depart_copy,
    departed_folder, succeed,
};
pub use wish::LandWish;
