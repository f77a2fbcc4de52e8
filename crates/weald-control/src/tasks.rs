//! Tasks: add, list, edit, and who works on what.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::dependencies::{Blockers, find_cycle};
use weald_core::event::{Change, EventKind};
use weald_core::id::{TaskId, Token};
use weald_core::import::LineError;
use weald_core::name::SessionName;
use weald_core::session::Liveness;
use weald_core::session_rules;
use weald_core::store::{Counter, Durability, Read, StoreError, TaskClass, TaskFilter, Write};
use weald_core::task::{Lease, PlanApproval, Priority, Task, TaskStatus};
use weald_core::task_rules::{self, TaskEdit, TaskInput, TaskRefusal};
use weald_core::tree::{Tree, TreeStatus};

use crate::engine::Engine;

/// Why something did not happen to a task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] TaskRefusal),
    #[error("there is no task {id}")]
    NotFound { id: TaskId },
    /// The id is taken.
    #[error("task {id} already exists")]
    Exists { id: TaskId },
    /// Dependencies would go round.
    #[error("the dependencies would form a cycle: {}", path(.round))]
    Cycle {
        /// The way round, the first also last.
        round: Vec<TaskId>,
    },
    /// No task can be claimed now.
    #[error("no task is ready")]
    NothingReady {
        /// How many wait for others.
        waiting: u64,
        /// How many are being worked on.
        in_progress: u64,
    },
    /// An import has lines that can't be taken, and was to be taken whole.
    #[error("{} invalid, so nothing was imported{}", if errors.len() == 1 { "1 entry is".to_owned() } else { format!("{} entries are", errors.len()) }, first(errors))]
    BadLines { errors: Vec<LineError> },
}

fn first(errors: &[LineError]) -> String {
    let first = errors.first();
    let first = first.map(|error| format!("; {}: {}", error.place(), error.message));
    first.unwrap_or_default()
}

fn path(round: &[TaskId]) -> String {
    round
        .iter()
        .map(TaskId::to_string)
        .collect::<Vec<_>>()
        .join(" -> ")
}

/// A task to be made.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// Its own id; without one it gets a number.
    pub id: Option<TaskId>,
    pub subject: String,
    pub description: String,
    /// What has to hold for it to be done.
    pub acceptance: String,
    pub priority: Priority,
    /// What it waits for.
    pub blocked_by: Vec<TaskId>,
    pub labels: Vec<String>,
    /// The board or epic.
    pub plan: Option<String>,
    /// The branch that its work starts from and lands on.
    pub base_branch: Option<String>,
    /// Whether a plan has to be approved first.
    pub needs_plan: bool,
}

/// A task with what its dependencies say of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDetail {
    #[serde(flatten)]
    pub task: Task,
    /// Where its tree stands; null without one.
    pub worktree_state: Option<TreeStatus>,
    /// True when a claim would succeed without taking over.
    pub ready: bool,
    /// What it waits for.
    pub waiting_for: Blockers,
    /// Who waits for it.
    pub blocks: Vec<TaskId>,
}

/// A claim that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claimed {
    pub task: Task,
    pub lease: Lease,
}

/// A task that was renewed, finished or given back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub task: Task,
    /// What became ready by it.
    pub unblocked: Vec<TaskId>,
}

impl Engine {
    pub fn add_task(&self, actor: Option<&SessionName>, new: NewTask) -> Result<Task, TaskError> {
        self.change(actor, Durability::Process, |tx| {
            let id = match new.id {
                Some(id) if tx.task(&id)?.is_some() => return Err(TaskError::Exists { id }),
                Some(id) => id,
                None => next_free(tx, |_| false)?,
            };
            let mut task = Task {
                description: new.description,
                acceptance: new.acceptance,
                priority: new.priority,
                blocked_by: unique(new.blocked_by),
                labels: new.labels,
                plan: new.plan,
                plan_approval: new.needs_plan.then_some(PlanApproval::Required),
                ..Task::new(id, new.subject, tx.now())
            };
            task.set_base_branch(new.base_branch.unwrap_or_default());
            task_rules::check_new(&task)?;
            require_no_cycle(tx, std::slice::from_ref(&task))?;
            tx.record(actor, Change::task(EventKind::TASK_CREATED, task.clone()))?;
            Ok(task)
        })
    }

