//! Taking back what weald did last.
//!
//! The state decides who was first: a directory leaves the trash by one rename, a landing is reverted once, a binding
//! changes in one transaction. The mark in the log comes last; a kill before it leaves an operation that does not stand
//! any more, or the rest of it, for the next undo.

mod error;
mod exact;

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::event::{Change, Event, EventKind};
use weald_core::id::{LandingId, Seq, TaskId, TreeId};
use weald_core::landing::Landing;
use weald_core::name::{SessionName, TreeName};
use weald_core::store::{Durability, EventFilter, Write};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;
use weald_core::tree::TreeLock;
use weald_core::tree_rules::TreeInput;
use weald_core::undo::{
    Operation, TrashedTree, UndoRefusal, Way, last_operation, operation_at, operations,
};

use crate::Upkeep;
use weald_control::steps::step;
use weald_trees::{TreeError, TreeView, decided};

pub use error::UndoError;
use error::in_vault;

/// How many events are looked at first; more if nothing is found in them.
const WINDOW: u64 = 2_000;

/// How far before a named event the look begins: what it changed was recorded not long before.
const BEFORE: u64 = 1_000;

/// The landing that took another one back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RevertedBy {
    pub landing: LandingId,
    pub target: String,
    /// The commit on it.
    pub commit: Option<String>,
}

/// What was taken back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Undone {
    pub undone: EventKind,
    /// The event that began it.
    pub event: Seq,
    pub by: Option<SessionName>,
    /// When it was done.
    pub at: Timestamp,
    /// Trees that are back, or locked as before.
    pub trees: Vec<TreeView>,
    /// The task that has its tree again, or is open again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// The landing that was reverted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landing: Option<LandingId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert: Option<RevertedBy>,
    /// What did not come back, and why.
    pub notes: Vec<String>,
}

impl Undone {
    fn of(operation: &Operation) -> Self {
        Self {
            undone: operation.kind.clone(),
            event: operation.event,
            by: operation.actor.clone(),
            at: operation.time,
            trees: Vec::new(),
            task: None,
            landing: None,
            revert: None,
            notes: Vec::new(),
        }
    }
}

