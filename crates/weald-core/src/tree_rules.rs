//! What may happen to a tree: `(tree, input, now) -> (tree, change)` or a refusal.
//!
//! The end of a removal comes only after its beginning, and a creation ends once. Whether a removal is safe is decided
//! by [`crate::objections`].

use jiff::Timestamp;

use crate::event::{Change, EventKind};
use crate::id::{LandingId, TaskId};
use crate::name::TreeName;
use crate::ports::PortBlock;
use crate::session::ProcessIdentity;
use crate::setup::{SetupOutcome, SetupRecord};
use crate::task::Closeout;
use crate::tree::{
    Approval, Base, DirectoryIdentity, Run, Trash, Tree, TreeKind, TreeLock, TreeStatus, UnlockMark,
};

/// What happens to a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeInput {
    Created {
        identity: DirectoryIdentity,
        registration: String,
    },
    /// It was not made.
    CreateFailed {
        error: String,
    },
    /// A person keeps it.
    Keep,
    /// A person keeps it no longer.
    Unkeep {
        /// Whether its work is on the target.
        landed: bool,
    },
    /// Its work is on the target.
    Landed,
    RemoveBegins {
        /// Who does it, to know whether it still goes on.
        worker: Option<ProcessIdentity>,
    },
    /// It was renamed into the trash.
    Trashed(Box<Trash>),
    /// Its last traces are gone.
    Removed,
    /// The removal did not happen.
    RemoveFailed {
        error: String,
    },
    /// It came back from the trash.
    Restored {
        identity: DirectoryIdentity,
        registration: String,
        /// Its task, if that is free.
        task: Option<TaskId>,
        /// The last landing of its work, unless that was reverted.
        landed: Option<LandingId>,
    },
    /// It can't be used.
    Broke {
        error: String,
    },
    /// It can be used again, perhaps elsewhere.
    Repaired {
        identity: DirectoryIdentity,
        path: std::path::PathBuf,
        registration: String,
    },
    /// It is known again in the trash: it was copied or restored with its repository.
    FoundInTrash {
        identity: DirectoryIdentity,
        /// Where it would come back to.
        path: std::path::PathBuf,
        trash: std::path::PathBuf,
    },
    /// Its directory belongs to another repository; nothing of it is touched.
    Forgotten,
    Lock(TreeLock),
    /// Nobody locks it any more.
    Unlock,
    /// A sweep found its lock stale.
    MarkStale(UnlockMark),
    /// A later one found the same, and takes the lock away.
    UnlockStale,
    /// What its HEAD holds is in the vault.
    Imported {
        head: String,
        /// Whether main's branch was moved by somebody else.
        diverged: bool,
    },
    /// A command begins in it.
    RunBegins(Box<Run>),
    RunEnds {
        process: ProcessIdentity,
        /// Whether it took too long.
        timed_out: bool,
        code: Option<i32>,
    },
    Entered {
        /// From where: that is the way back.
        from: std::path::PathBuf,
    },
    /// The target was brought into it.
    Synced(Base),
    /// The branch that it lands on has another name.
    Retargeted(String),
    /// A task gets it.
    Bind(TaskId),
    /// Its task lets it go.
    Unbind,
    /// How it was dealt with at the end.
    Closeout(Closeout),
    /// A person approved its head.
    Approved(Box<Approval>),
    /// It got other ports, or none.
    Ports(Option<PortBlock>),
    SetUp {
        outcome: SetupOutcome,
        error: Option<String>,
    },
}

/// A move that the states don't allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("worktree {name} is {}: {}", .from.as_str(), refusal(.input))]
pub struct TreeRefusal {
    pub name: TreeName,
    pub from: TreeStatus,
    pub input: Box<TreeInput>,
}

