//! Taking in tasks from elsewhere: bad lines are reported, a circle refuses the whole, what is here is brought up to date.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use weald_core::event::{Change, EventKind};
use weald_core::id::TaskId;
use weald_core::import::{Incoming, LineError, Parsed, Renewal, is_history, is_same, renewal};
use weald_core::name::SessionName;
use weald_core::source::{MARKDOWN, source_of};
use weald_core::store::{Durability, Read, StoreError, TaskFilter, Write};
use weald_core::task::Task;
use weald_core::task_rules::{self, TaskInput};

use crate::engine::Engine;
use crate::tasks::{TaskError, next_free, require_no_cycle, unique};

/// What an import did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// How many tasks are new.
    pub imported: usize,
    /// Their ids, in the order they came.
    pub ids: Vec<TaskId>,
    /// Those that were here, and changed.
    pub updated: Vec<TaskId>,
    /// How many were here as they came, or are being worked on.
    pub unchanged: usize,
    /// The lines that were not taken.
    pub errors: Vec<LineError>,
    /// What a person should know about the others.
    pub warnings: Vec<String>,
}

/// What becomes of the good lines when there are bad ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadLines {
    Report,
    Refuse,
}

impl Engine {
    /// Takes in what was parsed, in one transaction.
    pub fn import_tasks(
        &self,
        actor: Option<&SessionName>,
        parsed: Parsed,
        bad_lines: BadLines,
    ) -> Result<Imported, TaskError> {
        self.change(actor, Durability::Process, |tx| {
            let mut errors = parsed.errors;
            let settled = settle(tx, parsed.tasks, &mut errors)?;
            errors.sort_by_key(|error| error.line);
            if bad_lines == BadLines::Refuse && !errors.is_empty() {
                return Err(TaskError::BadLines { errors });
            }
            let all: Vec<_> = settled.iter().map(|(task, _)| task.clone()).collect();
            require_no_cycle(tx, &all)?;
            let mut done = Imported {
                imported: 0,
                ids: Vec::new(),
                updated: Vec::new(),
                unchanged: 0,
                errors,
                warnings: parsed.warnings,
            };
            for (task, change) in settled {
                match change {
                    None => done.unchanged += 1,
                    Some((change, is_new)) => {
                        tx.record(actor, change)?;
                        let list = if is_new {
                            &mut done.ids
                        } else {
                            &mut done.updated
                        };
                        list.push(task.id);
                    }
                }
            }
            done.imported = done.ids.len();
            Ok(done)
        })
    }
}

/// A task as it will be, and what is recorded of it: a change, and whether it is new.
type Settled = (Task, Option<(Change, bool)>);

/// Gives every task its id and turns places in the list into ids. One that comes twice is left out and reported.
fn settle(
    tx: &mut dyn Write,
    incoming: Vec<Incoming>,
    errors: &mut Vec<LineError>,
) -> Result<Vec<Settled>, TaskError> {
    let ids = ids_of(tx, &incoming, errors)?;
    let awaited: BTreeSet<TaskId> = incoming
        .iter()
        .filter(|incoming| !is_history(&incoming.task))
        .flat_map(|incoming| incoming.task.blocked_by.iter().cloned())
        .collect();
    let mut settled = Vec::new();
    for (incoming, id) in incoming.into_iter().zip(&ids) {
        let Some(id) = id else { continue };
        let parts = incoming.waits_for.iter();
        let parts = parts.filter_map(|place| ids[*place].clone());
        let named = incoming.task.blocked_by.iter().cloned();
        let came = Task {
            id: id.clone(),
            blocked_by: unique(named.chain(parts).collect()),
            ..incoming.task
        };
        match tx.task(id)? {
            Some(known) if !is_same(&known, &came) => errors.push(LineError {
                line: incoming.line,
                entry: source_of(&came).map(|_| id.to_string()),
                code: "task_exists".to_owned(),
                message: format!("task {id} is a different task here: {:?}", known.subject),
            }),
            Some(known) => settled.push(renewed(tx, known, &came)?),
            None if is_history(&came) && !awaited.contains(id) => {}
            None => {
                let change = Change::task(EventKind::TASK_IMPORTED, came.clone());
                settled.push((came, Some((change, true))));
            }
        }
    }
    Ok(settled)
}

/// What a task that is here becomes.
fn renewed(tx: &dyn Write, known: Task, came: &Task) -> Result<Settled, TaskError> {
    Ok(match renewal(&known, came) {
        Renewal::Nothing => (known, None),
        Renewal::Edit(edit) => {
            let (next, change) = task_rules::decide(&known, TaskInput::Edit(edit), tx.now())?;
            (next, Some((change, false)))
        }
        Renewal::Close => {
            let next = Task {
                status: came.status,
                closed_at: came.closed_at,
                updated_at: tx.now(),
                ..known
            };
            let change = Change::task(EventKind::TASK_IMPORTED, next.clone());
            (next, Some((change, false)))
        }
    })
}

/// The id of each: its own, that of the item with the same text, or the next number.
fn ids_of(
    tx: &mut dyn Write,
    incoming: &[Incoming],
    errors: &mut Vec<LineError>,
) -> Result<Vec<Option<TaskId>>, TaskError> {
    let brought = incoming.iter().rev();
    let brought: BTreeMap<TaskId, usize> = brought
        .filter_map(|task| Some((task.id.clone()?, task.line)))
        .collect();
    let mut known = match incoming.iter().any(is_unnamed_item) {
        true => items(tx)?,
        false => BTreeMap::new(),
    };
    let mut ids = Vec::new();
    for task in incoming {
        let known = known
            .get_mut(&task.task.subject)
            .filter(|_| is_unnamed_item(task));
        ids.push(match &task.id {
            Some(id) if brought[id] != task.line => {
                errors.push(twice(task, id, brought[id]));
                None
            }
            Some(id) => Some(id.clone()),
            None => match known.and_then(VecDeque::pop_front) {
                Some(id) => Some(id),
                None => Some(next_free(tx, |id| brought.contains_key(id))?),
            },
        });
    }
    Ok(ids)
}

/// What is reported of one that came before.
fn twice(task: &Incoming, id: &TaskId, first: usize) -> LineError {
    let is_entry = source_of(&task.task).is_some_and(|source| source != MARKDOWN);
    let message = match is_entry {
        true => "it appears twice; weald uses the first one".to_owned(),
        false => format!("task {id} is already on line {first}"),
    };
    LineError {
        line: task.line,
        entry: is_entry.then(|| id.to_string()),
        code: "task_exists".to_owned(),
        message,
    }
}

fn is_unnamed_item(incoming: &Incoming) -> bool {
    incoming.id.is_none() && source_of(&incoming.task) == Some(MARKDOWN)
}

/// The items of lists that are here, by their texts; several with one text in the order they came.
fn items(tx: &(impl Read + ?Sized)) -> Result<BTreeMap<String, VecDeque<TaskId>>, StoreError> {
    let mut items: BTreeMap<String, VecDeque<TaskId>> = BTreeMap::new();
    let all = tx.tasks(&TaskFilter::default())?.into_iter();
    let mut all: Vec<_> = all
        .filter(|task| source_of(task) == Some(MARKDOWN))
        .collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    for task in all {
        items.entry(task.subject).or_default().push_back(task.id);
    }
    Ok(items)
}