    /// Tasks by filter, and how many there are without its limit.
    pub fn tasks(&self, filter: &TaskFilter) -> Result<(Vec<Task>, u64), TaskError> {
        self.look(|tx| {
            let found = tx.tasks(filter)?;
            let all = match filter.limit {
                Some(limit) if found.len() as u64 >= limit => tx.count_tasks(filter)?,
                _ => found.len() as u64,
            };
            Ok((found, all))
        })
    }

    /// One task with its neighbours.
    pub fn task(&self, id: &TaskId) -> Result<TaskDetail, TaskError> {
        self.look(|tx| {
            let task = require_task(tx, id)?;
            let waiting_for = blockers(tx, &task)?;
            let ready = task.is_open() && waiting_for.is_empty();
            let tree = match &task.worktree {
                Some(name) => tx.tree(name)?,
                None => None,
            };
            let worktree_state = tree.map(|tree| tree.status);
            Ok(TaskDetail {
                worktree_state,
                ready,
                waiting_for,
                blocks: tx.dependents(id)?,
                task,
            })
        })
    }

    /// Claims `id`, or the next task that is ready (or abandoned). What a dead session holds is given back if it is named.
    pub fn claim(
        &self,
        session: &SessionName,
        id: Option<&TaskId>,
        ttl: Option<SignedDuration>,
    ) -> Result<Claimed, TaskError> {
        let ttl = ttl.unwrap_or(self.settings.lease_ttl);
        self.change(Some(session), Durability::Process, |tx| {
            if let Some(id) = id {
                self.give_back_of_dead(tx, session, id)?;
            }
            self.claim_in(tx, session, id, ttl)
        })
    }

    /// Claims `id`, or the next task, as part of a larger step.
    pub(crate) fn claim_in(
        &self,
        tx: &mut dyn Write,
        session: &SessionName,
        id: Option<&TaskId>,
        ttl: SignedDuration,
    ) -> Result<Claimed, TaskError> {
        let task = match id {
            Some(id) => require_task(tx, id)?,
            None => match self.next_task(tx, &[])? {
                Some(task) => task,
                None => return Err(nothing_ready(tx)?),
            },
        };
        let input = TaskInput::Claim {
            session: session.clone(),
            ttl,
            blockers: blockers(tx, &task)?,
        };
        let task = decide_task(tx, Some(session), &task, input)?;
        lead(tx, session, Some(&task))?;
        let lease = task.lease.clone().expect("a claim makes a lease");
        Ok(Claimed { task, lease })
    }

    /// Gives back a claim whose holder is proven dead before its lease is over. One that only may be dead keeps it, and so
    /// does one whose tree something runs in.
    pub(crate) fn give_back_of_dead(
        &self,
        tx: &mut dyn Write,
        me: &SessionName,
        id: &TaskId,
    ) -> Result<(), TaskError> {
        let task = require_task(tx, id)?;
        let Some(lease) = task.lease.as_ref().filter(|lease| lease.session != *me) else {
            return Ok(());
        };
        let is_left = task.status == TaskStatus::InProgress
            && !lease.is_expired(tx.now())
            && self.liveness_of(tx, &lease.session)? == Liveness::Dead
            && !self.is_worked_on(tx, &task)?;
        if is_left {
            let token = Some(lease.token);
            move_in(tx, Some(me), &task, TaskInput::Release { token })?;
        }
        Ok(())
    }

    /// The directory of a task's tree, if it has one.
    pub fn place_of_task(&self, task: &Task) -> Result<Option<PathBuf>, TaskError> {
        let Some(name) = &task.worktree else {
            return Ok(None);
        };
        let tree = self.look(|tx| tx.tree(name))?;
        Ok(tree.filter(Tree::is_live).map(|tree| tree.path))
    }