fn refusal(input: &TreeInput) -> &'static str {
    match input {
        TreeInput::Keep => "it can't be kept",
        TreeInput::Unkeep { .. } => "it is not marked as kept",
        TreeInput::RemoveBegins { .. } => "it can't be removed",
        TreeInput::Restored { .. } => "there is nothing to restore",
        TreeInput::RunBegins(_) | TreeInput::Entered { .. } => "it can't be worked in",
        TreeInput::Bind(_) => "it can't be bound",
        _ => "that is not possible now",
    }
}

/// What is given to git to finish what goes on in a tree, or to see how.
pub fn finishing(operation: &str) -> &'static str {
    match operation {
        "merge" => "commit --no-edit",
        _ => "status",
    }
}

/// Announces a tree: the intent that a crash leaves behind.
pub fn announce(tree: Tree) -> (Tree, Change) {
    let tree = Tree {
        status: TreeStatus::Creating,
        ..tree
    };
    (
        tree.clone(),
        Change::tree(EventKind::TREE_CREATE_BEFORE, tree),
    )
}

/// Takes in a tree that somebody else made: it is there already, so there is nothing to announce.
pub fn adopt(tree: Tree) -> (Tree, Change) {
    let tree = Tree {
        status: TreeStatus::Active,
        kind: TreeKind::Linked,
        ..tree
    };
    (tree.clone(), Change::tree(EventKind::TREE_ADOPTED, tree))
}

pub fn decide(
    tree: &Tree,
    input: TreeInput,
    now: Timestamp,
) -> Result<(Tree, Change), TreeRefusal> {
    let ends_removal = matches!(
        input,
        TreeInput::Trashed(_) | TreeInput::Removed | TreeInput::RemoveFailed { .. }
    );
    let enters = matches!(input, TreeInput::RunBegins(_) | TreeInput::Entered { .. });
    let next = follows(tree.status, &input)
        .filter(|_| !ends_removal || tree.removing)
        .filter(|_| !(enters && tree.removing));
    let Some((status, kind)) = next else {
        return Err(TreeRefusal {
            name: tree.name.clone(),
            from: tree.status,
            input: Box::new(input),
        });
    };
    let status = match &input {
        TreeInput::Restored { landed, .. } => stood(tree, *landed).unwrap_or(status),
        _ => status,
    };
    let mut next = Tree {
        status,
        removing: matches!(input, TreeInput::RemoveBegins { .. })
            || (tree.removing && !ends_removal && input != TreeInput::Forgotten),
        last_used_at: match is_use(tree, &input) {
            true => now,
            false => tree.last_used_at,
        },
        ..tree.clone()
    };
    let ends_creation = matches!(
        input,
        TreeInput::Created { .. } | TreeInput::CreateFailed { .. }
    );
    if ends_removal || ends_creation || input == TreeInput::Forgotten {
        next.worker = None;
    }
    let input = match input {
        TreeInput::Trashed(trash) => TreeInput::Trashed(Box::new(Trash {
            status: Some(tree.status),
            ..*trash
        })),
        other => other,
    };
    let error = apply(&mut next, input, now);
    let mut change = Change::tree(kind, next.clone()).with_error(error);
    // A tree that lets its task go by this step was that task's until now.
    change.task = change.task.or_else(|| tree.task.clone());
    Ok((next, change))
}

/// Where a tree in the trash stood, if that still holds: a landing may have been reverted since.
fn stood(tree: &Tree, landed: Option<LandingId>) -> Option<TreeStatus> {
    let before = tree.trash.as_ref()?.status?;
    match before {
        TreeStatus::Kept => Some(before),
        TreeStatus::Landed => landed.map(|_| before),
        _ => None,
    }
}

/// Whether somebody works in a tree by this. A look, a lock, a mark or a removal that is refused is no use: otherwise
/// nothing would ever grow old.
fn is_use(tree: &Tree, input: &TreeInput) -> bool {
    use TreeInput as In;
    match input {
        In::Imported { head, .. } => head != tree.head.as_ref().unwrap_or(&tree.base.commit),
        In::Created { .. }
        | In::Restored { .. }
        | In::Repaired { .. }
        | In::RunBegins(_)
        | In::RunEnds { .. }
        | In::Entered { .. }
        | In::Synced(_)
        | In::Retargeted(_)
        | In::Bind(_)
        | In::SetUp { .. }
        | In::Landed => true,
        _ => false,
    }
}

