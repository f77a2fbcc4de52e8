//! What to do about a task whose status does not allow what was asked.

use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::task::TaskStatus;

/// The command that goes on from there.
pub fn hint(task: &TaskId, from: TaskStatus, to: TaskStatus) -> String {
    use TaskStatus::*;
    match (from, to) {
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
    }
}
