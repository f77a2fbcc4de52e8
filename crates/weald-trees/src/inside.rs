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

mod aside;
mod attributes;
mod changes;
mod commit;
mod diff;
mod fingerprint;
mod fresh_git;
mod hidden;
mod large_files;
mod look;
mod modules;
mod population;
mod putting_back;
mod settings;
mod size;
mod snapshot;
mod stream;
mod survey;
mod sync;
mod times;
mod usage;
mod work;

pub use commit::CommitWish;
pub use diff::DiffStyle;
pub use diff::between;
pub(crate) use large_files::{LACKING, LargeFiles, LargeFilesWish};
pub(crate) use settings::{CONFIG_LIMIT, CONFIGS, judging, judging_lines};
pub(crate) use snapshot::COMMITTER;
pub use stream::quoted;
pub use usage::{Usage, UsageWish, apart};

/// The host's own limit is shorter; this one only ends what nobody waits for.
const TIME_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// What to do, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    pub git_dir: PathBuf,
    pub work_tree: PathBuf,
    /// Main's repository, for its configuration.
    pub main: PathBuf,
    /// The user's home, for their configuration.
    pub home: Option<PathBuf>,
    /// How Git LFS works in here.
    pub large: LargeFiles,
    pub job: Job,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Job {
    /// Check `commit` out into an empty work tree; with another index than the repository's.
    Populate {
        commit: String,
        index: Option<PathBuf>,
    },
    /// Make the work tree exactly what `commit` holds again, but for what git ignores.
    Reset { commit: String },
    /// Say how the files differ from a commit, by repositories that nobody in the tree could change.
    CompareFresh(FreshGit),
    /// Make the files those of a commit again, by the same.
    ResetFresh(FreshGit),
    /// Turn a clean checkout of one commit into one of another, by what differs.
    Forward { from: String, to: String },
    /// Check out the commits of submodules: repository, work tree, commit.
    PopulateSubmodules(Vec<(PathBuf, PathBuf, String)>),
    /// Name the repositories of submodules.
    ListModules,
    /// Say what a submodule's repository holds, and send what `haves` lack.
    Module { name: String, haves: Vec<String> },
    /// Give files the times that main's have, if they hold the same.
    MatchTimes {
        main: PathBuf,
        index: PathBuf,
        own: Option<PathBuf>,
    },
    /// Say what is there; with `haves`, send all that the vault lacks. Perhaps send a snapshot, too.
    Look {
        haves: Option<Vec<String>>,
        snapshot: Option<SnapshotWish>,
        /// The vault of a partial clone, which may lack files of older history.
        partial: Option<PathBuf>,
        /// The vault's objects, where the tree's own way to them leads nowhere: from the trash.
        lent: Option<PathBuf>,
    },
    /// Say what changed and what holds commits, by name, and when somebody was last at it; send nothing.
    Survey,
    /// Change refs: name, new, old.
    UpdateRefs(Vec<(String, String, Option<String>)>),
    /// Tell how much room the tree takes, as far as that can be told in so many milliseconds.
    Size { millis: u64 },
    /// The same with what it shares, and which folders a build makes again.
    Usage(UsageWish),
    /// Put such folders aside.
    Evict { wish: UsageWish, paths: Vec<String> },
    /// Delete what was put aside.
    ClearEvicted,
    /// Tell whether anything changed, as cheaply as can be.
    Fingerprint(Unless),
    /// Put a snapshot back; what no snapshot could hold goes aside if it is in the way.
    RestoreSnapshot(PutBack),
    /// Tell what changed between two snapshots, or between one and now.
    SnapshotDiff {
        from: String,
        to: Option<String>,
        now: SnapshotWish,
        style: DiffStyle,
        limit: usize,
    },
    /// Tell what changed since `base`.
    Diff {
        base: String,
        against: Option<String>,
        style: DiffStyle,
        limit: usize,
    },
    /// Bring `commit` in; with `onto` by a fast-forward alone, from exactly there.
    Sync {
        commit: String,
        onto: Option<String>,
        rebase: bool,
        message: String,
    },
    /// Commit what is there, with the tree's own hooks.
    Commit(CommitWish),
    /// Write a small file of the repository's.
    WriteAlternates { text: String },
    /// Send large files of Git LFS.
    SendLargeFiles(LargeFilesWish),
}

