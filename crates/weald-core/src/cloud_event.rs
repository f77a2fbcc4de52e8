//! Events as others read them: CloudEvents 1.0, one JSON object a line.
//!
//! The envelope is the standard's; what is ours stands under `data`. `sequence` is the place in the log, to resume from.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::event::{After, Event, EventKind};
use crate::id::{Seq, TaskId, Token};
use crate::name::{SessionName, TreeName};

/// What every type begins with.
pub const TYPE_PREFIX: &str = "dev.weald.";

/// One event in its envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CloudEvent {
    pub specversion: String,
    /// The place in the log; with `source` it names the event.
    pub id: String,
    pub source: String,
    /// `dev.weald.` and the kind.
    #[serde(rename = "type")]
    pub kind: String,
    pub time: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub datacontenttype: String,
    /// The place in the log.
    pub sequence: Seq,
    pub data: Data,
}

/// The part of an event that the envelope has no name for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// The version of this shape.
    pub schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<SessionName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeName>,
    #[serde(default)]
    pub after: After,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else a reader should know: paths, where no record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The event that began the operation of which this is a part, or which this takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Seq>,
}

impl CloudEvent {
    /// Puts an event into its envelope.
    pub fn wrap(event: Event, source: &str) -> Self {
        let subject = match (&event.task, &event.tree) {
            (Some(task), _) => Some(format!("task/{task}")),
            (None, Some(tree)) => Some(format!("tree/{tree}")),
            (None, None) => None,
        };
        Self {
            specversion: "1.0".to_owned(),
            id: event.seq.to_string(),
            source: source.to_owned(),
            kind: format!("{TYPE_PREFIX}{}", event.kind),
            time: event.time,
            subject,
            datacontenttype: "application/json".to_owned(),
            sequence: event.seq,
            data: Data {
                schema_version: 1,
                actor: event.actor,
                token: event.token,
                task: event.task,
                tree: event.tree,
                after: event.after,
                error: event.error,
                note: event.note,
                operation: event.operation,
            },
        }
    }

    /// Takes the event out again; `None` if it is not one of weald's.
    pub fn unwrap(self) -> Option<Event> {
        let kind = self.kind.strip_prefix(TYPE_PREFIX)?;
        Some(Event {
            seq: self.sequence,
            time: self.time,
            actor: self.data.actor,
            kind: EventKind::from(kind.to_owned()),
            token: self.data.token,
            task: self.data.task,
            tree: self.data.tree,
            after: self.data.after,
            error: self.data.error,
            note: self.data.note,
            operation: self.data.operation,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Change;
    use crate::task::Task;

    #[test]
    fn the_envelope_loses_nothing() {
        let task = Task::new(TaskId::Number(3), "a", Timestamp::UNIX_EPOCH);
        let change = Change::task(EventKind::TASK_CREATED, task).part_of(Some(Seq(5)));
        let event = Event::stamp(change, Seq(7), Timestamp::UNIX_EPOCH, None);
        let line =
            serde_json::to_string(&CloudEvent::wrap(event.clone(), "file:///x/.git")).unwrap();
        let names: Vec<_> = serde_json::from_str::<serde_json::Map<_, _>>(&line)
            .unwrap()
            .into_iter()
            .map(|(k, _)| k)
            .collect();
        assert!(
            names
                .iter()
                .all(|name| name.bytes().all(|b| b.is_ascii_lowercase())),
            "attribute names: {names:?}"
        );
        let back: CloudEvent = serde_json::from_str(&line).unwrap();
        assert_eq!(back.kind, "dev.weald.task.created");
        assert_eq!(back.unwrap(), Some(event));
    }
}
