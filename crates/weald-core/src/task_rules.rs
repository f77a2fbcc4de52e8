//! What may happen to a task: `(task, input, now) -> (task, change)` or a refusal that carries the facts.
//!
//! The rules are two tables in code: [`legal_moves`] says which status follows which, [`check_token`] says who may move it.
//! Nothing here reads a clock or a store; dependencies are handed in as [`Blockers`].

use jiff::{SignedDuration, Timestamp};

use crate::dependencies::Blockers;
use crate::event::{Change, EventKind};
use crate::id::{MessageId, TaskId, Token};
use crate::name::SessionName;
use crate::queue::until;
use crate::reading::misleads;
use crate::task::{Closeout, Lease, MAX_SUBJECT, PlanApproval, Priority, Task, TaskStatus};
pub use crate::task_refusal::{TaskRefusal, newer};

/// Something that is asked of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskInput {
    /// Take it, for `ttl`.
    Claim {
        session: SessionName,
        /// For how long before others may take over.
        ttl: SignedDuration,
        /// What its dependencies say.
        blockers: Blockers,
    },
    Renew {
        token: Option<Token>,
        ttl: SignedDuration,
    },
    Release {
        token: Option<Token>,
    },
    /// Work on it without a lease: a person, or a tree that was bound.
    Start {
        /// Who, if it should be owned.
        owner: Option<SessionName>,
    },
    Complete {
        token: Option<Token>,
        report: Option<String>,
    },
    /// It is done, and nobody claimed or started it: a person did it by hand.
    CompleteUnclaimed {
        /// Who did it.
        owner: Option<SessionName>,
        report: Option<String>,
    },
    /// It can't be done.
    Fail {
        token: Option<Token>,
        report: Option<String>,
    },
    /// It is not wanted.
    Cancel {
        reason: Option<String>,
    },
    /// It waits for a person.
    Block {
        reason: String,
    },
    /// Its work is done and waits for somebody before it can land. Nobody takes it meanwhile.
    Park {
        token: Option<Token>,
        reason: String,
    },
    NeedMerge,
    Reopen,
    Edit(Box<TaskEdit>),
    /// Its plan was sent or judged.
    Plan {
        state: PlanApproval,
        /// The message that holds it.
        message: MessageId,
    },
    /// How its tree was dealt with at the end.
    Closeout(Closeout),
}

/// New words for a task; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskEdit {
    pub subject: Option<String>,
    pub description: Option<String>,
    pub acceptance: Option<String>,
    pub priority: Option<Priority>,
    /// New grouping; the empty text takes it away.
    pub plan: Option<String>,
    /// The branch that its work starts from and lands on; the empty text takes it away.
    pub base_branch: Option<String>,
    pub add_labels: Vec<String>,
    /// Labels to take away.
    pub remove_labels: Vec<String>,
    /// The whole new list of dependencies (checked for cycles by the caller).
    pub blocked_by: Option<Vec<TaskId>>,
    /// Ask for an approved plan before completion, or stop asking.
    pub needs_plan: Option<bool>,
    /// What was done, where that is said after the task was closed.
    pub report: Option<String>,
}

/// The statuses that may follow `from`, through any input.
pub fn legal_moves(from: TaskStatus) -> &'static [TaskStatus] {
    use TaskStatus::*;
    match from {
        Pending => &[InProgress, Blocked, Cancelled],
        InProgress => &[Pending, Completed, Failed, NeedsMerge, Blocked, Cancelled],
        NeedsMerge => &[InProgress, Pending, Completed, Failed, Blocked, Cancelled],
        Blocked => &[Pending, Cancelled],
        Failed => &[Pending, Cancelled],
        Completed => &[Pending],
        Cancelled => &[Pending],
    }
}

