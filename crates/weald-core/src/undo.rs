//! What weald did last and can take back, by the log alone.
//!
//! An operation stands until a later event takes it back: the tree was restored, the landing reverted, the task bound
//! again. What takes something back is no operation itself, so undoing again goes one further back; never by itself to
//! something of which nothing is left, that is somebody else's, or to a landing that others came after.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind};
use crate::id::{LandingId, Seq, TaskId, TreeId};
use crate::landing::{Landing, RevertCause};
use crate::name::{SessionName, TreeName};
use crate::tree::{Tree, TreeLock, TreeStatus};

/// A tree in the trash, to be brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashedTree {
    /// The event that says so.
    pub event: Seq,
    pub id: TreeId,
    pub name: TreeName,
    #[serde(skip)]
    pub task: Option<TaskId>,
    /// The task that was completed by its removal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<TaskId>,
    /// True when nothing of it is in the trash: it was deleted for good since, or its directory was gone before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// How an operation is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Trees come back from the trash.
    Restore(Vec<TrashedTree>),
    /// A landing is reverted, and its tree comes back.
    Revert {
        landing: LandingId,
        /// The landing that it took back, which then counts again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reverts: Option<LandingId>,
        /// What it sent to the trash.
        tree: Option<TrashedTree>,
    },
    /// A task gets its tree again.
    Bind {
        task: TaskId,
        tree: TreeId,
        /// As it is called.
        name: TreeName,
    },
    /// A tree is locked as before.
    Lock {
        tree: TreeId,
        /// As it is called.
        name: TreeName,
        before: Option<TreeLock>,
        /// The lock that it must still have.
        now: Option<TreeLock>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The event that began it.
    pub event: Seq,
    #[serde(rename = "type")]
    pub kind: EventKind,
    pub time: Timestamp,
    pub actor: Option<SessionName>,
    /// How it is taken back.
    pub way: Way,
}

impl Operation {
    /// Whether nothing is left that could come back.
    pub fn is_gone(&self) -> bool {
        matches!(&self.way, Way::Restore(trees) if trees.iter().all(|tree| tree.gone))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |trees: &[TrashedTree]| {
            let names: Vec<_> = trees.iter().map(|tree| tree.name.to_string()).collect();
            names.join(", ")
        };
        match &self.way {
            Way::Restore(trees) if self.kind == EventKind::CLEAN_BEGUN => {
                write!(f, "the clean-up of {}", names(trees))?;
            }
            Way::Restore(trees) => write!(f, "the removal of {}", names(trees))?,
            Way::Revert {
                landing,
                reverts: Some(other),
                ..
            } => write!(f, "landing {landing}, which reverted landing {other}")?,
            Way::Revert { landing, .. } => write!(f, "landing {landing}")?,
            Way::Bind { task, name, .. } => write!(f, "the unbinding of task {task} and {name}")?,
            Way::Lock { name, now, .. } => match now {
                Some(_) => write!(f, "the lock of {name}")?,
                None => write!(f, "the unlocking of {name}")?,
            },
        }
        match &self.actor {
            Some(by) => write!(f, " by {by}"),
            None => Ok(()),
        }
    }
}

/// Why the last operation is not taken back unless it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// Nothing of it is left.
    Gone,
    /// Somebody else did it.
    Others,
    /// It is a landing, and what was done after it was taken back.
    Older,
}

/// The last operation, which is not taken back unless it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotByItself {
    pub last: Operation,
    pub why: Unasked,
    /// The newest one of which something is left.
    pub next: Option<Operation>,
}

/// The last operation that stands, if it is the caller's own, so that it may be taken back without being named. Whoever has
/// no session is one and the same.
pub fn last_operation(
    events: &[Event],
    is_mine: impl Fn(Option<&SessionName>) -> bool,
) -> Result<Option<Operation>, Box<NotByItself>> {
    let history = History::of(events);
    let newest = history.begun.last().copied();
    let mut standing = history.operations();
    let Some(last) = standing.last() else {
        return Ok(None);
    };
    let is_landing = matches!(last.way, Way::Revert { .. });
    let why = match last {
        last if last.is_gone() => Unasked::Gone,
        last if !is_mine(last.actor.as_ref()) => Unasked::Others,
        last if is_landing && newest != Some(last.event) => Unasked::Older,
        _ => return Ok(standing.pop()),
    };
    let last = last.clone();
    let next = standing.into_iter().rfind(|one| !one.is_gone());
    Err(Box::new(NotByItself { last, why, next }))
}

