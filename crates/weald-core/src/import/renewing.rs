//! What a second import changes in a task that is here already.
//!
//! Words of a task that nobody began are brought up to date, dependencies and labels are added. Status, claims and
//! priority are ours: nothing is reset. What was closed there while nobody began it here is closed here, too.

use crate::source::{MARKDOWN, source_of};
use crate::task::Task;
use crate::task_rules::TaskEdit;

/// What a second import does.
#[derive(Debug, Clone, PartialEq)]
pub enum Renewal {
    Nothing,
    Edit(Box<TaskEdit>),
    /// It is closed, as it is there.
    Close,
}

/// Whether what came for a task is that task. An id of a tracker says so; a number is only weald's own count, and in another
/// repository it counts other tasks.
pub fn is_same(known: &Task, incoming: &Task) -> bool {
    match (source_of(known), source_of(incoming)) {
        (Some(before), Some(now)) => before == now,
        _ if known.id.counted().is_none() => true,
        (None, None) => {
            known.subject == incoming.subject || known.created_at == incoming.created_at
        }
        _ => false,
    }
}

/// Compares a task with what came for it.
pub fn renewal(known: &Task, incoming: &Task) -> Renewal {
    if !known.is_open() {
        return Renewal::Nothing;
    }
    if incoming.status.is_closed() {
        return Renewal::Close;
    }
    let changed = |new: &String, old: &String| (new != old && !new.is_empty()).then(|| new.clone());
    let mut blocked_by = known.blocked_by.clone();
    let is_new = |id: &&_| !known.blocked_by.contains(id);
    blocked_by.extend(incoming.blocked_by.iter().filter(is_new).cloned());
    let labels = incoming.labels.iter();
    let edit = TaskEdit {
        subject: changed(&incoming.subject, &known.subject),
        description: changed(&incoming.description, &known.description),
        acceptance: changed(&incoming.acceptance, &known.acceptance),
        add_labels: labels
            .filter(|label| !known.labels.contains(label))
            .cloned()
            .collect(),
        blocked_by: (blocked_by != known.blocked_by).then_some(blocked_by),
        ..TaskEdit::default()
    };
    let is_empty = edit.subject.is_none()
        && edit.description.is_none()
        && edit.acceptance.is_none()
        && edit.add_labels.is_empty()
        && edit.blocked_by.is_none();
    match is_empty {
        true => Renewal::Nothing,
        false => Renewal::Edit(Box::new(edit)),
    }
}

/// Whether what came is worth a task of its own: what a tracker closed is not, unless something waits for it.
pub fn is_history(incoming: &Task) -> bool {
    incoming.status.is_closed() && source_of(incoming).is_some_and(|source| source != MARKDOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::id::TaskId;
    use crate::task::{Priority, TaskStatus};

    #[test]
    fn p12_a_second_import_renews_words_and_resets_nothing() {
        let now = Timestamp::UNIX_EPOCH;
        let known = Task {
            description: "old".into(),
            blocked_by: vec![TaskId::Number(9)],
            ..Task::new(TaskId::Number(1), "A", now)
        };
        let came = Task {
            priority: Priority::P0,
            ..known.clone()
        };
        assert_eq!(renewal(&known, &came), Renewal::Nothing);
        let came = Task {
            subject: "B".into(),
            description: String::new(),
            labels: vec!["ui".into()],
            blocked_by: vec![TaskId::Number(7)],
            ..known.clone()
        };
        let Renewal::Edit(edit) = renewal(&known, &came) else {
            panic!("nothing was new");
        };
        assert_eq!(edit.subject.as_deref(), Some("B"));
        assert_eq!(edit.description, None, "an empty text takes nothing away");
        assert_eq!(edit.add_labels, ["ui"]);
        assert_eq!(
            edit.blocked_by,
            Some(vec![TaskId::Number(9), TaskId::Number(7)])
        );
        assert_eq!(edit.priority, None);
        let closed = Task {
            status: TaskStatus::Completed,
            ..came.clone()
        };
        assert_eq!(renewal(&known, &closed), Renewal::Close);
        for status in [
            TaskStatus::InProgress,
            TaskStatus::Completed,
            TaskStatus::Failed,
        ] {
            let begun = Task {
                status,
                ..known.clone()
            };
            assert_eq!(renewal(&begun, &came), Renewal::Nothing, "{status}");
            assert_eq!(renewal(&begun, &closed), Renewal::Nothing, "{status}");
        }
    }
}
