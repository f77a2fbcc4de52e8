//! What a role may change: a teammate works on what is its own, and leaves alone what somebody else holds.
//!
//! Reading is nobody's secret, so nothing here is asked for that. A role is no guard against a program that can say that it
//! has another one; the sandbox is.

use jiff::Timestamp;

use crate::name::{SessionName, TreeName};
use crate::task::{Task, TaskStatus};
use crate::task_rules::TaskRefusal;

/// Who somebody is to the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// A person, or an agent that hands out work: whatever the rules of a task or a tree allow.
    #[default]
    Lead,
    /// Works on tasks of its own.
    Teammate,
}

/// What makes a tree somebody's own.
#[derive(Debug, Clone, Copy)]
pub struct Ties<'a> {
    pub task: Option<&'a Task>,
    /// Whether it is where the caller works, or the caller made it.
    pub is_home: bool,
}

/// A tree is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("worktree {tree} is not yours{}", .holder.as_ref().map_or_else(String::new, |holder| format!(": {holder} is working in it")))]
pub struct NotYourTree {
    pub tree: TreeName,
    /// Who holds its task, if anybody does.
    pub holder: Option<SessionName>,
}

impl Role {
    /// Whether `session` may change a task or move it. No token counts here: what another one holds is not a teammate's.
    pub fn may_change(
        self,
        session: Option<&SessionName>,
        task: &Task,
        now: Timestamp,
    ) -> Result<(), TaskRefusal> {
        match holder(task, now) {
            Some(holder) if self == Self::Teammate && Some(holder) != session => {
                Err(TaskRefusal::NotYours {
                    task: task.id.clone(),
                    holder: holder.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether `session` may run something in a tree, land it, or decide what becomes of it.
    pub fn may_work_in(
        self,
        session: Option<&SessionName>,
        tree: &TreeName,
        ties: Ties<'_>,
        now: Timestamp,
    ) -> Result<(), NotYourTree> {
        let holder = ties.task.and_then(|task| holder(task, now));
        let last = ties.task.and_then(|task| task.owner.as_ref());
        let is_own = match holder {
            Some(holder) => Some(holder) == session,
            None => ties.is_home || (last.is_some() && last == session),
        };
        match is_own || self == Self::Lead {
            true => Ok(()),
            false => Err(NotYourTree {
                tree: tree.clone(),
                holder: holder.cloned(),
            }),
        }
    }
}

/// Who works on a task: by a claim that has not run out, or without one.
fn holder(task: &Task, now: Timestamp) -> Option<&SessionName> {
    match &task.lease {
        Some(lease) => Some(&lease.session).filter(|_| !lease.is_expired(now)),
        None => task
            .owner
            .as_ref()
            .filter(|_| task.status == TaskStatus::InProgress),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{TaskId, Token};
    use crate::task::Lease;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn name(text: &str) -> SessionName {
        text.parse().unwrap()
    }

    /// A task of alice's, held until second 10 if it is.
    fn task(status: TaskStatus, is_held: bool) -> Task {
        let lease = Lease {
            token: Token(1),
            session: name("alice"),
            acquired_at: at(0),
            expires_at: at(10),
        };
        Task {
            status,
            owner: Some(name("alice")),
            lease: is_held.then_some(lease),
            ..Task::new(TaskId::Number(1), "x".to_owned(), at(0))
        }
    }

    #[test]
    fn x12_a_teammate_changes_no_task_that_somebody_else_holds() {
        use TaskStatus::{Completed, InProgress, NeedsMerge};
        for (status, is_held, now, expected) in [
            (InProgress, true, 5, false),
            (InProgress, true, 11, true),
            // Started without a claim, or parked.
            (InProgress, false, 5, false),
            (NeedsMerge, false, 5, true),
            (Completed, false, 5, true),
        ] {
            let task = task(status, is_held);
            let may = |role: Role, who: Option<&str>| {
                let who = who.map(name);
                role.may_change(who.as_ref(), &task, at(now)).is_ok()
            };
            assert_eq!(may(Role::Teammate, Some("bob")), expected, "{status}");
            assert_eq!(may(Role::Teammate, None), expected, "{status}");
            assert!(may(Role::Teammate, Some("alice")), "{status}");
            assert!(may(Role::Lead, Some("bob")), "{status}");
        }
    }

    #[test]
    fn x12_a_teammate_works_in_trees_of_its_own() {
        use TaskStatus::{Completed, InProgress};
        let (held, done) = (task(InProgress, true), task(Completed, false));
        for (who, task, is_home, now, expected) in [
            ("alice", Some(&held), false, 5, true),
            ("bob", Some(&held), false, 5, false),
            // Not even where it is at home: the claim is somebody else's.
            ("bob", Some(&held), true, 5, false),
            // The claim ran out, and bob was led here.
            ("bob", Some(&held), true, 11, true),
            ("bob", Some(&held), false, 11, false),
            // What it did itself, it may land after its report.
            ("alice", Some(&done), false, 5, true),
            ("bob", Some(&done), false, 5, false),
            ("bob", None, true, 5, true),
            ("bob", None, false, 5, false),
        ] {
            let ties = Ties { task, is_home };
            let may = |role: Role| {
                let tree = "fix".parse().unwrap();
                role.may_work_in(Some(&name(who)), &tree, ties, at(now))
            };
            assert_eq!(may(Role::Teammate).is_ok(), expected, "{who} {ties:?}");
            assert_eq!(may(Role::Lead), Ok(()));
        }
    }
}
