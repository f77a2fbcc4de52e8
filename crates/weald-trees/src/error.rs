//! Why something did not happen to a tree, in words.

use std::io;
use std::path::{Path, PathBuf};

use weald_core::binding::BindRefusal;
use weald_core::clean::Blocker;
use weald_core::id::{TaskId, TreeId};
use weald_core::name::{NameError, TreeName};
use weald_core::naming::TemplateError;
use weald_core::objections::Objection;
use weald_core::role::NotYourTree;
use weald_core::store::StoreError;
use weald_core::tree::{Tree, TreeLock};
use weald_core::tree_rules::TreeRefusal;
use weald_git::{GitError, VaultError};
use weald_sandbox::SandboxError;

use super::setup_report::SetupReport;
use weald_control::tasks::TaskError;

/// Why something did not happen to a tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// git did not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The vault can't be used.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The sandbox did not start.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Its status does not allow it.
    #[error(transparent)]
    Rule(#[from] TreeRefusal),
    /// Task and tree can't be bound.
    #[error(transparent)]
    Bind(#[from] BindRefusal),
    /// It is somebody else's.
    #[error(transparent)]
    NotYours(#[from] NotYourTree),
    /// A worktree that can't be adopted.
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    /// It can't be called that.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A template of the configuration makes no sense here.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The end was asked for, by this signal or as by it.
    #[error("interrupted; the worktree was not created")]
    Interrupted(u8),
    #[error("there is no worktree {name}")]
    NotFound { name: String },
    /// Its directory is gone.
    #[error("worktree {name} is gone: {} does not exist", .path.display())]
    Missing { name: TreeName, path: PathBuf },
    /// Something else is where it was.
    #[error("{} is no longer worktree {name}: {why}", .path.display())]
    Replaced {
        name: TreeName,
        path: PathBuf,
        why: String,
    },
    /// It belongs to another repository, of which this one is a copy.
    #[error("worktree {name} at {} belongs to the repository at {}", .path.display(), .repository.display())]
    OfAnother {
        name: TreeName,
        path: PathBuf,
        repository: PathBuf,
    },
    /// Its repository is gone or replaced.
    #[error("worktree {name} is damaged: {why}")]
    Damaged {
        name: TreeName,
        path: PathBuf,
        why: String,
    },
    /// Somebody else locked it.
    #[error("worktree {name} is locked by {}: {}", .lock.owner, .lock.reason)]
    Locked { name: TreeName, lock: TreeLock },
    /// It waits in the trash.
    #[error("worktree {name} is in the trash")]
    InTrash { name: TreeName, id: TreeId },
    /// Something runs in it.
    #[error("worktree {name} is in use: {}", .running.join(", "))]
    Busy {
        name: TreeName,
        running: Vec<String>,
    },
    /// It changed between the look into it and its removal.
    #[error(
        "worktree {name} is in use: something was committed or staged in the meantime; nothing was removed"
    )]
    Stirred { name: TreeName },
    /// A clean judged it before, and something speaks against it now.
    #[error("worktree {name} changed while others were being removed: {}", words(.blockers))]
    ChangedMeanwhile {
        name: TreeName,
        /// What speaks against it.
        blockers: Vec<Blocker>,
    },
    /// Somebody is in a directory that was to be moved.
    #[error("process {pid} is in {}", .path.display())]
    Inhabited { path: PathBuf, pid: u32 },
    /// The name is taken.
    #[error("worktree {name} already exists: {}", .path.display())]
    Exists { name: TreeName, path: PathBuf },
    /// Something is where the tree would go.
    #[error("{} {}", .by.path.display(), in_the_way(.by))]
    Occupied { by: Box<Holder> },
    /// The branch is taken.
    #[error("branch {branch} already exists{}", holding(*.commits))]
    BranchExists {
        branch: String,
        /// For which tree it was wanted.
        name: TreeName,
        task: Option<TaskId>,
        /// How many commits it holds that the target lacks, if that is known.
        commits: Option<u64>,
    },
    /// There is no branch that a worktree could be for.
    #[error("there is no branch {branch}")]
    NoBranch {
        branch: String,
        /// The one that may have been meant.
        nearest: Option<String>,
    },
    /// Several remotes have it, and nothing here.
    #[error("several remotes have a branch {branch}: {}", .upstreams.join(", "))]
    BranchOnRemotes {
        branch: String,
        upstreams: Vec<String>,
    },
    /// A remote's branch was named, and there is one of its name here.
    #[error("there is a local branch {branch} for {upstream} already")]
    BranchIsHere { branch: String, upstream: String },
    /// Work lands on it, so it can't be where work is done.
    #[error("{branch} is the branch that work lands on, so no worktree can be on it")]
    BranchIsTarget { branch: String },
    /// The branch is in use by another worktree.
    #[error("branch {branch} is checked out in {}", .by.path.display())]
    BranchInUse { branch: String, by: Box<Holder> },
    /// A branch with the name of a folder, or the other way round.
    #[error("branch {branch} can't be created while there is a branch {existing}")]
    BranchClash {
        branch: String,
        /// What is in the way.
        existing: String,
    },
    /// The repository has no commit.
    #[error("the repository has no commit yet, so there is nothing to start from")]
    NoCommit,
    /// There are commits, and no branch that trees could start from.
    #[error(
        "there is no target branch: the main checkout is on no branch, and there is neither main nor master"
    )]
    NoTarget,
    /// The branch that a tree lands on is gone.
    #[error("{name} lands on {target}, which does not exist; nothing was changed")]
    TargetGone {
        name: TreeName,
        target: String,
        /// The commit that the tree began with there.
        base: String,
    },
    /// The target is no branch.
    #[error("there is no branch {target} to land on")]
    UnknownTarget { target: String },
    /// The base is no commit.
    #[error("{base} is not a branch, tag or commit of this repository")]
    UnknownBase { base: String },
    /// The remote was not asked, and the configuration wants that.
    #[error("{base} could not be fetched, and tree.fetch is require: {why}")]
    NotFetched {
        /// What should have been fetched.
        base: String,
        /// Why it was not.
        why: String,
    },
    /// The main checkout has changes and the configuration wants none.
    #[error("the main checkout has {count} uncommitted changes, and tree.dirty_main is refuse")]
    DirtyMain { count: usize },
    /// Something speaks against a removal.
    #[error("{}", removal_message(.tree, .objections))]
    Removal {
        tree: Box<Tree>,
        /// What speaks against it, the strongest first.
        objections: Vec<Objection>,
    },
    /// The caller stands in it.
    #[error("the current directory is in worktree {name}")]
    Standing {
        /// Whether work may go with it.
        discard: bool,
        name: TreeName,
    },
    /// A merge or the like is not finished.
    #[error("a {operation} is in progress in {name}")]
    InOperation {
        name: TreeName,
        /// `merge`, `rebase` …
        operation: String,
    },
    /// It can't be told what is in it.
    #[error("{name} could not be inspected: {why}")]
    Unreadable { name: String, why: String },
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// A path that templates can't hold.
    #[error("{} is not valid UTF-8, so no worktree can be created next to it", .path.display())]
    OddPath { path: PathBuf },
    /// A place that nothing is written to.
    #[error("{key} ({origin}) leads to {}, but {why}; nothing was written", .path.display())]
    UnsafePlace {
        /// The key of the template.
        key: &'static str,
        /// Where its value comes from.
        origin: String,
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// What a template makes is no name of a branch.
    #[error("tree.branch ({origin}) gives `{}`, which is not a branch name; nothing was created", .branch.escape_debug())]
    NoBranchName {
        /// Where its value comes from.
        origin: String,
        branch: String,
    },
    /// Nothing in the trash is called that.
    #[error("there is no {id} in the trash")]
    NotInTrash { id: String },
    /// Of nothing that is called so the vault is the only one to hold something.
    #[error("the vault has nothing of a deleted worktree {id}")]
    NotInVault { id: String },
    /// Of a deleted worktree that is known the vault has no such commit.
    #[error("the vault has no commit {commit} of worktree {name}")]
    CommitNotInVault { name: TreeName, commit: String },
    /// What it holds could not be taken into the vault.
    #[error(
        "worktree {name} stays in the trash: not all of its work is in the vault, and it can't be imported: {why}"
    )]
    NotTakenIn {
        name: TreeName,
        id: TreeId,
        why: String,
    },
    /// Its record names a place that is no trash.
    #[error("worktree {name} was left alone: its record says that it was removed to {}, but {why}", .path.display())]
    OutsideTrash {
        name: TreeName,
        id: TreeId,
        path: PathBuf,
        /// What is wrong with that.
        why: String,
    },
    /// There is no such snapshot.
    #[error("worktree {name} has no snapshot{}", .id.map(|id| format!(" {id}")).unwrap_or_default())]
    NoSnapshot {
        name: TreeName,
        /// As given; without it the newest was asked for.
        id: Option<u64>,
    },
    /// No tree was named and the caller is in none.
    #[error("no worktree is named, and the current directory is not in one")]
    NoTree,
    /// Its set-up did not succeed.
    #[error("{}", .report.error.as_deref().unwrap_or("the set-up failed"))]
    SetUp {
        name: TreeName,
        report: Box<SetupReport>,
        /// Its number in the trash, if it went there.
        trash: Option<TreeId>,
    },
    /// It is not the kind that can do this.
    #[error("{what}")]
    Unsupported {
        /// What can't be done.
        what: String,
    },
}

