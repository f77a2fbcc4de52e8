//! What tools answer, for their output schemas: the objects of the command line, with the fields that are always there.
//!
//! More fields may come; nothing here is ever renamed.
#![expect(dead_code, reason = "read by schemars alone")]

pub mod agents;
pub mod messages;

use schemars::JsonSchema;
use serde_json::Value;

use super::arguments::TaskRef;

/// A piece of work.
#[derive(JsonSchema)]
pub struct Task {
    /// Its id.
    pub id: TaskRef,
    /// In a line.
    pub subject: String,
    /// More words.
    pub description: String,
    /// pending, in_progress, completed, failed, needs_merge, blocked or cancelled.
    pub status: String,
    /// P0 to P3.
    pub priority: String,
    /// Who has it.
    pub owner: Option<String>,
    /// What it waits for.
    pub blocked_by: Vec<TaskRef>,
    /// The worktree that is bound to it.
    pub worktree: Option<String>,
}

/// Several.
#[derive(JsonSchema)]
pub struct Tasks {
    /// In order.
    pub tasks: Vec<Task>,
    /// How many there are in all.
    pub total: u64,
}

/// One.
#[derive(JsonSchema)]
pub struct OneTask {
    /// As it is now.
    pub task: Task,
}

/// One that moved.
#[derive(JsonSchema)]
pub struct FinishedTask {
    /// As it is now.
    pub task: Task,
    /// What can be claimed because of it.
    pub unblocked: Vec<TaskRef>,
}

/// A claim on a task.
#[derive(JsonSchema)]
pub struct Lease {
    /// The token that later steps carry.
    pub token: u64,
    /// Who holds it.
    pub session: String,
    /// When others may take over.
    pub expires_at: String,
}

/// A task with its claim and where to work on it.
#[derive(JsonSchema)]
pub struct ClaimedTask {
    /// As it is now.
    pub task: Task,
    /// The claim.
    pub lease: Lease,
    /// Where to work: change nothing outside of its path.
    pub tree: Tree,
}

/// A worktree.
#[derive(JsonSchema)]
pub struct Tree {
    /// What it is called.
    pub name: String,
    /// sealed or linked.
    pub kind: String,
    /// The absolute path of its directory.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The branch that it lands on.
    pub target: String,
    /// Its task.
    pub task: Option<TaskRef>,
    /// creating, active, kept, landed, trashed, removed or broken.
    pub status: String,
}

/// Several.
#[derive(JsonSchema)]
pub struct Trees {
    /// In order.
    pub trees: Vec<Tree>,
}

/// One.
#[derive(JsonSchema)]
pub struct OneTree {
    /// As it is now.
    pub tree: Tree,
}

/// One that the target was brought into.
#[derive(JsonSchema)]
pub struct Synced {
    /// As it is now.
    pub tree: Tree,
    /// up_to_date, merged or conflict.
    pub outcome: String,
    /// Paths to resolve in it.
    pub conflicts: Vec<String>,
    /// What is in progress in it because of a conflict: merge or rebase.
    pub operation: Option<String>,
    /// Files that git ignores and that were in the way, by their new names.
    pub set_aside: Vec<String>,
}

/// One that something was done to.
#[derive(JsonSchema)]
pub struct TreeOutcome {
    /// As it is now.
    pub tree: Tree,
    /// created, reused, recreated, kept, trashed or already_gone.
    pub outcome: String,
}

/// How a command in a worktree ended.
#[derive(JsonSchema)]
pub struct RunOutcome {
    /// The worktree.
    pub tree: String,
    /// The command's exit code; 124 when its time was over.
    pub exit: u8,
    /// Both of its streams, in order.
    pub output: String,
    /// Whether the middle of the output was left out.
    pub truncated: bool,
    /// Whether its time was over.
    pub timed_out: bool,
    /// What weald says beside.
    pub notes: Vec<String>,
}

/// What changed in a worktree.
#[derive(JsonSchema)]
pub struct Diff {
    /// Each path with status, state, and lines added and deleted.
    pub files: Vec<ChangedFile>,
    /// Whether there is more.
    pub truncated: bool,
    /// The patch, if it was asked for.
    pub patch: Option<String>,
}

/// A path that changed.
#[derive(JsonSchema)]
pub struct ChangedFile {
    /// Where.
    pub path: String,
    /// added, modified, deleted and so on.
    pub status: String,
    /// committed, staged, unstaged or untracked.
    pub state: String,
}

/// What happened, as CloudEvents.
#[derive(JsonSchema)]
pub struct Events {
    /// The newest is last.
    pub events: Vec<Event>,
}

/// One of them.
#[derive(JsonSchema)]
pub struct Event {
    /// Such as dev.weald.tree.create.after.
    pub r#type: String,
    /// The task and the tree, who did it, and what it is now.
    pub data: Value,
}

/// What became of landings.
#[derive(JsonSchema)]
pub struct Landings {
    /// In the order in which they were queued.
    pub landings: Vec<Landing>,
}

/// One of them.
#[derive(JsonSchema)]
pub struct Landing {
    /// Its number.
    pub id: u64,
    /// The worktree.
    pub tree: String,
    /// landed, nothing_to_land, conflict, red, refused, queued, dropped or would_land.
    pub outcome: String,
    /// The paths in conflict.
    pub conflicts: Vec<Value>,
}

/// What waits to land, or has ended.
#[derive(JsonSchema)]
pub struct Queue {
    /// In order.
    pub queue: Vec<Landing>,
}

/// Which worktrees would clash.
#[derive(JsonSchema)]
pub struct Conflicts {
    /// Each with `a`, `b` and `paths`.
    pub pairs: Vec<Pair>,
}

/// Two that would.
#[derive(JsonSchema)]
pub struct Pair {
    /// A worktree.
    pub a: String,
    /// Another one, or the target.
    pub b: String,
    /// Where.
    pub paths: Vec<Value>,
}

/// What a clean-up would take.
#[derive(JsonSchema)]
pub struct Clean {
    /// Worktrees that may go, each with its reason.
    pub candidates: Vec<Value>,
    /// Worktrees that stay, each with its blockers.
    pub skipped: Vec<Value>,
    /// False: nothing was changed.
    pub applied: bool,
}

/// What can be restored.
#[derive(JsonSchema)]
pub struct Trash {
    /// Each with id, name, branch and size.
    pub trash: Vec<Value>,
}
