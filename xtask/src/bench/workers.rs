//! Claims and events from several processes at once: each worker is a process of this binary.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use weald_app::{Engine, Settings, SystemClock, SystemProcesses, TaskError};
use weald_core::event::{Change, EventKind};
use weald_core::id::TaskId;
use weald_core::store::{Clock, Durability, Store};
use weald_core::task::Task;
use weald_store::SqliteStore;

use super::naive::Naive;

/// How many events a worker writes.
const EVENTS: u64 = 2_000;

/// One worker. It opens its store, says so, waits for the word, and works.
pub fn run(directory: &Path, design: &str) -> io::Result<()> {
    let session = format!("worker-{}", std::process::id());
    let mut work: Box<dyn FnMut() -> io::Result<()>> = match design {
        "weald" => {
            let store =
                SqliteStore::open(directory, Arc::new(SystemClock)).map_err(io::Error::other)?;
            let engine = Engine::new(
                Box::new(store),
                Arc::new(SystemProcesses),
                Settings::default(),
            );
            Box::new(move || claim_all(&engine, &session))
        }
        "naive" => {
            let naive = Naive::new(directory);
            Box::new(move || {
                while naive.claim(&session)? {}
                Ok(())
            })
        }
        "weald-events" => {
            let store =
                SqliteStore::open(directory, Arc::new(SystemClock)).map_err(io::Error::other)?;
            Box::new(move || (0..EVENTS).try_for_each(|number| write_event(&store, number)))
        }
        _ => {
            let naive = Naive::new(directory);
            Box::new(move || (0..EVENTS).try_for_each(|number| naive.event(number)))
        }
    };
    writeln!(io::stdout(), "ready")?;
    io::stdin().lock().read_line(&mut String::new())?;
    work()
}

fn claim_all(engine: &Engine, session: &str) -> io::Result<()> {
    let session = session.parse().expect("a name");
    loop {
        match engine.claim(&session, None, None) {
            Ok(_) => {}
            Err(TaskError::NothingReady { .. }) => return Ok(()),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

fn write_event(store: &SqliteStore, number: u64) -> io::Result<()> {
    let mut tx = store.write(Durability::Process).map_err(io::Error::other)?;
    let task = Task::new(TaskId::Number(number % 100 + 1), "task", SystemClock.now());
    tx.record(None, Change::task(EventKind::TASK_EDITED, task))
        .map_err(io::Error::other)?;
    tx.commit().map_err(io::Error::other)
}

/// Starts `count` workers, lets them go at the same moment, and says how many operations a second they did.
pub fn rate(directory: &Path, design: &str, count: usize, operations: u64) -> io::Result<f64> {
    let mut workers = Vec::new();
    for _ in 0..count {
        #[expect(
            clippy::disallowed_methods,
            reason = "a benchmark of processes starts processes"
        )]
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["bench", "claim-worker"])
            .arg(directory)
            .arg(design);
        let mut worker = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        io::BufReader::new(worker.stdout.take().expect("piped")).read_line(&mut line)?;
        workers.push(worker);
    }
    let started = Instant::now();
    for worker in &mut workers {
        drop(worker.stdin.take());
    }
    for worker in &mut workers {
        if !worker.wait()?.success() {
            return Err(io::Error::other(format!("a {design} worker failed")));
        }
    }
    Ok(operations as f64 / started.elapsed().as_secs_f64())
}

/// Events that `count` workers write.
pub fn events_of(count: usize) -> u64 {
    EVENTS * count as u64
}