/// A snapshot to be put back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PutBack {
    pub commit: String,
    /// The snapshot of what is there now.
    pub before: String,
    /// What that one could not hold.
    pub unkept: Vec<String>,
    pub vault: PathBuf,
}

/// What a snapshot is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotForm {
    /// To be put back, byte for byte: a commit of files, index and HEAD.
    #[default]
    Everything,
    /// To be merged: the git tree of what a commit of everything would hold.
    Work,
}

/// A snapshot to be made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotWish {
    pub form: SnapshotForm,
    /// How much it may hold.
    pub limits: SnapshotLimits,
    /// The time it carries, in seconds.
    pub taken_at: i64,
    /// Why it is taken.
    pub reason: String,
    pub vault: PathBuf,
    /// Further commits that the vault has.
    pub haves: Vec<String>,
    /// How objects are named.
    pub is_sha256: bool,
    /// Only if something changed.
    pub unless: Option<Unless>,
}

/// What a tree was when it was last kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Unless {
    pub like: Option<String>,
    /// What was ignored then.
    pub ignored: Vec<String>,
    /// What changed at this time or later, in nanoseconds, may change again without it showing.
    pub settled_before: i64,
}

/// How much a snapshot may hold.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SnapshotLimits {
    /// Bytes of one file; larger ones are left out and named.
    pub file: u64,
    pub all: u64,
}

/// What is in a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// What HEAD holds; `None` before the first commit.
    #[serde(rename = "inner_head")]
    pub head: Option<String>,
    /// The branch HEAD is on.
    #[serde(rename = "inner_branch")]
    pub branch: Option<String>,
    /// Changes that are staged.
    pub staged: u64,
    /// Changes that are not staged.
    pub unstaged: u64,
    /// Files that git does not know.
    pub untracked: u64,
    /// Changed files that git was told not to look at.
    #[serde(default, skip_serializing_if = "is_none")]
    pub hidden: u64,
    pub conflicted: u64,
    /// Files and folders that git ignores.
    pub ignored: u64,
    /// What is going on: `merge`, `rebase`, `cherry-pick`, `revert` or `bisect`.
    pub operation: Option<String>,
    /// How many stash entries there are.
    pub stashed: u64,
}

impl Look {
    /// Whether anything is not committed, or not over.
    pub fn is_changed(&self) -> bool {
        let seen = self.staged + self.unstaged + self.untracked + self.conflicted;
        seen + self.hidden > 0 || self.operation.is_some()
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Everything that holds commits in an inner repository.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tips {
    /// Refs: name and object.
    pub refs: Vec<(String, String)>,
    /// Stash entries, newest first.
    pub stash: Vec<String>,
    /// What HEAD held before.
    pub reflog: Vec<String>,
    /// What the HEADs of further worktrees hold that were made inside.
    #[serde(default)]
    pub worktrees: Vec<String>,
    /// A tree of the staged blobs.
    pub staged: Option<String>,
}

/// How a job ended that can end in several ways. An answer with any other word is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    UpToDate,
    /// The branch is not where it was expected.
    Moved,
    Merged,
    Conflict,
    Refused,
    Committed,
    /// There was nothing to commit.
    Nothing,
    HookFailed,
    TimedOut,
    /// A checkout was brought to another commit.
    Forward,
    /// It has to be made again instead.
    Rebuild,
}

/// The first line of an answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reply {
    pub error: Option<String>,
    pub look: Option<Look>,
    pub tips: Option<Tips>,
    /// The commit of a snapshot, or the tree of what could be committed.
    pub snapshot: Option<String>,
    /// Files that were left out of it, that conflict, or that changed.
    pub paths: Vec<String>,
    /// Files that were set aside, by their new names.
    #[serde(default)]
    pub aside: Vec<String>,
    /// What the times and sizes of all files come to.
    pub fingerprint: Option<u64>,
    /// How much room it takes.
    #[serde(default)]
    pub size: Option<Size>,
    /// The same in parts.
    #[serde(default)]
    pub usage: Option<Usage>,
    pub ignored: Vec<String>,
    pub files: Vec<ChangedFile>,
    /// Text, as for a diff.
    pub text: Option<String>,
    /// Whether something was left out.
    pub truncated: bool,
    pub outcome: Option<JobOutcome>,
    /// When somebody was last at it, in seconds.
    #[serde(default)]
    pub touched_at: Option<i64>,
    /// Which of the large files that were asked for are here.
    #[serde(default)]
    pub large: Vec<bool>,
}