    /// Leads a session to the tree that its task has by now, if it still holds that.
    pub fn lead_to(&self, session: &SessionName, id: &TaskId) -> Result<(), TaskError> {
        self.change(Some(session), Durability::Process, |tx| {
            let task = require_task(tx, id)?;
            let is_held = task.lease.as_ref().map(|lease| &lease.session) == Some(session);
            match is_held {
                true => Ok(lead(tx, session, Some(&task))?),
                false => Ok(()),
            }
        })
    }

    /// Whether there is a next task.
    pub fn has_ready(&self) -> Result<bool, TaskError> {
        Ok(self.look(|tx| self.has_next(tx))?)
    }

    /// Holds a claim for longer.
    pub fn renew(
        &self,
        actor: Option<&SessionName>,
        id: &TaskId,
        token: Option<Token>,
        ttl: Option<SignedDuration>,
    ) -> Result<Finished, TaskError> {
        let ttl = ttl.unwrap_or(self.settings.lease_ttl);
        self.move_task(actor, id, TaskInput::Renew { token, ttl })
    }

    /// Decides one input on one task.
    pub fn move_task(
        &self,
        actor: Option<&SessionName>,
        id: &TaskId,
        input: TaskInput,
    ) -> Result<Finished, TaskError> {
        let durability = match input {
            TaskInput::Complete { .. } | TaskInput::CompleteUnclaimed { .. } => Durability::Power,
            _ => Durability::Process,
        };
        self.change(actor, durability, |tx| {
            let task = require_task(tx, id)?;
            self.role.may_change(actor, &task, tx.now())?;
            let waiting = waiting_for(tx, id)?;
            let task = move_in(tx, actor, &task, input)?;
            let still = waiting_for(tx, id)?;
            let unblocked = waiting
                .into_iter()
                .filter(|id| !still.contains(id))
                .collect();
            Ok(Finished { task, unblocked })
        })
    }

    /// Says whether an input would be refused; nothing is written.
    pub fn try_task(&self, id: &TaskId, input: TaskInput) -> Result<(), TaskError> {
        self.look(|tx| {
            let task = require_task(tx, id)?;
            task_rules::decide(&task, input, tx.now())?;
            Ok(())
        })
    }

    /// Changes a task's words.
    pub fn edit_task(
        &self,
        actor: Option<&SessionName>,
        id: &TaskId,
        edit: TaskEdit,
    ) -> Result<Task, TaskError> {
        self.move_task(actor, id, TaskInput::Edit(Box::new(edit)))
            .map(|finished| finished.task)
    }

    /// Adds and removes dependencies.
    pub fn change_dependencies(
        &self,
        actor: Option<&SessionName>,
        id: &TaskId,
        add: &[TaskId],
        remove: &[TaskId],
    ) -> Result<Task, TaskError> {
        self.change(actor, Durability::Process, |tx| {
            let task = require_task(tx, id)?;
            self.role.may_change(actor, &task, tx.now())?;
            let kept = task
                .blocked_by
                .iter()
                .filter(|known| !remove.contains(known));
            let blocked_by = unique(kept.chain(add).cloned().collect());
            let edit = TaskEdit {
                blocked_by: Some(blocked_by),
                ..TaskEdit::default()
            };
            let (task, change) =
                task_rules::decide(&task, TaskInput::Edit(Box::new(edit)), tx.now())?;
            require_no_cycle(tx, std::slice::from_ref(&task))?;
            tx.record(actor, change)?;
            Ok(task)
        })
    }
}

/// Decides one input on a task and records it.
pub(crate) fn decide_task(
    tx: &mut dyn Write,
    actor: Option<&SessionName>,
    task: &Task,
    input: TaskInput,
) -> Result<Task, TaskError> {
    let (next, change) = task_rules::decide(task, input, tx.now())?;
    tx.record(actor, change)?;
    Ok(next)
}

/// Decides one input on a task. A session that holds it no more is led back to the main checkout.
pub fn move_in(
    tx: &mut dyn Write,
    actor: Option<&SessionName>,
    task: &Task,
    input: TaskInput,
) -> Result<Task, TaskError> {
    let next = decide_task(tx, actor, task, input)?;
    let holder = task.lease.as_ref().filter(|_| next.lease.is_none());
    if let Some(lease) = holder {
        lead_back(tx, &lease.session, &task.id)?;
    }
    Ok(next)
}

