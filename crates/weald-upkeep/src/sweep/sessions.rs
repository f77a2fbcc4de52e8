//! Sessions that are dead, or that nobody has heard of, and what the dead held.

use serde::{Deserialize, Serialize};
use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::session::{self, Liveness};
use weald_core::session_rules;
use weald_core::store::{Durability, Read, SessionSet, StoreError, TaskClass, TaskFilter, Write};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;

use super::{SweepError, SweepLease, Sweeper, require_lease};
use weald_control::tasks::move_in;

/// What became of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweptSession {
    pub session: SessionName,
    pub became: Became,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// It is proven dead.
    Ended,
    /// Nobody has heard of it, and it may live.
    Stale,
}

/// What became of sessions and of what they held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSweep {
    /// Tasks that were given back.
    pub leases: Vec<TaskId>,
    pub sessions: Vec<SweptSession>,
}

/// What a cycle finds, before it changes anything: a lease that ran out is a part of the proof of death.
struct Found {
    abandoned: Vec<Task>,
    dead: Vec<SessionName>,
    silent: Vec<SessionName>,
}

impl Sweeper<'_> {
    /// Gives back what dead sessions held beyond its time, and ends them; without a lease it only says so.
    pub fn sweep_sessions(&self, lease: Option<&SweepLease>) -> Result<SessionSweep, SweepError> {
        let found = match lease {
            None => self.0.look(|tx| self.find_dead(tx))?,
            Some(_) => self.0.change(None, Durability::Process, |tx| {
                require_lease(tx, lease)?;
                let found = self.find_dead(tx)?;
                end_all(tx, &found)?;
                Ok::<_, SweepError>(found)
            })?,
        };
        let became = |became| move |session: SessionName| SweptSession { session, became };
        let ended = found.dead.into_iter().map(became(Became::Ended));
        let silent = found.silent.into_iter().map(became(Became::Stale));
        Ok(SessionSweep {
            leases: found.abandoned.into_iter().map(|task| task.id).collect(),
            sessions: ended.chain(silent).collect(),
        })
    }

    fn find_dead(&self, tx: &(impl Read + ?Sized)) -> Result<Found, SweepError> {
        let (mut dead, mut silent) = (Vec::new(), Vec::new());
        for session in tx.sessions(SessionSet::Open)? {
            let stale = session::is_stale(&session, self.0.settings.stale_after, tx.now());
            match self.0.liveness_of(tx, &session.name)? {
                Liveness::Dead => dead.push(session.name),
                Liveness::Unknown
                    if stale && session_rules::silent(&session, tx.now()).is_some() =>
                {
                    silent.push(session.name);
                }
                _ => {}
            }
        }
        let mut abandoned = Vec::new();
        let filter = TaskFilter {
            classes: vec![TaskClass::Status(TaskStatus::InProgress)],
            ..TaskFilter::default()
        };
        for task in tx.tasks(&filter)? {
            if task.is_abandoned(tx.now()) && self.is_left(tx, &task, &dead)? {
                abandoned.push(task);
            }
        }
        // One that holds something that runs on is not ended under it.
        dead.retain(|name| !self.holds_on(tx, name, &abandoned).unwrap_or(true));
        Ok(Found {
            abandoned,
            dead,
            silent,
        })
    }

    /// Whether nobody is at work on a task whose lease ran out: its holder is dead, no agent has it, nothing runs in its
    /// tree. Who never registered is known by the lease alone.
    fn is_left(
        &self,
        tx: &(impl Read + ?Sized),
        task: &Task,
        dead: &[SessionName],
    ) -> Result<bool, StoreError> {
        let Some(lease) = &task.lease else {
            return Ok(false);
        };
        let is_dead = dead.contains(&lease.session)
            || tx
                .session(&lease.session)?
                .is_none_or(|one| one.ended_at.is_some());
        Ok(is_dead && !self.0.is_worked_on(tx, task)?)
    }

    /// Whether a session has tasks besides those that are given back now.
    fn holds_on(
        &self,
        tx: &(impl Read + ?Sized),
        name: &SessionName,
        abandoned: &[Task],
    ) -> Result<bool, StoreError> {
        let filter = TaskFilter {
            classes: vec![TaskClass::Status(TaskStatus::InProgress)],
            owner: Some(name.clone()),
            ..TaskFilter::default()
        };
        let given = |task: &Task| abandoned.iter().any(|one| one.id == task.id);
        let held = tx.tasks(&filter)?;
        Ok(held.iter().any(|task| task.lease.is_some() && !given(task)))
    }
}

fn end_all(tx: &mut dyn Write, found: &Found) -> Result<(), SweepError> {
    for task in &found.abandoned {
        let token = task.lease.as_ref().map(|lease| lease.token);
        move_in(tx, None, task, TaskInput::Release { token })?;
    }
    for name in &found.dead {
        if let Some(session) = tx.session(name)? {
            let (_, change) = session_rules::ended(&session, tx.now());
            tx.record(None, change)?;
        }
    }
    for name in &found.silent {
        let told = tx.session(name)?;
        let told = told.and_then(|session| session_rules::silent(&session, tx.now()));
        if let Some((_, change)) = told {
            tx.record(None, change)?;
        }
    }
    Ok(())
}
