//! What needs a person: tasks, agents and questions that nobody goes on with by themselves, each with the command for it.

use serde::{Deserialize, Serialize};

use crate::agent_view::{Alert, AlertKind};
use crate::error_code::ErrorCode;
use crate::id::{LandingId, TaskId};
use crate::kept_change::KeptChange;
use crate::landing::{Landing, LandingStatus};
use crate::message::Message;
use crate::signature::Signature;
use crate::task::{Task, TaskStatus};
use crate::tree::Tree;

/// One thing that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// `question`, `approval`, `needs_merge`, `parked`, `failed`, `blocked`, `stalled`, `paused`, `waiting`, `unknown`,
    /// `kept_changes`, `unlanded`, `unsigned`, `refused`.
    pub kind: String,
    /// About what: a task, an agent, a message.
    pub about: String,
    /// In words, on one line.
    pub what: String,
    pub command: String,
}

/// A task that nobody works on, with the newest landing of its tree.
pub struct Stuck<'a> {
    pub task: &'a Task,
    /// The newest landing from its tree.
    pub landing: Option<&'a Landing>,
}

/// Everything that needs a person, the most pressing first; nothing is listed twice.
pub fn needs(questions: &[Message], alerts: &[Alert], stuck: &[Stuck<'_>]) -> Vec<Need> {
    let of_questions = questions.iter().map(|question| Need {
        kind: "question".to_owned(),
        about: format!("message {}", question.id),
        what: format!("{} asks: {}", question.from, first_line(&question.text)),
        command: format!("weald msg reply {} \"…\"", question.id),
    });
    let of_tasks = stuck.iter().filter_map(of_task);
    let is_new = |alert: &&Alert| {
        let is_asked = questions
            .iter()
            .any(|question| alert.command.contains(&format!("reply {} ", question.id)));
        let is_stuck = alert.kind == AlertKind::Failed
            && stuck.iter().any(|stuck| stuck.task.id == alert.task);
        !is_asked && !is_stuck
    };
    let of_agents = alerts.iter().filter(is_new).map(|alert| Need {
        kind: alert.kind.as_str().to_owned(),
        about: alert.agent.to_string(),
        what: alert.text.clone(),
        command: alert.command.clone(),
    });
    of_questions.chain(of_tasks).chain(of_agents).collect()
}

/// A completed task whose work is in its tree and not on the target.
pub fn of_unlanded(task: &TaskId, tree: &Tree) -> Need {
    let (name, target) = (&tree.name, &tree.target);
    Need {
        kind: "unlanded".to_owned(),
        about: format!("task {task}"),
        what: format!("is completed, but {target} does not have the commits in {name}"),
        command: format!("weald land {name}"),
    }
}

/// What a task waits for whose work is done after a landing of it failed: only another landing brings it to the target.
pub fn to_land_again(target: &str) -> String {
    format!("its last landing failed, and {target} does not have its work yet")
}

/// What a task waits for whose interactive agent has ended: whether that work lands, a person decides.
pub const TO_DECIDE: &str = "the interactive session ended; review the work, then land it";

/// The same where that agent changed nothing.
pub const NOTHING_YET: &str = "its interactive agent ended and changed nothing";

/// A task that depends on one that does not exist, so that nothing ever starts it.
pub fn of_missing(task: &TaskId, missing: &TaskId) -> Need {
    Need {
        kind: "waiting".to_owned(),
        about: format!("task {task}"),
        what: format!("depends on task {missing}, which does not exist"),
        command: format!("weald task dep {task} --remove {missing}"),
    }
}

/// What landed last is not signed, though the user's configuration asks for that. `newest` are landings, newest first.
pub fn of_unsigned(newest: &[Landing]) -> Option<Need> {
    let mut landed = newest
        .iter()
        .filter(|one| one.status == LandingStatus::Landed);
    let last = landed.next()?;
    let Some(Signature::Unsigned { why }) = &last.signature else {
        return None;
    };
    let before = landed
        .take_while(|one| matches!(one.signature, Some(Signature::Unsigned { .. })))
        .count();
    let others = match before {
        0 => String::new(),
        count => format!(", like {count} before it"),
    };
    Some(Need {
        kind: "unsigned".to_owned(),
        about: format!("landing {}", last.id),
        what: format!("is on {} without your signature{others}: {why}", last.target),
        command: "weald config set landing.sign never (if that is fine; with require, nothing lands unsigned)".to_owned(),
    })
}

/// A change of the user's that a landing did not put back.
pub fn of_kept_change(landing: LandingId, kept: &KeptChange) -> Need {
    Need {
        kind: "kept_changes".to_owned(),
        about: format!("landing {landing}"),
        what: kept.text(),
        command: kept.command.clone(),
    }
}

fn of_task(stuck: &Stuck<'_>) -> Option<Need> {
    let Stuck { task, landing } = stuck;
    let tree = task.worktree.as_ref();
    let reason = landing.and_then(|landing| landing.reason.as_ref());
    let report = first_line(task.report.as_deref().unwrap_or_default());
    let resume = format!("weald resume {}", task.id);
    let (kind, what, command) = match (task.status, tree) {
        (TaskStatus::NeedsMerge, Some(tree)) => {
            let conflict = landing.filter(|landing| landing.status == LandingStatus::Conflict);
            let paths = conflict.map(|landing| landing.conflicts.join(", "));
            let what = match paths.filter(|paths| !paths.is_empty()) {
                Some(paths) => format!("conflicts in {paths}"),
                None => "does not merge".to_owned(),
            };
            ("needs_merge", what, format!("weald sync {tree}"))
        }
        (TaskStatus::NeedsMerge, None) => ("needs_merge", "does not merge".to_owned(), resume),
        (TaskStatus::InProgress, Some(tree))
            if task.parked.is_some()
                && reason.is_some_and(|reason| reason.code == ErrorCode::NeedsApproval) =>
        {
            let what = "waits for your approval".to_owned();
            ("approval", what, format!("weald approve {tree}"))
        }
        (TaskStatus::InProgress, _) => {
            let parked = task.parked.as_deref()?;
            let is_done = parked == TO_DECIDE
                || landing.is_some_and(|landing| parked == to_land_again(&landing.target));
            // A race is not resumed but picked from.
            match (
                parked.split_once("; see it and pick: "),
                tree.filter(|_| is_done),
            ) {
                (Some((what, command)), _) => {
                    ("parked", first_line(what).to_owned(), command.to_owned())
                }
                (None, Some(tree)) => (
                    "parked",
                    first_line(parked).to_owned(),
                    format!("weald land {tree}"),
                ),
                (None, None) => ("parked", first_line(parked).to_owned(), resume),
            }
        }
        (TaskStatus::Failed, _) => ("failed", format!("failed: {report}"), resume),
        (TaskStatus::Blocked, _) => ("blocked", format!("blocked: {report}"), resume),
        _ => return None,
    };
    Some(Need {
        kind: kind.to_owned(),
        about: format!("task {}", task.id),
        what,
        command,
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentId;
    use jiff::Timestamp;

    fn task(id: u64, status: TaskStatus) -> Task {
        Task {
            status,
            worktree: Some("fix".parse().unwrap()),
            report: Some("no luck\nat all".to_owned()),
            ..Task::new(TaskId::Number(id), "x", Timestamp::UNIX_EPOCH)
        }
    }

    #[test]
    fn p11_each_need_has_its_command_and_is_told_once() {
        let failed = task(1, TaskStatus::Failed);
        let merge = task(2, TaskStatus::NeedsMerge);
        let parked = Task {
            parked: Some("its tests failed".to_owned()),
            ..task(3, TaskStatus::InProgress)
        };
        let at_work = task(4, TaskStatus::InProgress);
        let undecided = Task {
            parked: Some(TO_DECIDE.to_owned()),
            ..task(5, TaskStatus::InProgress)
        };
        let all = [&failed, &merge, &parked, &at_work, &undecided];
        let stuck: Vec<_> = all
            .into_iter()
            .map(|task| Stuck {
                task,
                landing: None,
            })
            .collect();
        let alert = |id, task, kind| Alert {
            agent: AgentId(id),
            task: TaskId::Number(task),
            kind,
            text: "t".to_owned(),
            command: format!("weald agent pulse a{id}"),
        };
        let alerts = [
            alert(1, 1, AlertKind::Failed),
            alert(4, 4, AlertKind::Stalled),
        ];
        let told: Vec<_> = needs(&[], &alerts, &stuck)
            .into_iter()
            .map(|need| (need.kind, need.about, need.command))
            .collect();
        let expected = [
            ("failed", "task 1", "weald resume 1"),
            ("needs_merge", "task 2", "weald sync fix"),
            ("parked", "task 3", "weald resume 3"),
            ("parked", "task 5", "weald land fix"),
            ("stalled", "a4", "weald agent pulse a4"),
        ];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(kind, about, command)| (kind.to_owned(), about.to_owned(), command.to_owned()))
            .collect();
        assert_eq!(told, expected);
    }
}
