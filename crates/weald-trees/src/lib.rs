//! Trees: make them, look at them, work in them, set them aside, and never lose a byte of them.
//!
//! The host opens nothing in a tree but what [`weald_git::Door`] allows; whatever else has to be read or written in one
//! runs as a visit: the `inside` half in the tree's sandbox, the `visit` half here. Each operation on disk stands
//! between two records in the store, so a crash leaves an intent that `doctor` finishes or takes back.

mod adopt;
mod binding;
pub mod building;
mod chores;
mod configurations;
mod create;
mod departing;
mod differences;
mod enter;
mod error;
mod existing;
pub mod fetching;
mod found;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gate_tree;
mod glance;
mod guard;
mod half_made;
mod hanging;
mod import;
mod inner;
pub mod inside;
mod interruption;
mod keep;
mod kept_work;
mod large_files;
mod layout;
mod locking;
mod main_refs;
mod new_tree;
mod overhearing;
mod own_program;
mod owned;
mod places;
mod planning;
mod pool;
mod populating;
mod ports;
mod privacy;
pub mod purging;
mod recreate;
pub mod remove;
mod renamed;
pub mod repairs;
mod reserve;
mod restore;
pub mod run;
mod run_folder;
mod scope;
mod setup;
mod setup_report;
pub mod side_by_side;
mod site;
mod snapshots;
mod startable;
pub mod submodules;
mod sync;
mod target_watch;
mod timer;
mod turns;
pub mod unlanded;
mod unseen;
mod untrusted;
mod vault_keeper;
pub mod view;
mod visit;
mod wishes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use weald_core::Timestamp;
use weald_core::config::{Config, Slashes};
use weald_core::event::Change;
use weald_core::id::TaskId;
use weald_core::name::{SessionName, TreeName};
use weald_core::session::{ProcessIdentity, ProcessState};
use weald_core::store::{Durability, Read, StoreError, Write};
use weald_core::tree::{Tree, TreeStatus};
use weald_core::tree_rules::{self, TreeInput};
use weald_git::{GitError, Keeper, MainRef, Registration, Registrations, Repository};
use weald_sandbox::Cancel;

use weald_control::engine::Engine;
use weald_control::machine;
use weald_control::place::Place;

use chores::Chores;
pub(crate) use weald_control::marker::hash_of;
pub(crate) use weald_control::tree_records::called;

pub use adopt::{Adoption, ForeignTree, quoted};
pub use binding::Binding;
pub use departing::KeptBranch;
pub use differences::Against;
pub use differences::TEXT_LIMIT as DIFF_LIMIT;
pub use enter::Exited;
pub use error::{AdoptError, Holder, TreeError};
pub use found::Found;
pub use gate_tree::{GATES, GateTree};
pub use guard::{Edit, bound_for};
pub use inside::{ChangedFile, Diff, DiffForm, DiffStyle, Look, run_if_inside};
pub use kept_work::{BroughtBack, KeptCommit, KeptWork, Wanted};
pub use locking::{SEALED, has_task_lock, is_own_lock, locked_text};
pub use new_tree::{BranchExists, CreateOutcome, Created, NewTree};
pub use own_program::OwnProgram;
pub use pool::{Patience, PoolStatus, Population};
pub use ports::TreePorts;
pub use remove::{BranchOutcome, RemoveRequest, Removed};
pub use restore::{PurgeRequest, Purged, TrashEntry};
pub use run::use_login_layer;
pub use run::{RunEnd, RunRequest, RunSandbox, read_only_home};
pub use run_folder::RunFolder;
pub use scope::ScopeError;
pub use setup::Step;
pub use setup::{Proposed, Trust};
pub use setup_report::{CommandResult, SetupReport};
pub use site::{Site, identity_of, leads_to};
pub use snapshots::{SnapshotRestored, SnapshotView};
pub use sync::{SyncOutcome, Synced};
pub use view::{Dirty, TreeView};
pub use weald_sandbox::delete_folder as delete;
pub use wishes::Wishes;

/// What the machine and the caller have.
#[derive(Debug, Clone)]
pub struct Host {
    pub home: Option<PathBuf>,
    pub cache: PathBuf,
    /// Where the user's index of trees is.
    pub state: Option<PathBuf>,
    /// This binary, to be started again inside sandboxes.
    pub helper: PathBuf,
    /// The caller's environment, without git's own variables.
    pub environment: Vec<(OsString, OsString)>,
    /// Where the caller is.
    pub directory: PathBuf,
    pub actor: Option<SessionName>,
    /// Where the output of a set-up goes, and of hooks that take their time.
    pub narration: fn() -> Box<dyn io::Write + Send>,
    /// What may ask for the end of whatever is done with the trees.
    pub cancel: Cancel,
    /// Ends the landing that holds main's refs though its lease has run out; true when they are free.
    pub free_main: fn(&Trees<'_>) -> bool,
}

impl Host {
    /// A variable of the caller's environment.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsString> {
        let mut known = self.environment.iter();
        known
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

/// The trees of one repository.
#[derive(Clone)]
pub struct Trees<'a> {
    pub engine: &'a Engine,
    pub place: &'a Place,
    pub config: &'a Config,
    pub target: Option<(String, String)>,
    pub host: Host,
    /// Main's refs, where one command looks at many trees.
    pub(crate) known_refs: Option<Vec<MainRef>>,
    /// Commits with their git trees, once somebody asked.
    pub(crate) known_trees: Arc<Mutex<BTreeMap<String, String>>>,
    /// How this process holds the vault, once it did.
    pub(crate) known_keeper: OnceLock<Keeper>,
    pub(crate) chores: Arc<Chores>,
    /// What trees that are made now are to have besides.
    pub(crate) wishes: Wishes,
}

impl<'a> Trees<'a> {
    /// The trees of the repository at `place`. `target` is the branch that work lands on, and its tip.
    pub fn new(
        engine: &'a Engine,
        place: &'a Place,
        config: &'a Config,
        target: Option<(String, String)>,
        host: Host,
    ) -> Self {
        Self {
            engine,
            place,
            config,
            target,
            host,
            known_refs: None,
            known_trees: Arc::default(),
            known_keeper: OnceLock::new(),
            chores: Arc::default(),
            wishes: Wishes::default(),
        }
    }

