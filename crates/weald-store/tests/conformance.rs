//! Both backends pass the suite of the testkit, and agree on random histories.

use std::sync::Arc;

use weald_core::SignedDuration;
use weald_core::dependencies::Blockers;
use weald_core::event::{Change, EventKind};
use weald_core::id::TaskId;
use weald_core::store::{Durability, EventFilter, Store, TaskClass, TaskFilter, TaskOrder};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::{self, TaskEdit, TaskInput};
use weald_store::{MemoryStore, SqliteStore};
use weald_testkit::{CASES, Case, FakeClock, assert_log_explains_state};

/// Runs every case and names those that fail.
fn run_all(run: impl Fn(&Case) + std::panic::RefUnwindSafe) {
    let failed = CASES
        .iter()
        .filter(|case| std::panic::catch_unwind(|| run(case)).is_err());
    let failed: Vec<_> = failed.map(|case| case.name).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn memory_passes_every_case() {
    run_all(|case| {
        let clock = FakeClock::new();
        (case.run)(&MemoryStore::new(clock.clone()), &clock);
    });
}

#[test]
fn sqlite_passes_every_case() {
    run_all(|case| {
        let clock = FakeClock::new();
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(directory.path(), clock.clone()).unwrap();
        (case.run)(&store, &clock);
    });
}

#[test]
fn the_log_left_behind_stays_short() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..400 {
        let store = SqliteStore::open(directory.path(), FakeClock::new()).unwrap();
        step(&store, round);
    }
    let log = std::fs::metadata(directory.path().join("weald.db-wal"))
        .unwrap()
        .len();
    assert!(
        log < 2 * 1024 * 1024,
        "one-shot commands leave a log of {log} bytes"
    );
}

/// A small generator: a failing history is found again by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// One random change, decided on what the store holds.
fn step(store: &dyn Store, seed: u64) {
    let mut random = Random(seed);
    let mut tx = store.write(Durability::Process).unwrap();
    let now = tx.now();
    let id = TaskId::Number(random.below(12) + 1);
    let change = match tx.task(&id).unwrap() {
        None => Change::task(EventKind::TASK_CREATED, Task::new(id, "a task", now)),
        Some(task) => {
            let token = task.lease.as_ref().map(|lease| lease.token);
            let session = "alice".parse().unwrap();
            let ttl = SignedDuration::from_secs(random.below(50) as i64 + 1);
            let input = match random.below(8) {
                0 | 1 => TaskInput::Claim {
                    session,
                    ttl,
                    blockers: Blockers::default(),
                },
                2 | 3 => TaskInput::Complete {
                    token,
                    report: None,
                },
                4 => TaskInput::Release { token },
                5 => TaskInput::Reopen,
                6 => TaskInput::Cancel { reason: None },
                _ => {
                    let on = (0..random.below(3))
                        .map(|_| TaskId::Number(random.below(14) + 1))
                        .collect();
                    TaskInput::Edit(Box::new(TaskEdit {
                        blocked_by: Some(on),
                        ..TaskEdit::default()
                    }))
                }
            };
            match task_rules::decide(&task, input, now) {
                Ok((_, change)) => change,
                Err(_) => return,
            }
        }
    };
    tx.record(None, change).unwrap();
    tx.commit().unwrap();
}

fn assert_same(left: &dyn Store, right: &dyn Store, seed: u64) {
    let classes = [
        TaskClass::Ready,
        TaskClass::Waiting,
        TaskClass::Status(TaskStatus::InProgress),
    ];
    for class in classes {
        let filter = TaskFilter {
            classes: vec![class],
            order: TaskOrder::Claim,
            ..TaskFilter::default()
        };
        let list = |store: &dyn Store| store.read().unwrap().tasks(&filter).unwrap();
        assert_eq!(list(left), list(right), "seed {seed}, {class:?}");
    }
    let next = |store: &dyn Store| {
        store
            .write(Durability::Process)
            .unwrap()
            .next_claimable()
            .unwrap()
    };
    assert_eq!(next(left), next(right), "seed {seed}");
}