/// Why an event can't be taken back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndoRefusal {
    /// There is no such event.
    #[error("there is no event {0}")]
    NoEvent(Seq),
    /// It takes something back itself.
    #[error("event {0} is an undo, which cannot itself be undone")]
    IsUndoing(Seq),
    /// It was taken back.
    #[error("event {0} was already undone")]
    IsUndone(Seq),
    /// It is none of those that can be.
    #[error("event {0} ({1}) can't be undone")]
    NotUndoable(Seq, EventKind),
}

/// The kinds of events that begin an operation that can be taken back.
const UNDOABLE: [EventKind; 6] = [
    EventKind::TREE_TRASHED,
    EventKind::CLEAN_BEGUN,
    EventKind::LANDING_LANDED,
    EventKind::TASK_UNBOUND,
    EventKind::TREE_LOCKED,
    EventKind::TREE_UNLOCKED,
];

/// Those of them that are none where they carry an operation: they follow from it, and nobody asked for them.
const LOCKS: [EventKind; 2] = [EventKind::TREE_LOCKED, EventKind::TREE_UNLOCKED];

/// Every operation that stands at the end of the log, oldest first, also those of which nothing is left. `events` is an unbroken part of the log up to its end.
pub fn operations(events: &[Event]) -> Vec<Operation> {
    History::of(events).operations()
}

/// The operation that an event began, or the part of one that it is.
pub fn operation_at(events: &[Event], seq: Seq) -> Result<Operation, UndoRefusal> {
    let standing = operations(events);
    for operation in &standing {
        if operation.event == seq {
            return Ok(operation.clone());
        }
        if let Some(part) = parts(&operation.way).find(|part| part.event == seq) {
            return Ok(Operation {
                event: seq,
                kind: EventKind::TREE_TRASHED,
                way: Way::Restore(vec![part.clone()]),
                ..operation.clone()
            });
        }
    }
    let Some(event) = events.iter().find(|event| event.seq == seq) else {
        return Err(UndoRefusal::NoEvent(seq));
    };
    let landing = event.after.landing.as_ref();
    let is_part = landing.is_some_and(|one| one.reverts.is_some() && !is_asked_revert(one));
    let takes_back = [EventKind::OPERATION_UNDONE, EventKind::TREE_RESTORED];
    let is_automatic_lock = LOCKS.contains(&event.kind) && event.operation.is_some();
    Err(match &event.kind {
        kind if is_automatic_lock => UndoRefusal::NotUndoable(seq, kind.clone()),
        kind if takes_back.contains(kind) || is_part => UndoRefusal::IsUndoing(seq),
        kind if UNDOABLE.contains(kind) => UndoRefusal::IsUndone(seq),
        kind => UndoRefusal::NotUndoable(seq, kind.clone()),
    })
}

fn parts(way: &Way) -> impl Iterator<Item = &TrashedTree> {
    let (many, one) = match way {
        Way::Restore(trees) => (&trees[..], None),
        Way::Revert { tree, .. } => (&[][..], tree.as_ref()),
        _ => (&[][..], None),
    };
    many.iter().chain(one)
}

#[derive(Default)]
struct History {
    standing: Vec<Operation>,
    /// The events that began an operation, also of those that were taken back.
    begun: Vec<Seq>,
    before: BTreeMap<TreeId, (TreeStatus, Option<TreeLock>)>,
}

impl History {
    fn of(events: &[Event]) -> Self {
        let mut history = Self::default();
        for event in events {
            history.take(event);
        }
        history
    }

    fn operations(self) -> Vec<Operation> {
        let stands = |operation: &Operation| match &operation.way {
            Way::Restore(trees) => !trees.is_empty(),
            _ => true,
        };
        self.standing.into_iter().filter(stands).collect()
    }