    /// Main's repository.
    pub fn repository(&self) -> &'a Repository {
        self.place.repository()
    }

    /// The directory of main's repository.
    pub fn common_dir(&self) -> &'a Path {
        self.repository().common_dir()
    }

    /// What a branch of main holds.
    pub(crate) fn branch_tip(&self, branch: &str) -> Result<Option<String>, GitError> {
        let held = self.repository().resolve(&format!("refs/heads/{branch}"))?;
        Ok(held.map(String::from))
    }

    /// This process, as others can look it up.
    pub fn me(&self) -> Option<ProcessIdentity> {
        self.engine.processes.identify(std::process::id())
    }

    /// True when a process may still be at work; only proof of its end counts.
    pub fn may_live(&self, process: &ProcessIdentity) -> bool {
        self.engine.processes.state(process) != ProcessState::Gone
    }

    /// Ends a process that was stopped in the middle of something; true when it is proven gone.
    pub fn end_process(&self, process: &ProcessIdentity) -> bool {
        machine::end_process(self.engine.processes.as_ref(), process)
    }

    pub fn actor(&self) -> Option<&SessionName> {
        self.host.actor.as_ref()
    }

    pub fn registrations(&self) -> Registrations {
        Registrations::new(self.place.repository().common_dir(), &self.workshop())
    }

    /// Every worktree that main's repository knows, weald's or not.
    pub(crate) fn registered(&self) -> Result<Vec<Registration>, TreeError> {
        let registrations = self.registrations();
        registrations
            .list()
            .map_err(at(&registrations.directory("")))
    }

    /// Where things in the making are, on the repository's file system.
    pub fn workshop(&self) -> PathBuf {
        self.place.private().join("workshop")
    }

    pub fn workshop_directory(&self) -> Result<tempfile::TempDir, TreeError> {
        let failed = |source| TreeError::File {
            path: self.workshop(),
            source,
        };
        std::fs::create_dir_all(self.workshop()).map_err(failed)?;
        let prefix = format!("visit-{}-", std::process::id());
        tempfile::TempDir::with_prefix_in(prefix, self.workshop()).map_err(failed)
    }

    /// Every record, by number.
    pub fn records(&self) -> Result<Vec<Tree>, TreeError> {
        Ok(self.engine.look(|tx| tx.trees())?)
    }

    /// The record that has or last had this name.
    pub fn record(&self, name: &TreeName) -> Result<Option<Tree>, TreeError> {
        Ok(self.engine.look(|tx| called(tx, name))?)
    }

    pub fn now(&self) -> Result<Timestamp, TreeError> {
        Ok(self.engine.look(|tx| Ok::<_, StoreError>(tx.now()))?)
    }

    /// The live tree of this name, or the one the caller is in.
    pub fn named(&self, name: Option<&str>) -> Result<Tree, TreeError> {
        let Some(name) = name else {
            let inside = self.place.inside().ok_or(TreeError::NoTree)?.to_owned();
            let found = self.records()?;
            return found
                .into_iter()
                .find(|tree| tree.is_live() && tree.path == inside)
                .ok_or(TreeError::NoTree);
        };
        let not_found = || TreeError::NotFound {
            name: name.to_owned(),
        };
        let joined = match self.config.name_slashes {
            Slashes::Plus => name.replace('/', "+"),
            Slashes::Refuse => name.to_owned(),
        };
        let parsed: TreeName = joined.parse().map_err(|_| not_found())?;
        match self.record(&parsed)? {
            Some(tree) if tree.is_wanted() => Ok(tree),
            Some(tree) if tree.status == TreeStatus::Trashed => Err(TreeError::in_trash(tree)),
            _ => Err(not_found()),
        }
    }

    /// Decides one input on the newest record of a tree, and records it.
    pub fn decide(
        &self,
        tree: &Tree,
        durability: Durability,
        input: TreeInput,
    ) -> Result<Tree, TreeError> {
        self.engine.change(self.actor(), durability, |tx| {
            let (tree, change) = decided(tx, tree, input)?;
            tx.record(self.actor(), change)?;
            Ok(tree)
        })
    }
}

/// Decides on the newest record of a tree.
pub fn decided(
    tx: &mut dyn Write,
    tree: &Tree,
    input: TreeInput,
) -> Result<(Tree, Change), TreeError> {
    let current = tx.tree_by_id(tree.id)?.unwrap_or_else(|| tree.clone());
    Ok(tree_rules::decide(&current, input, tx.now())?)
}

pub(crate) fn require_task_record(
    tx: &(impl Read + ?Sized),
    id: &TaskId,
) -> Result<weald_core::task::Task, TreeError> {
    Ok(weald_control::tasks::require_task(tx, id)?)
}

/// Joins a path with what went wrong there.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> TreeError + '_ {
    move |source| TreeError::File {
        path: path.to_owned(),
        source,
    }
}