/// The table: which status and which event follow; `None` where the input makes no sense.
fn follows(from: TreeStatus, input: &TreeInput) -> Option<(TreeStatus, EventKind)> {
    use EventKind as Kind;
    use TreeInput as In;
    use TreeStatus::*;
    let stays = |kind: Kind| Some((from, kind));
    match (input, from) {
        (In::Created { .. }, Creating) => Some((Active, Kind::TREE_CREATE_AFTER)),
        (In::CreateFailed { .. }, Creating) => Some((Removed, Kind::TREE_CREATE_FAILED)),
        (In::Keep, Active | Kept | Landed) => Some((Kept, Kind::TREE_KEPT)),
        (In::Unkeep { landed: true }, Kept) => Some((Landed, Kind::TREE_UNKEPT)),
        (In::Unkeep { landed: false }, Kept) => Some((Active, Kind::TREE_UNKEPT)),
        (In::Landed, Active | Kept | Landed) => Some((Landed, Kind::TREE_LANDED)),
        (In::RemoveBegins { .. }, Active | Kept | Landed | Broken | Trashed) => {
            stays(Kind::TREE_REMOVE_BEFORE)
        }
        (In::Trashed(_), Active | Kept | Landed | Broken) => Some((Trashed, Kind::TREE_TRASHED)),
        (In::Removed, Active | Kept | Landed | Broken | Trashed) => {
            Some((Removed, Kind::TREE_REMOVE_AFTER))
        }
        (In::RemoveFailed { .. }, Active | Kept | Landed | Broken | Trashed) => {
            stays(Kind::TREE_REMOVE_FAILED)
        }
        (In::Restored { .. }, Trashed) => Some((Active, Kind::TREE_RESTORED)),
        (In::Broke { .. }, Creating | Active | Kept | Landed) => Some((Broken, Kind::TREE_BROKEN)),
        (In::Repaired { .. }, Broken) => Some((Active, Kind::TREE_REPAIRED)),
        (In::Repaired { .. }, Active | Kept | Landed) => stays(Kind::TREE_REPAIRED),
        (In::FoundInTrash { .. }, Trashed) => stays(Kind::TREE_REPAIRED),
        (In::Forgotten, Creating | Active | Kept | Landed | Broken | Trashed) => {
            Some((Removed, Kind::TREE_FORGOTTEN))
        }
        (In::RunEnds { timed_out, .. }, _) => stays(match timed_out {
            true => Kind::TREE_RUN_TIMEOUT,
            false => Kind::TREE_RUN_AFTER,
        }),
        (In::Unbind, _) => stays(Kind::TASK_UNBOUND),
        (In::Closeout(_), _) => stays(Kind::TREE_CLOSEOUT),
        (_, Creating | Trashed | Removed) => None,
        (In::Lock(_), _) => stays(Kind::TREE_LOCKED),
        (In::Unlock | In::UnlockStale, _) => stays(Kind::TREE_UNLOCKED),
        (In::MarkStale(_), _) => stays(Kind::TREE_UNLOCK_MARKED),
        (In::Imported { .. }, _) => stays(Kind::TREE_IMPORTED),
        (In::RunBegins(_), Active | Kept | Landed) => stays(Kind::TREE_RUN_BEFORE),
        (In::Entered { .. }, Active | Kept | Landed) => stays(Kind::TREE_ENTERED),
        (In::Synced(_), _) => stays(Kind::TREE_SYNCED),
        (In::Retargeted(_), _) => stays(Kind::TREE_RETARGETED),
        (In::Bind(_), _) => stays(Kind::TASK_BOUND),
        (In::Approved(_), _) => stays(Kind::TREE_APPROVED),
        (In::Ports(_), _) => stays(Kind::TREE_PORTS),
        (In::SetUp { outcome, .. }, _) => stays(match outcome {
            SetupOutcome::Done => Kind::TREE_SETUP_AFTER,
            _ => Kind::TREE_SETUP_FAILED,
        }),
        _ => None,
    }
}

