//! The log.

use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::cloud_event::{CloudEvent, TYPE_PREFIX};
use weald_core::id::{Seq, TaskId};
use weald_core::meant::Word;
use weald_core::name::TreeName;
use weald_core::store::EventFilter;

use super::{Broker, Inside, Operation, asked};
use crate::{Ask, Call, Failure, JOURNAL_FILE, JournalLine, read_journal_end};

entries!(ListEvents);

/// Reads the log, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListEvents {
    /// Only those after this place; the newest unless given.
    #[serde(default)]
    pub since: Option<Seq>,
    /// Only what is about this task.
    #[serde(default)]
    pub task: Option<Word>,
    /// Only what is about this worktree.
    #[serde(default)]
    pub tree: Option<Word>,
    /// At most so many, and never more than [`ListEvents::MOST`].
    pub limit: u64,
}

impl ListEvents {
    /// How many are read unless a number is given.
    pub const MOST: u64 = 200;

    /// As the store takes it.
    pub fn filter(&self, task: Option<TaskId>, tree: Option<TreeName>) -> EventFilter {
        EventFilter {
            since: self.since,
            task,
            tree,
            limit: Some(self.limit.clamp(1, Self::MOST)),
        }
    }

    /// Whether an event is among those that are asked for, by the names that stand in it.
    pub fn matches(&self, event: &CloudEvent) -> bool {
        let data = &event.data;
        let is_of = |tree: &Word| {
            let name = data.tree.as_ref();
            name.is_some_and(|name| name.as_str() == tree.bare())
        };
        self.since.is_none_or(|since| event.sequence > since)
            && self
                .task
                .as_ref()
                .is_none_or(|task| data.task == task.task_id())
            && self.tree.as_ref().is_none_or(is_of)
    }
}

/// Lines of the log.
#[derive(Debug, Serialize, Deserialize)]
pub struct Events {
    /// The newest is last.
    pub events: Vec<Line>,
}

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// As others read it from the journal, too.
    Event(Box<CloudEvent>),
    /// Half of one, at the end of the journal.
    Torn(Torn),
}

/// A line of the journal that is no event, in the envelope of one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Torn {
    specversion: String,
    id: String,
    source: String,
    #[serde(rename = "type")]
    kind: String,
    /// What is there instead of an event.
    pub data: TornData,
}

/// A line that is no event.
#[derive(Debug, Serialize, Deserialize)]
pub struct TornData {
    schema_version: u32,
    parse_error: bool,
    /// Where the line begins.
    pub offset: u64,
    /// The line itself.
    pub text: String,
}

impl Line {
    /// Its place in the log.
    pub fn sequence(&self) -> Option<Seq> {
        match self {
            Self::Event(event) => Some(event.sequence),
            Self::Torn(_) => None,
        }
    }

    /// A line of the journal of the repository `source`.
    pub fn of(line: JournalLine, source: &str) -> Self {
        match line {
            JournalLine::Event(event) => Self::Event(event),
            JournalLine::Torn { offset, text } => Self::Torn(Torn {
                specversion: "1.0".to_owned(),
                id: format!("byte-{offset}"),
                source: source.to_owned(),
                kind: format!("{TYPE_PREFIX}parse_error"),
                data: TornData {
                    schema_version: 1,
                    parse_error: true,
                    offset,
                    text,
                },
            }),
        }
    }
}

impl Operation for ListEvents {
    const NAME: &'static str = "events";
    const READS: bool = true;
    type Output = Events;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Events, Failure> {
        let ground = call.ground()?;
        let place = &ground.place;
        let source = place.source();
        let task = self.task.as_ref();
        let task = task
            .map(|word| ground.task_to_come(call, word))
            .transpose()?;
        let tree = self.tree.as_ref();
        let tree = tree
            .map(|word| ground.tree_or_name(call, word))
            .transpose()?;
        let events = ground.engine.events(&self.filter(task, tree))?;
        let events = events.into_iter().map(|event| {
            let event = CloudEvent::wrap(event, &source);
            JournalLine::Event(Box::new(event))
        });
        let torn = match (self.since, self.task, self.tree) {
            (None, None, None) => torn_tail(&place.private().join(JOURNAL_FILE)),
            _ => Vec::new(),
        };
        let lines = events.chain(torn);
        Ok(Events {
            events: lines.map(|line| Line::of(line, &source)).collect(),
        })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Events> {
        let anywhere = |word: &Word| word.anywhere(call.directory());
        let list = Self {
            task: self.task.as_ref().map(anywhere),
            tree: self.tree.as_ref().map(anywhere),
            ..self.clone()
        };
        Some(asked(broker, call, Ask::Events(list)))
    }
}

/// Lines of the journal's end that are no events. Others tail that file, so its damage is worth showing.
fn torn_tail(journal: &Path) -> Vec<JournalLine> {
    let Ok(lines) = read_journal_end(journal) else {
        return Vec::new();
    };
    lines
        .filter_map(Result::ok)
        .filter(|line| matches!(line, JournalLine::Torn { .. }))
        .collect()
}
