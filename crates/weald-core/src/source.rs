//! The tracker that tasks come from: what is asked of it, and what is reported to it.
//!
//! Pure: which commands there are, and which follow from the log. What is reported holds ids and words of weald's alone,
//! never what an agent wrote: a tracker may be public.

use std::collections::BTreeMap;

use crate::choice::{choice, words};
use crate::event::{Event, EventKind};
use crate::id::{Seq, TaskId};
use crate::landing::LandingStatus;
use crate::task::Task;

/// The field of a task that says where it came from.
pub const SOURCE: &str = "source";

/// What it says of an item of a Markdown list.
pub const MARKDOWN: &str = "markdown";

choice! {
    /// Where tasks come from.
    pub enum Tracker {
        Beads = "beads",
        Gh = "gh",
        /// Any other, by configured commands.
        Command = "command",
    }
}

words! {
    /// What is asked of a tracker, or reported to it.
    pub enum Order {
        Fetch = "fetch",
        /// Somebody works on it.
        Claim = "claim",
        /// Nobody does any more.
        Release = "release",
        Fail = "fail",
        Close = "close",
        /// It is open again.
        Reopen = "reopen",
    }
}

impl Order {
    /// The key that holds its command.
    pub fn key(self) -> String {
        format!("source.{}", self.as_str())
    }

    /// What a change of a task has to be reported as. A cancelled task is given back: somebody else may do it.
    fn of(kind: &EventKind) -> Option<Self> {
        [
            (EventKind::TASK_CLAIMED, Self::Claim),
            (EventKind::TASK_TAKEN_OVER, Self::Claim),
            (EventKind::TASK_STARTED, Self::Claim),
            (EventKind::TASK_RELEASED, Self::Release),
            (EventKind::TASK_CANCELLED, Self::Release),
            (EventKind::TASK_FAILED, Self::Fail),
            (EventKind::TASK_BLOCKED, Self::Fail),
            (EventKind::TASK_COMPLETED, Self::Close),
            (EventKind::TASK_REOPENED, Self::Reopen),
        ]
        .into_iter()
        .find_map(|(known, order)| (known == *kind).then_some(order))
    }
}

impl Tracker {
    /// Its own command for an order; empty where it has none. GitHub knows no work in progress, and an assignee is a
    /// person's business.
    pub fn command_line(self, order: Order) -> &'static str {
        match (self, order) {
            (Self::Beads, Order::Fetch) => "bd show {id} --json",
            (Self::Beads, Order::Claim) => "bd update {id} --claim",
            (Self::Beads, Order::Release) => "bd update {id} --status open",
            (Self::Beads, Order::Fail) => "bd update {id} --status open --append-notes {message}",
            (Self::Beads, Order::Close) => "bd close {id} --reason {message}",
            (Self::Beads, Order::Reopen) => "bd reopen {id}",
            (Self::Gh, Order::Fetch) => {
                "gh issue view {task} --json number,title,body,labels,assignees,state,url"
            }
            (Self::Gh, Order::Fail) => "gh issue comment {task} --body {message}",
            (Self::Gh, Order::Close) => "gh issue close {task} --comment {message}",
            (Self::Gh, Order::Reopen) => "gh issue reopen {task}",
            (Self::Gh, Order::Claim | Order::Release) | (Self::Command, _) => "",
        }
    }

    /// The command that prints all issues; none for one that is only known by configured commands.
    pub fn list_line(self) -> Option<&'static str> {
        match self {
            Self::Beads => Some("bd export"),
            Self::Gh => Some("gh issue list --json number,title,body,labels,assignees,state,url"),
            Self::Command => None,
        }
    }

    /// The task that an issue of this number is; GitHub's have no name of their own.
    pub fn task_of(self, id: &TaskId) -> TaskId {
        match (self, id) {
            (Self::Gh, TaskId::Number(number)) => TaskId::External(format!("gh-{number}")),
            _ => id.clone(),
        }
    }
}