    fn take(&mut self, event: &Event) {
        let (tree, landing) = (event.after.tree.as_ref(), event.after.landing.as_ref());
        match (&event.kind, tree, landing) {
            (kind, Some(tree), _) if *kind == EventKind::TREE_TRASHED => {
                self.put_away(event, tree);
            }
            (kind, Some(tree), _) if *kind == EventKind::TREE_RESTORED => {
                self.drop_parts(|part| part.id == tree.id);
            }
            (kind, Some(tree), _) if *kind == EventKind::TREE_REMOVE_AFTER => {
                self.removed(event, tree);
            }
            (kind, ..) if *kind == EventKind::CLEAN_BEGUN => {
                self.begin(event, Way::Restore(Vec::new()));
            }
            (kind, ..) if *kind == EventKind::TASK_COMPLETED => self.completed(event),
            (kind, _, Some(landing)) if *kind == EventKind::LANDING_LANDED => {
                if landing.reverts.is_none() || is_asked_revert(landing) {
                    let way = Way::Revert {
                        landing: landing.id,
                        reverts: landing.reverts,
                        tree: None,
                    };
                    self.begin(event, way);
                }
            }
            (kind, _, Some(landing)) if *kind == EventKind::LANDING_CLEANED => {
                let trashed = landing.cleanup.as_ref();
                if trashed.is_some_and(|cleanup| cleanup.directory == "trashed") {
                    self.cleaned_up(landing.id, landing.tree_id);
                }
            }
            (kind, _, Some(landing)) if *kind == EventKind::LANDING_REVERTED => {
                self.reverted(landing.id);
            }
            (kind, ..) if *kind == EventKind::OPERATION_UNDONE => self.undone(event.operation),
            _ => self.bound_or_locked(event),
        }
        if let Some(tree) = tree {
            self.forget_other_locks(tree);
            let now = (tree.status, tree.locked.clone());
            self.before.insert(tree.id, now);
        }
    }

    fn begin(&mut self, event: &Event, way: Way) {
        self.begun.push(event.seq);
        self.standing.push(Operation {
            event: event.seq,
            kind: event.kind.clone(),
            time: event.time,
            actor: event.actor.clone(),
            way,
        });
    }

    fn put_away(&mut self, event: &Event, tree: &Tree) {
        let part = TrashedTree {
            event: event.seq,
            id: tree.id,
            name: tree.name.clone(),
            task: event.task.clone(),
            completed: None,
            gone: event.kind == EventKind::TREE_REMOVE_AFTER,
        };
        let whole = self.standing.iter_mut().find(|operation| {
            Some(operation.event) == event.operation && operation.kind == EventKind::CLEAN_BEGUN
        });
        match whole.map(|operation| &mut operation.way) {
            Some(Way::Restore(parts)) => parts.push(part),
            _ => self.begin(event, Way::Restore(vec![part])),
        }
    }

    /// A tree that is no more: it was in the trash, or its directory was gone before.
    fn removed(&mut self, event: &Event, tree: &Tree) {
        let before = self.before.get(&tree.id).map(|(status, _)| *status);
        for part in self.standing.iter_mut().flat_map(parts_mut) {
            part.gone |= part.id == tree.id;
        }
        if before.is_some_and(|status| status != TreeStatus::Trashed) {
            self.put_away(event, tree);
        }
        self.standing.retain(|operation| match &operation.way {
            Way::Bind { tree: id, .. } | Way::Lock { tree: id, .. } => *id != tree.id,
            _ => true,
        });
    }

    /// Locks that are not there any more, by something that is no operation, are not to be taken back.
    fn forget_other_locks(&mut self, of: &Tree) {
        let is_its = |operation: &Operation| match &operation.way {
            Way::Lock { tree, now, .. } if *tree == of.id => Some(*now == of.locked),
            _ => None,
        };
        while let Some(place) = self.standing.iter().rposition(|one| is_its(one).is_some())
            && is_its(&self.standing[place]) == Some(false)
        {
            self.standing.remove(place);
        }
    }

