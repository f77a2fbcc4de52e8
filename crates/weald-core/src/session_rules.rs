//! What may happen to a session's record: it registers, moves, goes silent, ends.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::event::{Change, EventKind};
use crate::id::TaskId;
use crate::name::{SessionName, TreeName};
use crate::session::{Liveness, Note, ProcessIdentity, Session, SessionTaken};

/// Registers a session, or registers it again: its note and its place stay.
pub fn register(
    before: Option<(&Session, Liveness)>,
    name: SessionName,
    process: Option<ProcessIdentity>,
    now: Timestamp,
) -> Result<(Session, Change), SessionTaken> {
    let mut session = Session {
        name,
        process,
        task: None,
        tree: None,
        back: None,
        note: None,
        started_at: now,
        last_seen: now,
        silent_at: None,
        ended_at: None,
    };
    if let Some((old, life)) = before {
        let other =
            (old.process.as_ref()).filter(|theirs| Some(*theirs) != session.process.as_ref());
        if let (Some(process), Liveness::Alive) = (other, life) {
            return Err(SessionTaken {
                name: session.name,
                pid: process.pid,
            });
        }
        session.note = old.note.clone();
        if old.ended_at.is_none() {
            session.task = old.task.clone();
            session.tree = old.tree.clone();
            session.back = old.back.clone();
        }
    }
    Ok(changed(EventKind::SESSION_STARTED, session))
}

/// A heartbeat that says something new about where the session works.
pub fn moved(
    session: &Session,
    task: Option<TaskId>,
    tree: Option<TreeName>,
    now: Timestamp,
) -> Option<(Session, Change)> {
    let task = task.or_else(|| session.task.clone());
    let tree = tree.or_else(|| session.tree.clone());
    led(session, task, tree, now)
}

/// Where a claim, or its end, leads the session: into the task's tree, or back to the main checkout.
pub fn led(
    session: &Session,
    task: Option<TaskId>,
    tree: Option<TreeName>,
    now: Timestamp,
) -> Option<(Session, Change)> {
    let next = Session {
        back: session.back.clone().filter(|_| tree == session.tree),
        task,
        tree,
        last_seen: now,
        ..session.clone()
    };
    let is_new = (&next.task, &next.tree) != (&session.task, &session.tree);
    is_new.then(|| changed(EventKind::SESSION_MOVED, next))
}

fn changed(kind: EventKind, next: Session) -> (Session, Change) {
    (next.clone(), Change::session(kind, next))
}

/// Goes into a tree, or leaves it: `place` is the tree and the way back.
pub fn entered(
    session: &Session,
    place: Option<(TreeName, PathBuf)>,
    now: Timestamp,
) -> Option<(Session, Change)> {
    let (tree, back) = place.unzip();
    if (&tree, &back) == (&session.tree, &session.back) {
        return None;
    }
    let next = Session {
        tree,
        back,
        last_seen: now,
        ..session.clone()
    };
    Some(changed(EventKind::SESSION_MOVED, next))
}

/// Saves a note with the session.
pub fn noted(session: &Session, text: String, now: Timestamp) -> (Session, Change) {
    let next = Session {
        note: Some(Note { text, at: now }),
        last_seen: now,
        ..session.clone()
    };
    changed(EventKind::SESSION_NOTED, next)
}

/// Says that nobody has heard of a session, once a silence.
pub fn silent(session: &Session, now: Timestamp) -> Option<(Session, Change)> {
    let is_known = session.silent_at.is_some_and(|at| at > session.last_seen);
    if is_known || session.ended_at.is_some() {
        return None;
    }
    let next = Session {
        silent_at: Some(now),
        ..session.clone()
    };
    Some(changed(EventKind::SESSION_STALE, next))
}

/// Says goodbye. Its leases are given back by the caller, in the same transaction.
pub fn ended(session: &Session, now: Timestamp) -> (Session, Change) {
    let next = Session {
        ended_at: Some(now),
        process: None,
        ..session.clone()
    };
    changed(EventKind::SESSION_ENDED, next)
}
