//! One task, one tree: binding them, and letting go. Both records always agree.

use jiff::Timestamp;

use crate::event::{Change, EventKind};
use crate::id::TaskId;
use crate::name::{SessionName, TreeName};
use crate::task::{Task, TaskStatus};
use crate::task_rules::{self, TaskInput, TaskRefusal};
use crate::tree::Tree;
use crate::tree_rules::{self, TreeInput, TreeRefusal};

/// Why they were not bound.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BindRefusal {
    /// The task has a tree.
    #[error("task {task} already has worktree {tree}")]
    TaskBound { task: TaskId, tree: TreeName },
    /// The tree has a task.
    #[error("worktree {tree} already belongs to task {task}")]
    TreeBound { tree: TreeName, task: TaskId },
    /// The task is bound to nothing.
    #[error("task {task} has no worktree")]
    NotBound { task: TaskId },
    /// The tree's status does not allow it.
    #[error(transparent)]
    Tree(#[from] TreeRefusal),
    /// The task's status does not allow it.
    #[error(transparent)]
    Task(#[from] TaskRefusal),
}

/// Whether binding also starts the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindStart {
    Keep,
    /// A pending task becomes in progress, perhaps with an owner.
    Start(Option<SessionName>),
}

/// Binds; a task that is not pending keeps its status whatever `start` says. One that nobody has gets the owner.
pub fn bind(
    task: &Task,
    tree: &Tree,
    start: BindStart,
    now: Timestamp,
) -> Result<(Task, Tree, Change), BindRefusal> {
    if let Some(bound) = &task.worktree
        && *bound != tree.name
    {
        return Err(BindRefusal::TaskBound {
            task: task.id.clone(),
            tree: bound.clone(),
        });
    }
    if let Some(bound) = &tree.task
        && *bound != task.id
    {
        return Err(BindRefusal::TreeBound {
            tree: tree.name.clone(),
            task: bound.clone(),
        });
    }
    let mut next = match start {
        BindStart::Start(owner)
            if task.status == TaskStatus::Pending || (owner.is_some() && task.is_nobodys()) =>
        {
            task_rules::decide(task, TaskInput::Start { owner }, now)?.0
        }
        _ => task.clone(),
    };
    next.worktree = Some(tree.name.clone());
    next.updated_at = now;
    let (tree, change) = tree_rules::decide(tree, TreeInput::Bind(task.id.clone()), now)?;
    Ok((next.clone(), tree, change.and_task(next)))
}

/// Whether a task and a worktree are bound to each other.
pub fn agree(task: &Task, tree: &Tree) -> bool {
    tree.is_live()
        && tree.task.as_ref() == Some(&task.id)
        && task.worktree.as_ref() == Some(&tree.name)
}

/// A task after its tree is gone or let go: the name is remembered, the status stays.
pub fn released(task: &Task, now: Timestamp) -> Task {
    Task {
        last_worktree: task.worktree.clone().or(task.last_worktree.clone()),
        worktree: None,
        updated_at: now,
        ..task.clone()
    }
}

/// Lets go. `tree` is the task's tree if there is still a record of it.
pub fn unbind(
    task: &Task,
    tree: Option<&Tree>,
    now: Timestamp,
) -> Result<(Task, Change), BindRefusal> {
    if task.worktree.is_none() {
        return Err(BindRefusal::NotBound {
            task: task.id.clone(),
        });
    }
    let next = released(task, now);
    let change = match tree.filter(|tree| tree.task.as_ref() == Some(&task.id)) {
        Some(tree) => tree_rules::decide(tree, TreeInput::Unbind, now)?
            .1
            .and_task(next.clone()),
        None => Change::task(EventKind::TASK_UNBOUND, next.clone()),
    };
    Ok((next, change))
}