/// A session works where its newest claim is: in the tree of the task, or in the main checkout.
fn lead(tx: &mut dyn Write, name: &SessionName, task: Option<&Task>) -> Result<(), StoreError> {
    let Some(session) = tx.session(name)?.filter(|known| known.ended_at.is_none()) else {
        return Ok(());
    };
    let id = task.map(|task| task.id.clone());
    let tree = task.and_then(|task| task.worktree.clone());
    if let Some((_, change)) = session_rules::led(&session, id, tree, tx.now()) {
        tx.record(Some(name), change)?;
    }
    Ok(())
}

/// A claim that ended leads its session back, unless it works on something else by now.
fn lead_back(tx: &mut dyn Write, name: &SessionName, task: &TaskId) -> Result<(), StoreError> {
    let session = tx.session(name)?;
    match session.is_some_and(|session| session.task.as_ref() == Some(task)) {
        true => lead(tx, name, None),
        false => Ok(()),
    }
}

pub fn require_task(tx: &(impl Read + ?Sized), id: &TaskId) -> Result<Task, TaskError> {
    tx.task(id)?
        .ok_or_else(|| TaskError::NotFound { id: id.clone() })
}

pub(crate) fn blockers(tx: &(impl Read + ?Sized), task: &Task) -> Result<Blockers, StoreError> {
    let status = |id: &TaskId| Ok((id.clone(), tx.task(id)?.map(|task| task.status)));
    let known: Result<Vec<_>, StoreError> = task.blocked_by.iter().map(status).collect();
    Ok(Blockers::of(known?))
}

/// The dependents of `id` that are pending and still wait for something.
fn waiting_for(tx: &(impl Read + ?Sized), id: &TaskId) -> Result<Vec<TaskId>, TaskError> {
    let mut waiting = Vec::new();
    for dependent in tx.dependents(id)? {
        let task = require_task(tx, &dependent)?;
        if task.status == TaskStatus::Pending && !blockers(tx, &task)?.is_empty() {
            waiting.push(dependent);
        }
    }
    Ok(waiting)
}

/// Refuses what would go round once `changed` is written.
pub(crate) fn require_no_cycle(tx: &dyn Write, changed: &[Task]) -> Result<(), TaskError> {
    let edges: BTreeMap<&TaskId, &Vec<TaskId>> = changed
        .iter()
        .map(|task| (&task.id, &task.blocked_by))
        .collect();
    let starts = changed.iter().map(|task| task.id.clone());
    let round = find_cycle(starts, |id| match edges.get(id) {
        Some(blocked_by) => Ok((*blocked_by).clone()),
        None => Ok::<_, StoreError>(tx.task(id)?.map(|task| task.blocked_by).unwrap_or_default()),
    })?;
    match round {
        Some(round) => Err(TaskError::Cycle { round }),
        None => Ok(()),
    }
}

/// The next number that no task has, and that nobody else is `taken` by.
pub(crate) fn next_free(
    tx: &mut dyn Write,
    taken: impl Fn(&TaskId) -> bool,
) -> Result<TaskId, StoreError> {
    loop {
        let id = TaskId::Number(tx.next_number(Counter::Task)?);
        if !taken(&id) && tx.task(&id)?.is_none() {
            return Ok(id);
        }
    }
}

pub(crate) fn nothing_ready(tx: &(impl Read + ?Sized)) -> Result<TaskError, StoreError> {
    let count = |class| tx.count_tasks(&TaskFilter::of(class));
    Ok(TaskError::NothingReady {
        waiting: count(TaskClass::Waiting)?,
        in_progress: count(TaskClass::Status(TaskStatus::InProgress))?,
    })
}

/// The same ids in the same order, each once.
pub(crate) fn unique(ids: Vec<TaskId>) -> Vec<TaskId> {
    let mut seen = BTreeSet::new();
    ids.into_iter()
        .filter(|id| seen.insert(id.clone()))
        .collect()
}
