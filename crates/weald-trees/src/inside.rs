//! The inside half of a visit: this binary, started again inside a tree's sandbox, to do one job with git there.
//!
//! Everything here runs confined, on a directory that an agent wrote: it may lie, hang or break, and the host half
//! (`visit`) treats every byte of the answer as untrusted. An answer is one line of JSON, then perhaps a pack.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weald_control::machine::INSIDE_ARGUMENT;
use weald_git::{Git, GitError};

use crate::untrusted::Answer;

mod aside;
mod attributes;
mod changes;
mod commit;
mod diff;
mod fingerprint;
mod fresh_git;
mod hidden;
mod job;
mod large_files;
mod look;
mod modules;
mod population;
mod putting_back;
mod repository;
mod settings;
mod size;
mod snapshot;
mod stream;
mod survey;
mod sync;
mod times;
mod usage;
mod work;

pub use changes::ChangedFile;
pub use commit::{CommitEnd, CommitReply, LookWish};
pub use diff::{Diff, DiffForm, DiffStyle, between};
pub use fingerprint::{FingerprintReply, Unless};
pub use fresh_git::{FreshGit, FreshModule};
pub use job::*;
pub(crate) use large_files::LACKING;
pub use large_files::{LargeFiles, LargeFilesReply};
pub use look::{InspectReply, Look, PackWish, Tips};
pub use modules::{ListReply, ModuleReply};
pub use population::ForwardReply;
pub use putting_back::RestoreReply;
pub(crate) use settings::{CONFIG_LIMIT, CONFIGS, judging, judging_lines};
pub use size::Size;
pub(crate) use snapshot::COMMITTER;
pub use snapshot::{SnapshotForm, SnapshotLimits, SnapshotReply, SnapshotWish};
pub use stream::quoted;
pub use sync::{SyncEnd, SyncReply};
pub use usage::{EvictReply, Usage, UsageReply, UsageWish, apart};

/// The host's own limit is shorter; this one only ends what nobody waits for.
const TIME_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Where a job is done, and with what.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Workplace {
    pub(crate) git_dir: PathBuf,
    pub(crate) work_tree: PathBuf,
    /// Main's repository, for its configuration.
    pub(crate) main: PathBuf,
    /// The user's home, for their configuration.
    pub(crate) home: Option<PathBuf>,
    /// How Git LFS works in here.
    pub(crate) large: LargeFiles,
    /// Objects that are lent for this job.
    #[serde(skip)]
    lent: Option<PathBuf>,
    /// Whether the repository is weald's own, made for this job.
    #[serde(skip)]
    is_own: bool,
}

/// Becomes the inside half if this process was started as one.
pub fn run_if_inside() {
    let mut args = std::env::args_os();
    if args
        .nth(1)
        .is_none_or(|argument| argument != INSIDE_ARGUMENT)
    {
        return;
    }
    // What runs in here besides, started by git for the tree, can't write into this process's answer.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let mut text = String::new();
    let worked = io::stdin()
        .read_to_string(&mut text)
        .map_err(InsideError::from)
        .and_then(|_| Ok(serde_json::from_str::<Request>(&text)?))
        .and_then(|request| request.work());
    let code = match worked {
        Ok(()) => 0,
        Err(error) => {
            // With the host gone there is nobody to tell.
            let _ = say(&Answer::<()>::Failed(error.to_string()));
            let _ = writeln!(io::stderr(), "{error}");
            1
        }
    };
    std::process::exit(code)
}

/// Why a job was not done.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("invalid request: {0}")]
    Request(#[from] serde_json::Error),
    #[error("{0}")]
    Damaged(String),
}

impl Workplace {
    /// As the host sees it; nothing is lent.
    pub(crate) fn new(
        (git_dir, work_tree): (&Path, &Path),
        main: &Path,
        home: Option<PathBuf>,
        large: LargeFiles,
    ) -> Self {
        Self {
            git_dir: git_dir.to_owned(),
            work_tree: work_tree.to_owned(),
            main: main.to_owned(),
            home,
            large,
            lent: None,
            is_own: false,
        }
    }

    /// A git command on the tree, with the user's own configuration: programs that it names run in here, too.
    fn git(&self, name: &str) -> Git {
        let git = Git::new(&self.git_dir, name)
            .with_user_config(self.home.as_deref())
            .env("GIT_CONFIG_NOSYSTEM", "0")
            .work_tree(&self.work_tree)
            .limit(TIME_LIMIT);
        let git = self.large.configure(git);
        match self.lent {
            Some(_) => git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.stores(&[])),
            None => git,
        }
    }

    /// Object directories as git reads a list of them, with what is lent.
    fn stores(&self, own: &[&Path]) -> OsString {
        let mut stores = Vec::new();
        for path in own.iter().copied().chain(self.lent.as_deref()) {
            if !stores.is_empty() {
                stores.push(b':');
            }
            quoted(&mut stores, path.as_os_str().as_bytes());
        }
        OsString::from_vec(stores)
    }

    /// The object directory: the repository's own, or of the one that a linked worktree belongs to.
    fn objects(&self) -> PathBuf {
        let own = self.git_dir.join("objects");
        match own.is_dir() {
            true => own,
            false => self.git_dir.join("../../objects"),
        }
    }
}

/// Reads a file up to a limit; nothing if it is not there.
fn read_capped(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A private directory for things in the making.
fn scratch() -> io::Result<PathBuf> {
    let path = std::env::temp_dir().join("weald-inside");
    fs::create_dir_all(path.join("objects"))?;
    Ok(path)
}