impl TreeError {
    pub fn unreadable(name: impl ToString, why: impl Into<String>) -> Self {
        Self::Unreadable {
            name: name.to_string(),
            why: why.into(),
        }
    }

    /// Its name or its place is taken by a tree.
    pub(crate) fn exists(tree: Tree) -> Self {
        Self::Exists {
            name: tree.name,
            path: tree.path,
        }
    }

    pub(crate) fn in_trash(tree: Tree) -> Self {
        Self::InTrash {
            name: tree.name,
            id: tree.id,
        }
    }

    /// Something else is where a tree was.
    pub(crate) fn replaced(tree: &Tree, path: &Path, why: impl Into<String>) -> Self {
        Self::Replaced {
            name: tree.name.clone(),
            path: path.to_owned(),
            why: why.into(),
        }
    }

    /// Something is where a tree would go, and nothing more is known of it.
    pub(crate) fn occupied(path: PathBuf) -> Self {
        let by = Holder {
            path,
            tree: None,
            bound: None,
            task: None,
        };
        Self::Occupied { by: Box::new(by) }
    }
}

/// Why a worktree was not adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// It is none of this repository's.
    #[error("{} is not a worktree of this repository", .path.display())]
    NoWorktree { path: PathBuf },
    /// It is the main checkout.
    #[error("{} is the main checkout, not a linked worktree", .path.display())]
    Main { path: PathBuf },
    /// git knows it, but it is not there.
    #[error("{} is gone; git only has a record of it", .path.display())]
    Gone { path: PathBuf },
    /// Its two ends don't fit.
    #[error("{} does not match its registration: {why}", .path.display())]
    Broken { path: PathBuf, why: String },
    /// It is on no branch.
    #[error("{} is on no branch (detached HEAD)", .path.display())]
    Detached { path: PathBuf },
    /// Its branch has no commit.
    #[error("branch {branch} of {} has no commit yet", .path.display())]
    Unborn { path: PathBuf, branch: String },
    /// It has the target itself checked out.
    #[error("{} has {branch} checked out, the branch that work lands on", .path.display())]
    OnTarget { path: PathBuf, branch: String },
    /// It shares nothing with the target.
    #[error("branch {branch} has no commit in common with {target}")]
    Unrelated {
        branch: String,
        /// What it would land on.
        target: String,
    },
}

