//! What `weald clean` may take, and everything that speaks against it.
//!
//! A tree goes only for a reason: its work landed, or its task is over. Every blocker that holds is listed, not only the
//! first; whatever is unknown blocks. Nothing overrules one: no flag, and no setting of a repository.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::task::TaskStatus;
use crate::tree::TreeStatus;

/// What speaks against taking a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Its directory is gone.
    MissingPath,
    /// What is at its path is not the tree that was made.
    NotGitWorktree,
    /// Its path is none that trees have here.
    UnsafePath,
    /// Files are in conflict, or a merge or the like is not finished.
    Conflicted,
    /// The commit that it started from, or the branch that it lands on, is unknown.
    BaseUnknown,
    /// It could not be looked into.
    DiffError,
    Dirty,
    /// Another tree or worktree has the same path or branch.
    Shared,
    /// A session, a landing or another tree refers to it.
    Referenced,
    /// It was used a moment ago.
    TooRecent,
    /// When it was used is unknown.
    AgeUnknown,
    /// It holds commits that the target lacks.
    BranchNotMerged,
    /// It is unknown whether the target has its commits, or its branch is none that trees have here.
    BranchSafetyUnknown,
    Locked,
    /// Something runs in it, or may, or its task is claimed.
    Active,
    /// A person keeps it.
    Kept,
    /// The caller is in it.
    Cwd,
    /// Neither landed nor is its task completed or cancelled.
    NotDone,
}

impl Blocker {
    /// Every one, in the order in which they are listed.
    pub const ALL: [Self; 18] = [
        Self::MissingPath,
        Self::NotGitWorktree,
        Self::UnsafePath,
        Self::Conflicted,
        Self::BaseUnknown,
        Self::DiffError,
        Self::Dirty,
        Self::Shared,
        Self::Referenced,
        Self::TooRecent,
        Self::AgeUnknown,
        Self::BranchNotMerged,
        Self::BranchSafetyUnknown,
        Self::Locked,
        Self::Active,
        Self::Kept,
        Self::Cwd,
        Self::NotDone,
    ];

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissingPath => "missing_path",
            Self::NotGitWorktree => "not_git_worktree",
            Self::UnsafePath => "unsafe_path",
            Self::Conflicted => "conflicted",
            Self::BaseUnknown => "base_unknown",
            Self::DiffError => "diff_error",
            Self::Dirty => "dirty",
            Self::Shared => "shared",
            Self::Referenced => "referenced",
            Self::TooRecent => "too_recent",
            Self::AgeUnknown => "age_unknown",
            Self::BranchNotMerged => "branch_not_merged",
            Self::BranchSafetyUnknown => "branch_safety_unknown",
            Self::Locked => "locked",
            Self::Active => "active",
            Self::Kept => "kept",
            Self::Cwd => "cwd",
            Self::NotDone => "not_done",
        }
    }
}

/// Why a tree may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its work is on the target.
    Landed,
    /// Its task is completed.
    TaskCompleted,
    /// Its task is not wanted any more.
    TaskCancelled,
    /// Nothing was ever done in it; only where the configuration asks for just that.
    Unchanged,
}

impl Reason {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Landed => "landed",
            Self::TaskCompleted => "task_completed",
            Self::TaskCancelled => "task_cancelled",
            Self::Unchanged => "unchanged",
        }
    }
}

choice! {
    /// What counts as done: the key `clean.requires`.
    #[derive(Default)]
    pub enum Requires {
        /// Landed, or the task is completed or cancelled.
        #[default]
        Landed = "landed",
        /// The work is on the target; a task alone does not count.
        Merged = "merged",
        /// The task has ended; without a task, landed.
        Complete = "complete",
        /// Nothing in it that the target lacks, whatever its task says.
        Unchanged = "unchanged",
    }
}

/// What is at a tree's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtPath {
    Tree,
    Nothing,
    /// Something else, or a tree without its repository.
    Other,
}

/// What a look into it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// It was not, or could not be, looked into.
    Unknown,
    Seen {
        /// Uncommitted changes, but for those that the user's configuration ignores.
        is_dirty: bool,
        /// Files in conflict, or something unfinished.
        is_conflicted: bool,
    },
}

/// How the commits in it stand to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It is unknown.
    Unknown,
    /// The target lacks some.
    Lacking,
    /// There are none since it was made.
    None,
    /// All are on the target.
    OnTarget,
}