pub fn decide(
    task: &Task,
    input: TaskInput,
    now: Timestamp,
) -> Result<(Task, Change), TaskRefusal> {
    let mut next = task.clone();
    next.updated_at = now;
    let kind = match input {
        TaskInput::Claim {
            session,
            ttl,
            blockers,
        } => claim(&mut next, session, ttl, blockers, now)?,
        TaskInput::Renew { token, ttl } => renew(&mut next, token, ttl, now)?,
        TaskInput::Release { token } => release(&mut next, token)?,
        TaskInput::Start { owner } => {
            // What a binding started is nobody's yet.
            if owner.is_none() || !task.is_nobodys() {
                leave_to_its_worker(task, owner.as_ref())?;
                move_to(&mut next, TaskStatus::InProgress, now)?;
            }
            next.owner = owner;
            EventKind::TASK_STARTED
        }
        TaskInput::Complete { token, report } => complete(&mut next, token, report, now)?,
        TaskInput::CompleteUnclaimed { owner, report } => {
            if task.status == TaskStatus::Pending {
                move_to(&mut next, TaskStatus::InProgress, now)?;
                next.owner = owner;
            }
            complete(&mut next, None, report, now)?
        }
        TaskInput::Fail { token, report } => {
            check_token(&next, token)?;
            move_to(&mut next, TaskStatus::Failed, now)?;
            next.report = report.or(next.report);
            EventKind::TASK_FAILED
        }
        TaskInput::Cancel { reason } => {
            move_to(&mut next, TaskStatus::Cancelled, now)?;
            next.report = reason.or(next.report);
            EventKind::TASK_CANCELLED
        }
        TaskInput::Block { reason } => {
            move_to(&mut next, TaskStatus::Blocked, now)?;
            next.report = Some(reason);
            EventKind::TASK_BLOCKED
        }
        TaskInput::Park { token, reason } => {
            check_token(&next, token)?;
            if next.status != TaskStatus::InProgress {
                return Err(illegal(task, TaskStatus::InProgress));
            }
            next.lease = None;
            next.parked = Some(reason);
            EventKind::TASK_PARKED
        }
        TaskInput::NeedMerge => {
            move_to(&mut next, TaskStatus::NeedsMerge, now)?;
            EventKind::TASK_NEEDS_MERGE
        }
        // What somebody works on is given back with its token, not pulled away.
        TaskInput::Reopen if task.status == TaskStatus::InProgress => {
            return Err(illegal(task, TaskStatus::Pending));
        }
        TaskInput::Reopen => reopen(&mut next, now)?,
        TaskInput::Edit(edit) => apply_edit(&mut next, *edit)?,
        TaskInput::Plan { state, message } => {
            next.plan_approval = Some(state);
            next.plan_message = Some(message);
            EventKind::TASK_PLAN
        }
        TaskInput::Closeout(closeout) => {
            next.closeout = Some(closeout);
            EventKind::TASK_CLOSEOUT
        }
    };
    let token = next
        .lease
        .as_ref()
        .or(task.lease.as_ref())
        .map(|lease| lease.token);
    Ok((next.clone(), Change::task(kind, next).with_token(token)))
}

/// Checks a new task's words; the same rules as for an edit.
pub fn check_new(task: &Task) -> Result<(), TaskRefusal> {
    check_subject(&task.subject)?;
    task.labels.iter().try_for_each(|label| check_label(label))
}

fn claim(
    task: &mut Task,
    session: SessionName,
    ttl: SignedDuration,
    blockers: Blockers,
    now: Timestamp,
) -> Result<EventKind, TaskRefusal> {
    let taken_over = match &task.lease {
        Some(lease) if !lease.is_expired(now) => {
            return Err(TaskRefusal::Held {
                task: task.id.clone(),
                holder: lease.session.clone(),
                until: lease.expires_at,
            });
        }
        held => held.is_some(),
    };
    if task.status != TaskStatus::InProgress {
        check_move(task, TaskStatus::InProgress)?;
    }
    if let (TaskStatus::InProgress, None, Some(owner)) = (task.status, &task.lease, &task.owner)
        && *owner != session
    {
        return Err(TaskRefusal::Owned {
            task: task.id.clone(),
            owner: owner.clone(),
        });
    }
    if !taken_over && !blockers.is_empty() {
        return Err(TaskRefusal::Waiting {
            task: task.id.clone(),
            blockers,
        });
    }
    task.status = TaskStatus::InProgress;
    task.parked = None;
    task.token = task.token.next();
    task.owner = Some(session.clone());
    task.lease = Some(Lease {
        token: task.token,
        session,
        acquired_at: now,
        expires_at: until(now, ttl),
    });
    Ok(if taken_over {
        EventKind::TASK_TAKEN_OVER
    } else {
        EventKind::TASK_CLAIMED
    })
}

/// A session that works on a task keeps it until it gives the task back. No update may assign it to another session.
fn leave_to_its_worker(task: &Task, wanted: Option<&SessionName>) -> Result<(), TaskRefusal> {
    let (Some(owner), Some(wanted)) = (&task.owner, wanted) else {
        return Ok(());
    };
    if task.status != TaskStatus::InProgress || owner == wanted {
        return Ok(());
    }
    Err(match &task.lease {
        Some(lease) => TaskRefusal::Held {
            task: task.id.clone(),
            holder: lease.session.clone(),
            until: lease.expires_at,
        },
        None => TaskRefusal::Owned {
            task: task.id.clone(),
            owner: owner.clone(),
        },
    })
}

fn renew(
    task: &mut Task,
    token: Option<Token>,
    ttl: SignedDuration,
    now: Timestamp,
) -> Result<EventKind, TaskRefusal> {
    check_token(task, token)?;
    let id = task.id.clone();
    let lease = task
        .lease
        .as_mut()
        .ok_or(TaskRefusal::NotHeld { task: id })?;
    lease.expires_at = until(now, ttl);
    Ok(EventKind::TASK_RENEWED)
}

fn release(task: &mut Task, token: Option<Token>) -> Result<EventKind, TaskRefusal> {
    check_token(task, token)?;
    if task.lease.take().is_none() && task.status != TaskStatus::InProgress {
        return Err(TaskRefusal::NotHeld {
            task: task.id.clone(),
        });
    }
    task.status = TaskStatus::Pending;
    (task.owner, task.parked) = (None, None);
    Ok(EventKind::TASK_RELEASED)
}