#[test]
fn backends_agree_on_random_histories() {
    for seed in 1..=12 {
        let clock = FakeClock::new();
        let directory = tempfile::tempdir().unwrap();
        let sqlite = SqliteStore::open(directory.path(), clock.clone()).unwrap();
        let memory = MemoryStore::new(clock.clone());
        for round in 0..150 {
            let step_seed = seed * 1_000 + round;
            step(&sqlite, step_seed);
            step(&memory, step_seed);
            clock.advance(SignedDuration::from_secs(7));
            assert_same(&sqlite, &memory, seed);
        }
        let log = |store: &dyn Store| {
            store
                .read()
                .unwrap()
                .events(&EventFilter::default())
                .unwrap()
        };
        assert_eq!(log(&sqlite), log(&memory), "seed {seed}");
        assert_log_explains_state(sqlite.read().unwrap().as_ref());
    }
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let clock: Arc<FakeClock> = FakeClock::new();
    drop(SqliteStore::open(directory.path(), clock.clone()).unwrap());
    let raw = rusqlite::Connection::open(directory.path().join("weald.db")).unwrap();
    raw.execute("INSERT INTO schema_versions VALUES (99, 'later')", [])
        .unwrap();
    let error = SqliteStore::open(directory.path(), clock)
        .err()
        .expect("refused");
    assert!(error.to_string().contains("schema 99"), "{error}");
}

/// A server may run for days while another binary migrates the database.
#[test]
fn a_database_that_a_newer_weald_migrated_meanwhile_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path(), FakeClock::new()).unwrap();
    step(&store, 1);
    let snapshot = store.read().unwrap();
    let before = snapshot.last_seq().unwrap();
    let raw = rusqlite::Connection::open(directory.path().join("weald.db")).unwrap();
    raw.execute("INSERT INTO schema_versions VALUES (99, 'later')", [])
        .unwrap();
    // What was begun before still sees the tables as they were.
    assert_eq!(snapshot.last_seq().unwrap(), before);
    drop(snapshot);
    for durability in [Durability::Process, Durability::Power] {
        let error = store.write(durability).err().expect("refused");
        assert!(error.to_string().contains("schema 99"), "{error}");
    }
    let error = store.read().err().expect("refused");
    assert!(error.to_string().contains("schema 99"), "{error}");
    let written: i64 = raw
        .query_row("SELECT max(seq) FROM events", [], |row| row.get(0))
        .unwrap();
    assert_eq!(u64::try_from(written).ok(), Some(before.0));
    // The refused writer kept no turn and left no transaction open.
    raw.execute("DELETE FROM schema_versions WHERE version = 99", [])
        .unwrap();
    drop(store.write(Durability::Process).unwrap());
}

#[test]
fn the_database_has_the_promised_settings() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path(), FakeClock::new()).unwrap();
    assert_eq!(
        store.settings().unwrap(),
        ("wal".to_owned(), 1, 1),
        "WAL, NORMAL, foreign keys"
    );
    drop(store.write(Durability::Power).unwrap());
    assert_eq!(
        store.settings().unwrap().1,
        1,
        "NORMAL again after a transaction that was flushed"
    );
}

#[test]
fn x18_a_writer_that_waits_too_long_names_the_process_that_holds_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let clock = FakeClock::new();
    let holder = SqliteStore::open(directory.path(), clock.clone()).unwrap();
    let patience = std::time::Duration::from_millis(50);
    let waiter = SqliteStore::open_with_patience(directory.path(), clock, patience).unwrap();
    let held = holder.write(Durability::Process).unwrap();
    let error = waiter.write(Durability::Process).err().expect("busy");
    let own = Some(std::process::id());
    assert!(
        matches!(error, weald_core::store::StoreError::Busy { holder, .. } if holder == own),
        "{error}"
    );
    drop(held);
    drop(waiter.write(Durability::Process).unwrap());
}