pub use changes::ChangedFile;
pub(crate) use fresh_git::{FreshGit, FreshModule};
pub use size::Size;

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
            let reply = Reply {
                error: Some(error.to_string()),
                ..Reply::default()
            };
            // With the host gone there is nobody to tell.
            let _ = say(&reply);
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

/// Prints the answer's first line.
fn say(reply: &Reply) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, reply)?;
    out.write_all(b"\n")?;
    out.flush()
}

impl Request {
    fn work(&self) -> Result<(), InsideError> {
        self.require_open()?;
        match &self.job {
            Job::Populate { commit, index } => self.populate(commit, index.as_deref()),
            Job::Reset { commit } => self.reset(commit),
            Job::CompareFresh(fresh) => self.compare_fresh(fresh),
            Job::ResetFresh(fresh) => self.reset_fresh(fresh),
            Job::Forward { from, to } => self.forward(from, to),
            Job::PopulateSubmodules(modules) => self.populate_submodules(modules),
            Job::ListModules => self.list_modules(),
            Job::Module { name, haves } => self.send_module(name, haves),
            Job::MatchTimes { main, index, own } => self.match_times(main, index, own.as_deref()),
            Job::Look {
                haves,
                snapshot,
                partial,
                lent: _,
            } => self.look(haves.as_deref(), snapshot.as_ref(), partial.as_deref()),
            Job::Survey => self.survey(),
            Job::UpdateRefs(changes) => self.update_refs(changes),
            Job::Size { millis } => self.size(Duration::from_millis(*millis)),
            Job::Usage(wish) => self.usage(wish),
            Job::Evict { wish, paths } => self.evict(wish, paths),
            Job::ClearEvicted => self.clear_evicted(),
            Job::Fingerprint(unless) => self.tell_fingerprint(unless),
            Job::RestoreSnapshot(order) => self.restore_snapshot(order),
            Job::SnapshotDiff {
                from,
                to,
                now,
                style,
                limit,
            } => self.snapshot_diff(from, to.as_deref(), now, *style, *limit),
            Job::Diff {
                base,
                against,
                style,
                limit,
            } => self.diff(base, against.as_deref(), *style, *limit),
            Job::Sync {
                commit,
                onto,
                rebase,
                message,
            } => self.sync(commit, onto.as_deref(), *rebase, message),
            Job::Commit(wish) => self.commit(wish),
            Job::WriteAlternates { text } => {
                fs::write(self.git_dir.join("objects/info/alternates"), text)?;
                Ok(say(&Reply::default())?)
            }
            Job::SendLargeFiles(wish) => self.send_large_files(wish),
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
        match self.lent() {
            Some(_) => git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.stores(&[])),
            None => git,
        }
    }

    fn lent(&self) -> Option<&Path> {
        match &self.job {
            Job::Look { lent, .. } => lent.as_deref(),
            _ => None,
        }
    }

    /// Object directories as git reads a list of them, with what is lent.
    fn stores(&self, own: &[&Path]) -> OsString {
        let mut stores = Vec::new();
        for path in own.iter().copied().chain(self.lent()) {
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

    fn update_refs(&self, changes: &[(String, String, Option<String>)]) -> Result<(), InsideError> {
        let mut input = String::new();
        for (name, new, old) in changes {
            input.push_str(&format!(
                "update {name}\0{new}\0{}\0",
                old.as_deref().unwrap_or_default()
            ));
        }
        self.git("update-ref")
            .args(["--stdin", "-z"])
            .input(input)
            .run()?;
        Ok(say(&Reply::default())?)
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