/// Writes what the input says into the record; answers the error it carries.
fn apply(tree: &mut Tree, input: TreeInput, now: Timestamp) -> Option<String> {
    match input {
        TreeInput::Created {
            identity,
            registration,
        } => {
            tree.identity = Some(identity);
            tree.registration = Some(registration);
        }
        TreeInput::Repaired {
            identity,
            path,
            registration,
        } => {
            tree.identity = Some(identity);
            tree.registration = Some(registration);
            tree.path = path;
        }
        TreeInput::Restored {
            identity,
            registration,
            task,
            landed: _,
        } => {
            tree.identity = Some(identity);
            tree.registration = Some(registration);
            tree.task = task;
            tree.trash = None;
        }
        TreeInput::Trashed(trash) => {
            tree.trash = Some(*trash);
            let_go(tree);
        }
        TreeInput::FoundInTrash {
            identity,
            path,
            trash,
        } => {
            tree.identity = Some(identity);
            tree.path = path;
            if let Some(known) = &mut tree.trash {
                known.path = trash;
            }
        }
        TreeInput::Removed | TreeInput::Forgotten => let_go(tree),
        TreeInput::Keep => tree.kept_at = Some(now),
        TreeInput::Unkeep { .. } => tree.kept_at = None,
        TreeInput::Lock(lock) => (tree.locked, tree.unlock_marked) = (Some(lock), None),
        TreeInput::Unlock | TreeInput::UnlockStale => unlock(tree),
        TreeInput::MarkStale(mark) => tree.unlock_marked = Some(mark),
        TreeInput::Imported { head, diverged } => {
            tree.head = Some(head);
            tree.diverged = diverged;
        }
        TreeInput::RunBegins(run) => {
            tree.sandbox = Some(run.level.clone());
            tree.runs.push(*run);
        }
        TreeInput::RunEnds {
            process,
            timed_out,
            code,
        } => {
            tree.runs.retain(|run| run.process != process);
            return run_error(timed_out, code);
        }
        TreeInput::Entered { from } => {
            (tree.last_entered_at, tree.entered_from) = (Some(now), Some(from));
        }
        TreeInput::Synced(base) => tree.base = base,
        TreeInput::Retargeted(target) => tree.target = target,
        TreeInput::Bind(task) => tree.task = Some(task),
        TreeInput::Unbind => tree.task = None,
        TreeInput::Closeout(closeout) => tree.closeout = Some(closeout),
        TreeInput::Approved(approval) => tree.approval = Some(*approval),
        TreeInput::Ports(ports) => tree.ports = ports,
        TreeInput::SetUp { outcome, error } => {
            tree.setup = Some(SetupRecord { outcome, at: now });
            return error;
        }
        TreeInput::CreateFailed { error } => {
            tree.ports = None;
            tree.task = None;
            return Some(error);
        }
        TreeInput::RemoveFailed { error } | TreeInput::Broke { error } => return Some(error),
        TreeInput::RemoveBegins { worker } => tree.worker = worker,
        TreeInput::Landed => {}
    }
    None
}

fn unlock(tree: &mut Tree) {
    (tree.locked, tree.unlock_marked) = (None, None);
}

/// What went wrong with a command.
fn run_error(timed_out: bool, code: Option<i32>) -> Option<String> {
    match (timed_out, code) {
        (true, _) => Some("it timed out".to_owned()),
        (false, Some(0)) => None,
        (false, Some(code)) => Some(format!("exit code {code}")),
        (false, None) => Some("it did not start".to_owned()),
    }
}

/// What a tree holds only while it is there.
fn let_go(tree: &mut Tree) {
    tree.ports = None;
    tree.task = None;
    unlock(tree);
    tree.runs.clear();
}