/// What is known of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanFacts {
    pub status: TreeStatus,
    /// Where its task stands; `None` without one.
    pub task: Option<TaskStatus>,
    /// What is at its path.
    pub at_path: AtPath,
    /// Whether the path is one that trees have here.
    pub path_fits: bool,
    /// What is in it.
    pub inside: Inside,
    /// Whether base and target are known.
    pub base_known: bool,
    /// What became of its commits.
    pub work: Work,
    /// Whether its branch is one that trees have here.
    pub branch_fits: bool,
    /// When it was last used; `None` if that can't be read.
    pub last_used: Option<Timestamp>,
    /// Whether another one has its path or branch.
    pub is_shared: bool,
    /// Whether others refer to it.
    pub is_referenced: bool,
    /// Whether it is locked, by weald or by git.
    pub is_locked: bool,
    /// Whether something is going on in it, or may be.
    pub is_active: bool,
    /// Whether the caller is in it.
    pub holds_caller: bool,
}

/// What the configuration and the flags say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanRules {
    /// What counts as done.
    pub requires: Requires,
    /// For how long it must be unused; zero asks for nothing.
    pub min_age: SignedDuration,
}

/// Why a tree may go, or everything that speaks against it.
pub fn judge(
    facts: &CleanFacts,
    rules: &CleanRules,
    now: Timestamp,
) -> Result<Reason, Vec<Blocker>> {
    let reason = reason(facts, rules.requires);
    let mut found = blockers(facts);
    found.extend(age_blocker(facts.last_used, rules.min_age, now));
    if reason.is_none() {
        found.push(Blocker::NotDone);
    }
    found.sort_unstable();
    match reason {
        Some(reason) if found.is_empty() => Ok(reason),
        _ => Err(found),
    }
}

/// What speaks against it besides its age and that it is not done.
fn blockers(facts: &CleanFacts) -> Vec<Blocker> {
    let (is_dirty, is_conflicted) = match facts.inside {
        Inside::Unknown => (false, false),
        Inside::Seen {
            is_dirty,
            is_conflicted,
        } => (is_dirty, is_conflicted),
    };
    // Nothing can be said of what is not there.
    let is_there = facts.at_path != AtPath::Nothing;
    let is_unsafe = (facts.work == Work::Unknown && is_there) || !facts.branch_fits;
    let is_unseen = facts.inside == Inside::Unknown && is_there;
    let is_being_made = facts.status == TreeStatus::Creating;
    let holds = [
        (Blocker::MissingPath, facts.at_path == AtPath::Nothing),
        (Blocker::NotGitWorktree, facts.at_path == AtPath::Other),
        (Blocker::UnsafePath, !facts.path_fits),
        (Blocker::Conflicted, is_conflicted),
        (Blocker::BaseUnknown, !facts.base_known),
        (Blocker::DiffError, is_unseen),
        (Blocker::Dirty, is_dirty),
        (Blocker::Shared, facts.is_shared),
        (Blocker::Referenced, facts.is_referenced),
        (Blocker::BranchNotMerged, facts.work == Work::Lacking),
        (Blocker::BranchSafetyUnknown, is_unsafe),
        (Blocker::Locked, facts.is_locked),
        (Blocker::Active, facts.is_active || is_being_made),
        (Blocker::Kept, facts.status == TreeStatus::Kept),
        (Blocker::Cwd, facts.holds_caller),
    ];
    let holding = holds.into_iter().filter(|(_, holds)| *holds);
    holding.map(|(blocker, _)| blocker).collect()
}

pub(crate) fn age_blocker(
    last_used: Option<Timestamp>,
    min_age: SignedDuration,
    now: Timestamp,
) -> Option<Blocker> {
    if min_age.is_zero() {
        return None;
    }
    match last_used {
        None => Some(Blocker::AgeUnknown),
        Some(used) if used > now => Some(Blocker::AgeUnknown),
        Some(used) if now.duration_since(used) < min_age => Some(Blocker::TooRecent),
        Some(_) => None,
    }
}

fn reason(facts: &CleanFacts, requires: Requires) -> Option<Reason> {
    let is_landed = facts.status == TreeStatus::Landed || facts.work == Work::OnTarget;
    let landed = is_landed.then_some(Reason::Landed);
    let task_over = match facts.task {
        Some(TaskStatus::Completed) => Some(Reason::TaskCompleted),
        Some(TaskStatus::Cancelled) => Some(Reason::TaskCancelled),
        _ => None,
    };
    match requires {
        Requires::Landed => landed.or(task_over),
        Requires::Merged => landed,
        Requires::Complete if facts.task.is_some() => task_over,
        Requires::Complete => landed,
        Requires::Unchanged if facts.work == Work::None => Some(Reason::Unchanged),
        Requires::Unchanged => landed,
    }
}

/// Whether a tree has been untouched for long enough to be reported.
pub fn is_stale(last_used: Option<Timestamp>, after: SignedDuration, now: Timestamp) -> bool {
    last_used.is_some_and(|used| now.duration_since(used) > after)
}