/// Where a task came from.
pub fn source_of(task: &Task) -> Option<&str> {
    task.extra.get(SOURCE)?.as_str()
}

/// A word of a command line with what its placeholders stand for; that is not looked into again.
pub fn expanded(word: &str, id: &TaskId, message: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let known = [
            ("{id}", id.to_string()),
            ("{task}", id.bare()),
            ("{message}", message.to_owned()),
        ];
        let found = known
            .iter()
            .find_map(|(name, value)| Some((from.strip_prefix(name)?, value)));
        match found {
            Some((after, value)) => {
                out.push_str(value);
                rest = after;
            }
            None => {
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out + rest
}

/// Something that has to be reported to a tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerUpdate {
    pub task: TaskId,
    pub order: Order,
    pub message: String,
    /// The event it follows from.
    pub seq: Seq,
}

/// What follows from the log: of each task of the tracker the last that happened to it.
#[derive(Debug, Default)]
pub struct TrackerUpdates {
    last: BTreeMap<TaskId, (Order, Seq)>,
    landed: BTreeMap<TaskId, String>,
    /// Tasks whose work landed, or whose tree is gone: nothing of theirs is missing on the target any more.
    settled: BTreeMap<TaskId, Seq>,
}

impl TrackerUpdates {
    /// Takes the next event.
    pub fn take(&mut self, event: &Event, tracker: Tracker) {
        if event.kind == EventKind::LANDING_LANDED
            && let Some(landing) = &event.after.landing
            && let (Some(task), Some(commit)) = (&landing.task, &landing.new_tip)
        {
            let commit: String = commit.chars().take(10).collect();
            let text = format!("landed on {} as {commit}", landing.target);
            self.landed.insert(task.clone(), text);
        }
        if let Some(task) = settles(event) {
            self.settled.insert(task.clone(), event.seq);
        }
        if let Some(task) = &event.after.task
            && source_of(task) == Some(tracker.as_str())
            && let Some(order) = Order::of(&event.kind)
        {
            // A claim of what was closed opens it first, and not every tracker knows claims.
            let before = self.last.get(&task.id).map(|(order, _)| *order);
            let order = match (before, order) {
                (Some(Order::Reopen), Order::Claim) => Order::Reopen,
                (_, order) => order,
            };
            self.last.insert(task.id.clone(), (order, event.seq));
            // Whatever is done after this is other work than what landed before.
            if order != Order::Close {
                self.landed.remove(&task.id);
            }
        }
    }

    /// Tasks that are done though no event that was taken says that they landed; an earlier one may.
    pub fn unexplained(&self) -> Vec<TaskId> {
        let closed = self.last.iter();
        let closed = closed
            .filter(|(id, (order, _))| *order == Order::Close && !self.landed.contains_key(*id));
        closed.map(|(id, _)| id.clone()).collect()
    }

    /// Learns how a task landed from what follows from its own events.
    pub fn explain(&mut self, task: &TaskId, mut earlier: Self) {
        if let Some(landed) = earlier.landed.remove(task) {
            self.landed.insert(task.clone(), landed);
        }
    }

    /// A completed task whose work is not on the target yet: the tracker is updated once it is.
    pub fn hold_back(&mut self, task: &TaskId) {
        self.last.remove(task);
    }

    /// Settled tasks for which nothing else is reported.
    pub fn settled(&self) -> Vec<TaskId> {
        let tasks = self.settled.keys();
        tasks
            .filter(|id| !self.last.contains_key(*id))
            .cloned()
            .collect()
    }

    /// What settled this task closes it.
    pub fn close(&mut self, task: &TaskId) {
        if let Some(seq) = self.settled.get(task) {
            self.last.insert(task.clone(), (Order::Close, *seq));
        }
    }

    /// All of them, oldest first.
    pub fn finish(self) -> Vec<TrackerUpdate> {
        let words = |task: &TaskId, order| match order {
            Order::Close => match self.landed.get(task) {
                Some(landed) => format!("weald: {landed}"),
                None => "weald: completed".to_owned(),
            },
            Order::Fail => "weald: an attempt failed".to_owned(),
            order => format!("weald: {}", order.as_str()),
        };
        let mut updates: Vec<_> = self
            .last
            .iter()
            .map(|(task, (order, seq))| TrackerUpdate {
                task: task.clone(),
                order: *order,
                message: words(task, *order),
                seq: *seq,
            })
            .collect();
        updates.sort_by_key(|update| update.seq);
        updates
    }
}

/// The task of a landing that was cleaned up, or of a tree that is gone.
fn settles(event: &Event) -> Option<&TaskId> {
    let landing = event.after.landing.as_ref();
    if event.kind == EventKind::LANDING_CLEANED {
        let landed = landing.filter(|landing| landing.status == LandingStatus::Landed)?;
        let is_forward = landed.reverts.is_none() && !landed.interim;
        return landed.task.as_ref().filter(|_| is_forward);
    }
    let tree = event.after.tree.as_ref()?;
    let trash = tree.trash.as_ref().and_then(|trash| trash.task.as_ref());
    let is_gone = event.kind == EventKind::TREE_TRASHED;
    tree.task.as_ref().or(trash).filter(|_| is_gone)
}

/// Whether it has not been reported to a tracker yet that a task is done: it was completed, and nothing was reported since.
pub fn is_owed(story: &[Event]) -> bool {
    let last = story.iter().rev().find(|event| {
        let is_close = event.note.as_deref() == Some(Order::Close.as_str());
        let is_answered = [EventKind::SOURCE_TOLD, EventKind::SOURCE_FAILED].contains(&event.kind);
        event.kind == EventKind::TASK_COMPLETED || is_answered && is_close
    });
    last.is_some_and(|event| event.kind == EventKind::TASK_COMPLETED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::event::Change;

    fn event(seq: u64, kind: EventKind, id: &str, source: &str) -> Event {
        let mut task = Task::new(id.parse().unwrap(), "A", Timestamp::UNIX_EPOCH);
        task.extra.insert(SOURCE.into(), source.into());
        let change = Change::task(kind, task);
        Event::stamp(change, Seq(seq), Timestamp::UNIX_EPOCH, None)
    }

    #[test]
    fn p12_the_last_word_of_each_task_is_told_in_order() {
        let events = [
            event(1, EventKind::TASK_IMPORTED, "bd-1", "beads"),
            event(2, EventKind::TASK_CLAIMED, "bd-1", "beads"),
            event(3, EventKind::TASK_CLAIMED, "bd-2", "beads"),
            event(4, EventKind::TASK_COMPLETED, "gh-1", "gh"),
            event(5, EventKind::TASK_COMPLETED, "bd-1", "beads"),
            event(6, EventKind::TASK_EDITED, "bd-1", "beads"),
        ];
        let mut updates = TrackerUpdates::default();
        events
            .iter()
            .for_each(|event| updates.take(event, Tracker::Beads));
        let text: Vec<_> = updates
            .finish()
            .into_iter()
            .map(|update| (update.task.to_string(), update.order, update.seq.0))
            .collect();
        assert_eq!(
            text,
            [
                ("bd-2".to_owned(), Order::Claim, 3),
                ("bd-1".to_owned(), Order::Close, 5)
            ]
        );
    }

    #[test]
    fn p12_placeholders_are_replaced_once() {
        let id: TaskId = "gh-12".parse().unwrap();
        for (word, expected) in [
            ("{task}", "12"),
            ("x{id}y{z}{", "xgh-12y{z}{"),
            ("{message}", "{id} {task}"),
        ] {
            assert_eq!(expanded(word, &id, "{id} {task}"), expected);
        }
    }
}
