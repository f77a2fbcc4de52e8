//! What to do about a task whose status does not allow what was asked.

use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::task::TaskStatus;
use weald_core::task_rules::TaskRefusal;

use crate::{Failure, TaskError, exit};

/// The command that goes on from there.
pub fn hint(task: &TaskId, from: TaskStatus, to: TaskStatus) -> String {
    use TaskStatus::*;
    match (from, to) {
        (Completed, Completed) => format!("weald task reopen {task}"),
        (from, to) if from == to => format!("weald task show {task}"),
        (Completed | Cancelled, _) => format!("weald task reopen {task}"),
        (Failed | Blocked, InProgress) => {
            format!(
                "to continue in its worktree: weald resume {task}; to start over: weald task reopen {task}"
            )
        }
        (Failed | Blocked, _) => format!("weald task reopen {task}, then weald task start {task}"),
        (Pending, Completed | Failed | NeedsMerge) => {
            format!("weald task start {task}, then run this again")
        }
        (InProgress, Pending) => format!("weald task release {task} --token N"),
        (NeedsMerge, _) => {
            format!("weald resume {task}, or merge it by hand and: weald task done {task}")
        }
        _ => format!("weald task show {task}"),
    }
}

/// What to do about a task that somebody else holds.
pub fn held(task: &TaskId, holder: &SessionName) -> String {
    format!(
        "weald task ready; or ask {holder}: weald msg send {holder} \"please release task {task}\""
    )
}

impl Failure {
    /// Nobody is left who would read what is to be changed.
    pub fn completed_before(task: &TaskId) -> Self {
        let message = format!("task {task} is completed; the feedback was not sent");
        Self::new("task_completed", exit::REFUSED, message)
            .hint(format!("weald task reopen {task}"))
    }

    /// Words that say nothing.
    pub fn no_feedback() -> Self {
        Self::new("usage", exit::USAGE, "the feedback is empty")
            .hint("say what to change, or leave --feedback out")
    }

    /// The same where the holder is the caller.
    pub fn held_already(error: TaskError, caller: &SessionName) -> Self {
        let own = match &error {
            TaskError::Refused(TaskRefusal::Held { task, holder, .. }) if holder == caller => {
                Some(task.clone())
            }
            _ => None,
        };
        let failure = Self::from(error);
        match own {
            Some(task) => Self {
                message: format!("you already hold task {task}"),
                ..failure
            }
            .hint(format!("weald task done {task}")),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use weald_core::task_rules::legal_moves;

    use super::*;

    #[test]
    fn os28_only_a_move_that_changes_nothing_has_a_general_hint() {
        let task = TaskId::Number(1);
        for from in TaskStatus::ALL {
            for to in TaskStatus::ALL {
                let is_legal = legal_moves(from).contains(&to);
                let hint = hint(&task, from, to);
                if from != to && !is_legal {
                    assert_ne!(hint, "weald task show 1", "{from} to {to}");
                }
            }
        }
        let again = hint(&task, TaskStatus::Completed, TaskStatus::Completed);
        assert_eq!(again, "weald task reopen 1");
    }

    #[test]
    fn a3_a_task_that_the_caller_holds_already_is_said_to_be_theirs() {
        let name = |name: &str| name.parse::<SessionName>().unwrap();
        let failure = |caller: &str| {
            let refusal = TaskRefusal::Held {
                task: TaskId::Number(1),
                holder: name("rita"),
                until: weald_core::Timestamp::UNIX_EPOCH,
            };
            Failure::held_already(TaskError::Refused(refusal), &name(caller))
        };
        let (own, other) = (failure("rita"), failure("bob"));
        assert_eq!(own.message, "you already hold task 1");
        assert_eq!(own.hint.as_deref(), Some("weald task done 1"));
        assert_eq!((&own.code, own.exit), (&other.code, other.exit));
        assert!(other.message.starts_with("task 1 is held by rita until"));
    }
}