/// A directory in the way of a new tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub path: PathBuf,
    /// The tree that it is, if it is one of weald's.
    pub tree: Option<TreeName>,
    /// The task that tree belongs to.
    pub bound: Option<TaskId>,
    /// The task that the new tree would have been for.
    pub task: Option<TaskId>,
}

fn words(blockers: &[Blocker]) -> String {
    let words: Vec<_> = blockers.iter().map(|blocker| blocker.as_str()).collect();
    words.join(", ")
}

fn removal_message(tree: &Tree, objections: &[Objection]) -> String {
    let said: Vec<_> = objections
        .iter()
        .map(|objection| said(tree, objection))
        .collect();
    format!("{} {}", tree.name, said.join("; it "))
}

fn said(tree: &Tree, objection: &Objection) -> String {
    match objection {
        Objection::Running(what) => format!("is in use: {}", what.join(", ")),
        Objection::Locked(lock) => format!("is locked by {}: {}", lock.owner, lock.reason),
        Objection::Referenced(by) => format!("is referenced by {}", by.join(", ")),
        Objection::Unknown(why) => format!("could not be inspected, so it is kept: {why}"),
        Objection::Dirty {
            staged,
            unstaged,
            untracked,
        } => format!(
            "has uncommitted changes: {staged} staged, {unstaged} unstaged, {untracked} untracked"
        ),
        Objection::Unlanded { commits, .. } => {
            let word = if *commits == 1 { "commit" } else { "commits" };
            format!("has {commits} {word} that {} does not have", tree.target)
        }
    }
}

/// What a directory is that should not be there.
fn in_the_way(by: &Holder) -> String {
    match &by.tree {
        Some(tree) => format!("already exists, as worktree {tree}"),
        None => "already exists and is not a weald worktree; it was left alone".to_owned(),
    }
}

fn holding(commits: Option<u64>) -> String {
    match commits {
        Some(1) => ", with 1 unlanded commit".to_owned(),
        Some(count) if count > 0 => format!(", with {count} unlanded commits"),
        _ => String::new(),
    }
}
