//! Large databases, made through the store itself.

use std::path::Path;
use std::sync::Arc;

use weald_app::SystemClock;
use weald_core::event::{Change, EventKind};
use weald_core::id::TaskId;
use weald_core::store::{Clock, Durability, Result, Store};
use weald_core::task::{Priority, Task, TaskStatus};
use weald_store::SqliteStore;

/// How many changes go into one transaction.
const BATCH: u64 = 10_000;

/// Fills a store with `count` tasks and ten events a task. A tenth is ready, half wait for another, the rest is done.
pub fn fill(directory: &Path, count: u64) -> Result<()> {
    let store = SqliteStore::open(directory, Arc::new(SystemClock))?;
    for round in 0..10 {
        let mut id = 0;
        while id < count {
            let mut tx = store.write(Durability::Process)?;
            for id in id + 1..=(id + BATCH).min(count) {
                let kind = if round == 0 {
                    EventKind::TASK_CREATED
                } else {
                    EventKind::TASK_EDITED
                };
                tx.record(None, Change::task(kind, task(id, round)))?;
            }
            tx.commit()?;
            id += BATCH;
        }
    }
    Ok(())
}

/// Fills a store with `count` ready tasks.
pub fn fill_ready(directory: &Path, count: u64) -> Result<()> {
    let store = SqliteStore::open(directory, Arc::new(SystemClock))?;
    let mut tx = store.write(Durability::Process)?;
    for id in 1..=count {
        let task = Task::new(TaskId::Number(id), format!("task {id}"), SystemClock.now());
        tx.record(None, Change::task(EventKind::TASK_CREATED, task))?;
    }
    tx.commit()
}

fn task(id: u64, round: u64) -> Task {
    let mut task = Task::new(
        TaskId::Number(id),
        format!("task {id}, round {round}"),
        SystemClock.now(),
    );
    task.description =
        "A description of the usual length, so that records are as large as real ones are.".into();
    task.priority = Priority::ALL[(id % 4) as usize];
    match id % 10 {
        0 => {}
        1..=5 => task.blocked_by = vec![TaskId::Number(id / 10 * 10 + 10)],
        _ => task.status = TaskStatus::Completed,
    }
    task
}