    /// What a removal completes is its own task, and the completion names the removal.
    fn completed(&mut self, event: &Event) {
        for part in self.standing.iter_mut().flat_map(parts_mut) {
            if Some(part.event) == event.operation && part.task == event.task {
                part.completed = event.task.clone();
            }
        }
    }

    /// The removal that followed from a landing is a part of it.
    fn cleaned_up(&mut self, id: LandingId, of: TreeId) {
        let is_single = |operation: &Operation| match &operation.way {
            Way::Restore(trees) => {
                operation.kind == EventKind::TREE_TRASHED
                    && matches!(&trees[..], [one] if one.id == of)
            }
            _ => false,
        };
        let Some(place) = self.standing.iter().rposition(is_single) else {
            return;
        };
        let part = parts(&self.standing[place].way).next().cloned();
        let landed = self
            .standing
            .iter_mut()
            .find_map(|operation| match &mut operation.way {
                Way::Revert { landing, tree, .. } if *landing == id => Some(tree),
                _ => None,
            });
        if let Some(tree) = landed {
            *tree = part;
            let removal = self.standing.remove(place).event;
            self.begun.retain(|begun| *begun != removal);
        }
    }

    /// A landing that was reverted does not stand; the removal that followed from it does.
    fn reverted(&mut self, id: LandingId) {
        for operation in &mut self.standing {
            let Way::Revert { landing, tree, .. } = &mut operation.way else {
                continue;
            };
            if *landing == id {
                let left: Vec<_> = tree.take().into_iter().collect();
                if let [part] = &left[..] {
                    operation.event = part.event;
                    operation.kind = EventKind::TREE_TRASHED;
                }
                operation.way = Way::Restore(left);
            }
        }
    }

    fn undone(&mut self, of: Option<Seq>) {
        self.standing
            .retain(|operation| Some(operation.event) != of);
        self.drop_parts(|part| Some(part.event) == of);
    }

    fn drop_parts(&mut self, gone: impl Fn(&TrashedTree) -> bool) {
        for operation in &mut self.standing {
            match &mut operation.way {
                Way::Restore(trees) => trees.retain(|part| !gone(part)),
                Way::Revert { tree, .. } => *tree = tree.take().filter(|part| !gone(part)),
                _ => {}
            }
        }
    }

    fn bound_or_locked(&mut self, event: &Event) {
        let (Some(tree), kind) = (&event.after.tree, &event.kind) else {
            return;
        };
        let is_lock = LOCKS.contains(kind);
        let name = tree.name.clone();
        if *kind == EventKind::TASK_BOUND {
            let task = event.after.task.as_ref().map(|task| task.id.clone());
            self.standing.retain(|operation| match &operation.way {
                Way::Bind {
                    task: of, tree: id, ..
                } => Some(of) != task.as_ref() && *id != tree.id,
                _ => true,
            });
        } else if let (true, Some(task)) = (*kind == EventKind::TASK_UNBOUND, &event.after.task) {
            let (task, tree) = (task.id.clone(), tree.id);
            self.begin(event, Way::Bind { task, tree, name });
        } else if let (true, None, Some(before)) = (
            is_lock,
            event.operation,
            self.before.get(&tree.id).map(|(_, lock)| lock),
        ) {
            let way = Way::Lock {
                tree: tree.id,
                name,
                before: before.clone(),
                now: tree.locked.clone(),
            };
            self.begin(event, way);
        }
    }
}

/// Whether it takes another landing back because somebody asked for that: it is an operation of its own. One that an undo
/// or a failed check made is a part of something else.
fn is_asked_revert(landing: &Landing) -> bool {
    landing.reverts.is_some() && landing.revert_cause == Some(RevertCause::Asked)
}

fn parts_mut(operation: &mut Operation) -> impl Iterator<Item = &mut TrashedTree> {
    let (many, one) = match &mut operation.way {
        Way::Restore(trees) => (&mut trees[..], None),
        Way::Revert { tree, .. } => (&mut [][..], tree.as_mut()),
        _ => (&mut [][..], None),
    };
    many.iter_mut().chain(one)
}

#[cfg(test)]
mod tests;
