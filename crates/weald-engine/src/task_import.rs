//! Taking in tasks from elsewhere: bad lines are reported, a circle refuses the whole.

use std::collections::BTreeMap;

use serde::Serialize;
use weald_core::event::{Change, EventKind};
use weald_core::id::TaskId;
use weald_core::import::{Incoming, LineError, Parsed};
use weald_core::name::SessionName;
use weald_core::store::{Durability, Write};
use weald_core::task::Task;

use crate::engine::Engine;
use crate::tasks::{TaskError, next_free, require_no_cycle, unique};

/// What an import did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Imported {
    /// How many tasks are new.
    pub imported: usize,
    /// Their ids, in the order they came.
    pub ids: Vec<TaskId>,
    /// The lines that were not taken.
    pub errors: Vec<LineError>,
    /// What a person should know about the others.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Takes in what was parsed, in one transaction.
    pub fn import_tasks(
        &self,
        actor: Option<&SessionName>,
        parsed: Parsed,
    ) -> Result<Imported, TaskError> {
        self.change(actor, Durability::Process, |tx| {
            let mut errors = parsed.errors;
            let tasks = settle(tx, parsed.tasks, &mut errors)?;
            require_no_cycle(tx, &tasks)?;
            let ids: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
            for task in tasks {
                tx.record(actor, Change::task(EventKind::TASK_IMPORTED, task))?;
            }
            errors.sort_by_key(|error| error.line);
            Ok(Imported {
                imported: ids.len(),
                ids,
                errors,
                warnings: parsed.warnings,
            })
        })
    }
}

/// Gives every task its id and turns places in the list into ids. A task whose id is taken is left out and reported.
fn settle(
    tx: &mut dyn Write,
    incoming: Vec<Incoming>,
    errors: &mut Vec<LineError>,
) -> Result<Vec<Task>, TaskError> {
    let brought: BTreeMap<TaskId, usize> = incoming
        .iter()
        .rev()
        .filter_map(|task| Some((task.id.clone()?, task.line)))
        .collect();
    let mut ids = Vec::new();
    for task in &incoming {
        ids.push(match &task.id {
            None => Some(next_free(tx, |id| brought.contains_key(id))?),
            Some(id) if tx.task(id)?.is_some() => {
                errors.push(exists(task.line, format!("task {id} exists already")));
                None
            }
            Some(id) if brought[id] != task.line => {
                errors.push(exists(
                    task.line,
                    format!("task {id} stands on line {} already", brought[id]),
                ));
                None
            }
            Some(id) => Some(id.clone()),
        });
    }
    let mut tasks = Vec::new();
    for (incoming, id) in incoming.into_iter().zip(&ids) {
        if let Some(id) = id {
            let parts = incoming
                .waits_for
                .iter()
                .filter_map(|place| ids[*place].clone());
            let blocked_by = unique(
                incoming
                    .task
                    .blocked_by
                    .iter()
                    .cloned()
                    .chain(parts)
                    .collect(),
            );
            tasks.push(Task {
                id: id.clone(),
                blocked_by,
                ..incoming.task
            });
        }
    }
    Ok(tasks)
}

fn exists(line: usize, message: String) -> LineError {
    LineError {
        line,
        code: "task_exists",
        message,
    }
}