fn reopen(task: &mut Task, now: Timestamp) -> Result<EventKind, TaskRefusal> {
    let ended_as = task.status;
    move_to(task, TaskStatus::Pending, now)?;
    task.owner = None;
    // Why it ended says nothing about what is done next; the log keeps it.
    task.report = task.report.take().filter(|_| !ended_as.has_reason());
    Ok(EventKind::TASK_REOPENED)
}

fn complete(
    task: &mut Task,
    token: Option<Token>,
    report: Option<String>,
    now: Timestamp,
) -> Result<EventKind, TaskRefusal> {
    check_token(task, token)?;
    if task.status != TaskStatus::InProgress && task.status != TaskStatus::NeedsMerge {
        return Err(illegal(task, TaskStatus::Completed));
    }
    match task.plan_approval {
        None | Some(PlanApproval::Approved) => {}
        Some(plan) => {
            return Err(TaskRefusal::PlanNotApproved {
                task: task.id.clone(),
                plan,
            });
        }
    }
    move_to(task, TaskStatus::Completed, now)?;
    task.report = report.or(task.report.take());
    Ok(EventKind::TASK_COMPLETED)
}

/// A token that comes must be the newest one; a held task must come with one.
fn check_token(task: &Task, given: Option<Token>) -> Result<(), TaskRefusal> {
    match (given, &task.lease) {
        (Some(given), Some(lease)) if given == lease.token => Ok(()),
        // The claim's own work was closed already: let the status speak.
        (Some(given), None) if given == task.token && task.status.is_closed() => Ok(()),
        (Some(given), lease) => Err(TaskRefusal::StaleToken {
            task: task.id.clone(),
            given,
            current: task.token,
            holder: lease.as_ref().map(|lease| lease.session.clone()),
        }),
        (None, Some(lease)) => Err(TaskRefusal::TokenRequired {
            task: task.id.clone(),
            holder: lease.session.clone(),
        }),
        (None, None) => Ok(()),
    }
}

fn illegal(task: &Task, to: TaskStatus) -> TaskRefusal {
    let legal = legal_moves(task.status).to_vec();
    TaskRefusal::IllegalMove {
        task: task.id.clone(),
        from: task.status,
        to,
        legal,
    }
}

fn check_move(task: &Task, to: TaskStatus) -> Result<(), TaskRefusal> {
    match legal_moves(task.status).contains(&to) {
        true => Ok(()),
        false => Err(illegal(task, to)),
    }
}

/// Moves the status; nobody holds a task that is not in progress.
fn move_to(task: &mut Task, to: TaskStatus, now: Timestamp) -> Result<(), TaskRefusal> {
    check_move(task, to)?;
    task.status = to;
    task.closed_at = to.is_closed().then_some(now);
    (task.lease, task.parked) = (None, None);
    Ok(())
}

fn apply_edit(task: &mut Task, edit: TaskEdit) -> Result<EventKind, TaskRefusal> {
    if let Some(subject) = edit.subject {
        check_subject(&subject)?;
        task.subject = subject;
    }
    for label in edit.add_labels {
        check_label(&label)?;
        if !task.labels.contains(&label) {
            task.labels.push(label);
        }
    }
    task.labels
        .retain(|label| !edit.remove_labels.contains(label));
    if let Some(plan) = edit.plan {
        task.plan = Some(plan).filter(|plan| !plan.is_empty());
    }
    if let Some(branch) = edit.base_branch {
        task.set_base_branch(branch);
    }
    match edit.needs_plan {
        Some(true) => task.plan_approval = task.plan_approval.or(Some(PlanApproval::Required)),
        Some(false) => task.plan_approval = None,
        None => {}
    }
    task.description = edit
        .description
        .unwrap_or(std::mem::take(&mut task.description));
    task.acceptance = edit
        .acceptance
        .unwrap_or(std::mem::take(&mut task.acceptance));
    task.priority = edit.priority.unwrap_or(task.priority);
    task.report = edit.report.or(task.report.take());
    task.blocked_by = edit
        .blocked_by
        .unwrap_or(std::mem::take(&mut task.blocked_by));
    Ok(EventKind::TASK_EDITED)
}

fn check_subject(subject: &str) -> Result<(), TaskRefusal> {
    let length = subject.chars().count();
    match length <= MAX_SUBJECT && !subject.trim().is_empty() && !subject.chars().any(is_odd) {
        true => Ok(()),
        false => Err(TaskRefusal::BadSubject),
    }
}

fn is_odd(c: char) -> bool {
    c.is_control() || misleads(c)
}

fn check_label(label: &str) -> Result<(), TaskRefusal> {
    match !label.is_empty() && label.chars().count() <= 100 && !label.chars().any(is_odd) {
        true => Ok(()),
        false => Err(TaskRefusal::BadLabel),
    }
}