impl Upkeep<'_> {
    /// What can be taken back, newest first.
    pub fn undoable(&self, most: usize) -> Result<Vec<Operation>, UndoError> {
        let mut found = self.in_window(|events, is_whole| {
            let mut found = operations(events);
            found.retain(|operation| !operation.is_gone());
            (is_whole || found.len() >= most).then_some(found)
        })?;
        found.reverse();
        found.truncate(most);
        Ok(found)
    }

    /// The last operation that stands, if the caller may take it back without naming it.
    pub fn last_operation(&self) -> Result<Operation, UndoError> {
        let found = self.in_window(|events, is_whole| {
            let found = last_operation(events, self.trees.actor());
            (is_whole || !matches!(found, Ok(None))).then_some(found)
        })?;
        match found {
            Ok(Some(operation)) => Ok(operation),
            Ok(None) => Err(UndoError::Nothing),
            Err(refused) => Err(UndoError::Unnamed(refused)),
        }
    }

    /// The operation of an event.
    pub fn operation(&self, event: Seq) -> Result<Operation, UndoError> {
        let found = self.in_window(|events, is_whole| {
            let first = events.first().map_or(0, |event| event.seq.0);
            let reaches = first + BEFORE <= event.0;
            (is_whole || reaches).then(|| operation_at(events, event))
        })?;
        Ok(found?)
    }

    /// Looks at ever more of the end of the log until `look` has an answer.
    fn in_window<T>(&self, look: impl Fn(&[Event], bool) -> Option<T>) -> Result<T, UndoError> {
        let mut limit = WINDOW;
        loop {
            let filter = EventFilter {
                limit: Some(limit),
                ..EventFilter::default()
            };
            let events = self.trees.engine.events(&filter)?;
            let is_whole = (events.len() as u64) < limit || events[0].seq == Seq(1);
            match look(&events, is_whole) {
                Some(found) => return Ok(found),
                None if is_whole => return Err(UndoError::Nothing),
                None => limit *= 8,
            }
        }
    }

    /// Takes an operation back that is not a landing.
    pub fn undo(&self, operation: &Operation) -> Result<Undone, UndoError> {
        let done = match &operation.way {
            Way::Restore(trees) => self.undo_removals(operation, trees),
            Way::Bind { task, tree, name } => self.undo_unbinding(operation, task, *tree, name),
            Way::Lock {
                tree, before, now, ..
            } => self.undo_lock(operation, *tree, before, now),
            Way::Revert { landing, .. } => Err(UndoError::OfQueue(*landing)),
        };
        // Another undo may have been faster, which says more than what it left.
        match done {
            Err(error) => match self.operation(operation.event) {
                Err(faster @ UndoError::Refused(UndoRefusal::IsUndone(_))) => Err(faster),
                _ => Err(error),
            },
            done => done,
        }
    }

    /// What follows once a landing is reverted: its tree comes back, if its name is free.
    pub fn undo_landed(
        &self,
        operation: &Operation,
        revert: &Landing,
    ) -> Result<Undone, UndoError> {
        let mut told = Undone::of(operation);
        let Way::Revert { landing, tree } = &operation.way else {
            return Ok(told);
        };
        told.landing = Some(*landing);
        told.revert = Some(RevertedBy {
            landing: revert.id,
            target: revert.target.clone(),
            commit: revert.new_tip.clone(),
        });
        match tree.as_ref().map(|part| (part, self.restore_part(part))) {
            None => {}
            Some((_, Ok(view))) => told.trees.push(view),
            Some((part, Err(TreeError::NotInTrash { .. }))) => told.notes.push(format!(
                "{}: weald restore {} --purged",
                in_vault(std::slice::from_ref(part)),
                part.id
            )),
            Some((part, Err(error))) => told.notes.push(format!(
                "worktree {} stays in the trash: {error} (weald restore {})",
                part.name, part.id
            )),
        }
        let reverted = self.landings.landing(*landing)?;
        if let Some(id) = &reverted.task {
            told.task = self.trees.engine.look(|tx| tx.task(id))?;
        }
        step("undo.done");
        self.mark_undone(operation)?;
        Ok(told)
    }

    fn undo_removals(
        &self,
        operation: &Operation,
        parts: &[TrashedTree],
    ) -> Result<Undone, UndoError> {
        let mut told = Undone::of(operation);
        told.notes = self.require_removals(operation, parts)?;
        for part in parts.iter().filter(|part| !part.gone) {
            let view = self.restore_part(part)?;
            step("undo.restored");
            told.trees.push(view);
            if let Some(id) = &part.completed {
                told.task = self.open_again(id)?;
            }
        }
        step("undo.done");
        self.mark_undone(operation)?;
        Ok(told)
    }

    fn restore_part(&self, part: &TrashedTree) -> Result<TreeView, TreeError> {
        self.trees.restore(&format!("#{}", part.id))
    }

    /// A task that a removal completed is open again.
    fn open_again(&self, id: &TaskId) -> Result<Option<Task>, UndoError> {
        let task = self.trees.engine.look(|tx| tx.task(id))?;
        if task.as_ref().map(|task| task.status) != Some(TaskStatus::Completed) {
            return Ok(task);
        }
        let moved = self
            .trees
            .engine
            .move_task(self.trees.actor(), id, TaskInput::Reopen);
        Ok(Some(moved.map_err(TreeError::from)?.task))
    }

    fn undo_unbinding(
        &self,
        operation: &Operation,
        task: &TaskId,
        tree: TreeId,
        name: &TreeName,
    ) -> Result<Undone, UndoError> {
        let mut told = Undone::of(operation);
        let bound = self
            .trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                let (bound, change) = exact::bound_again(tx, task, tree, name)?;
                tx.record(self.trees.actor(), change.part_of(Some(operation.event)))?;
                self.mark(tx, operation)?;
                Ok::<_, UndoError>(bound)
            })?;
        told.task = Some(bound);
        Ok(told)
    }

    fn undo_lock(
        &self,
        operation: &Operation,
        id: TreeId,
        before: &Option<TreeLock>,
        now: &Option<TreeLock>,
    ) -> Result<Undone, UndoError> {
        let mut told = Undone::of(operation);
        let tree = self
            .trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                let current = exact::require_lock(tx, id, now)?;
                let input = match before {
                    Some(lock) => TreeInput::Lock(lock.clone()),
                    None => TreeInput::Unlock,
                };
                let (tree, change) = decided(tx, &current, input)?;
                tx.record(self.trees.actor(), change.part_of(Some(operation.event)))?;
                self.mark(tx, operation)?;
                Ok::<_, UndoError>(tree)
            })?;
        self.trees.show_lock(&tree)?;
        told.trees.push(self.trees.view(tree));
        Ok(told)
    }

    fn mark_undone(&self, operation: &Operation) -> Result<(), UndoError> {
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Power, |tx| {
                self.mark(tx, operation)
            })
    }

    fn mark(&self, tx: &mut dyn Write, operation: &Operation) -> Result<(), UndoError> {
        let mark = Change::fact(EventKind::OPERATION_UNDONE).part_of(Some(operation.event));
        tx.record(self.trees.actor(), mark)?;
        Ok(())
    }
}
