//! Reading and writing single records.

use rusqlite::types::{FromSql, ToSql};
use rusqlite::{Connection, OptionalExtension, Params, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use weald_core::Timestamp;
use weald_core::agent::Agent;
use weald_core::event::{After, Event};
use weald_core::id::{Seq, TaskId};
use weald_core::landing::Landing;
use weald_core::message::Message;
use weald_core::queue::Queue;
use weald_core::session::Session;
use weald_core::store::{Counter, Result, StoreError};
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::Tree;

use super::backend;

/// The first record that `sql` finds in its first column.
pub fn one<T: DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    with: &[&dyn ToSql],
) -> Result<Option<T>> {
    let mut statement = connection.prepare_cached(sql).map_err(backend)?;
    let doc = statement
        .query_row(with, |row| row.get::<_, String>(0))
        .optional()
        .map_err(backend)?;
    doc.map(|doc| parse(&doc)).transpose()
}

/// All records that `sql` finds in its first column.
pub fn all<T: DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    with: &[&dyn ToSql],
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql).map_err(backend)?;
    let mut rows = statement.query(with).map_err(backend)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(backend)? {
        let doc = row
            .get_ref(0)
            .and_then(|value| Ok(value.as_str()?))
            .map_err(backend)?;
        found.push(parse(doc)?);
    }
    Ok(found)
}

/// A record's text as a record.
pub fn parse<T: DeserializeOwned>(doc: &str) -> Result<T> {
    serde_json::from_str(doc)
        .map_err(|error| StoreError::Backend(format!("a record can't be read: {error}")))
}

fn text(record: &impl Serialize) -> String {
    serde_json::to_string(record).expect("records have text keys")
}

/// The place of the newest event.
/// The only value of the only row.
pub fn value<T: FromSql>(connection: &Connection, sql: &str, with: impl Params) -> Result<T> {
    let mut statement = connection.prepare_cached(sql).map_err(backend)?;
    let found = statement.query_row(with, |row| row.get(0));
    found.map_err(backend)
}

pub fn last_seq(connection: &Connection) -> Result<Seq> {
    let last: Option<i64> = value(connection, "SELECT max(seq) FROM events", [])?;
    Ok(Seq(last.unwrap_or(0) as u64))
}

pub fn insert_event(connection: &Connection, event: &Event) -> Result<()> {
    let task = event.task.as_ref().map(TaskId::to_string);
    let tree = event.tree.as_ref().map(|tree| tree.as_str());
    execute(
        connection,
        "INSERT INTO events (seq, task, tree, doc) VALUES (?1, ?2, ?3, ?4)",
        params![event.seq.0 as i64, task, tree, text(event)],
    )
}

/// Stores the records of a change.
pub fn apply(connection: &Connection, after: &After) -> Result<()> {
    if let Some(task) = &after.task {
        put_task(connection, task)?;
    }
    if let Some(tree) = &after.tree {
        put_tree(connection, tree)?;
    }
    if let Some(landing) = &after.landing {
        put_landing(connection, landing)?;
    }
    if let Some(queue) = &after.queue {
        put_queue(connection, queue)?;
    }
    if let Some(session) = &after.session {
        put_session(connection, session)?;
    }
    if let Some(agent) = &after.agent {
        put_agent(connection, agent)?;
    }
    match &after.message {
        Some(message) => put_message(connection, message),
        None => Ok(()),
    }
}

/// Takes the next number of a counter.
pub fn next_number(connection: &Connection, counter: Counter) -> Result<u64> {
    let sql = "INSERT INTO counters VALUES (?1, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value";
    let number: i64 = value(connection, sql, [counter_name(counter)])?;
    Ok(number as u64)
}

/// Makes sure that a counter gives out only numbers above `number`.
pub fn raise_counter(connection: &Connection, counter: Counter, number: u64) -> Result<()> {
    execute(
        connection,
        "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value \
         WHERE value < excluded.value",
        params![counter_name(counter), number as i64],
    )
}

fn counter_name(counter: Counter) -> &'static str {
    match counter {
        Counter::Task => "task",
        Counter::Message => "message",
        Counter::Tree => "tree",
        Counter::Landing => "landing",
        Counter::Agent => "agent",
    }
}

fn put_task(connection: &Connection, task: &Task) -> Result<()> {
    let id = task.id.to_string();
    let before: Option<Task> = one(connection, "SELECT doc FROM tasks WHERE id = ?1", &[&id])?;
    let before = before.as_ref();
    match before.is_some_and(|before| columns(before) == columns(task)) {
        // The indexes hold what they held: leave their pages alone.
        true => execute(
            connection,
            "UPDATE tasks SET doc = ?2 WHERE id = ?1",
            params![id, text(task)],
        )?,
        false => put_columns(connection, task, &id)?,
    }
    let dependencies = before.map_or(&[][..], |before| &before.blocked_by);
    if dependencies != task.blocked_by {
        put_dependencies(connection, task, &id)?;
    }
    let completed = |task: &Task| task.status == TaskStatus::Completed;
    if before.map(completed) != Some(completed(task)) {
        count_waiting(
            connection,
            "SELECT task FROM dependencies WHERE depends_on = ?1",
            &id,
        )?;
    }
    match task.id.counted() {
        Some(number) if before.is_none() => raise_counter(connection, Counter::Task, number),
        _ => Ok(()),
    }
}

/// What of a task is kept beside its `doc`.
fn columns(task: &Task) -> (&'static str, i64, Option<&str>, i64, Option<i64>) {
    let expires = task
        .lease
        .as_ref()
        .map(|lease| nanoseconds(lease.expires_at));
    let owner = task.owner.as_ref().map(|owner| owner.as_str());
    (
        task.status.as_str(),
        task.priority as i64,
        owner,
        nanoseconds(task.created_at),
        expires,
    )
}

fn put_columns(connection: &Connection, task: &Task, id: &str) -> Result<()> {
    let (status, priority, owner, created, expires) = columns(task);
    execute(
        connection,
        "INSERT INTO tasks (id, status, priority, owner, created, expires, waiting, doc) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7) \
         ON CONFLICT (id) DO UPDATE SET status = excluded.status, priority = excluded.priority, \
         owner = excluded.owner, created = excluded.created, expires = excluded.expires, doc = excluded.doc",
        params![id, status, priority, owner, created, expires, text(task)],
    )
}

fn put_dependencies(connection: &Connection, task: &Task, id: &str) -> Result<()> {
    execute(
        connection,
        "DELETE FROM dependencies WHERE task = (SELECT ord FROM tasks WHERE id = ?1)",
        [id],
    )?;
    for depends_on in &task.blocked_by {
        execute(
            connection,
            "INSERT OR IGNORE INTO dependencies SELECT ord, ?2 FROM tasks WHERE id = ?1",
            params![id, depends_on.to_string()],
        )?;
    }
    count_waiting(connection, "SELECT ord FROM tasks WHERE id = ?1", id)
}

/// Counts again what the tasks chosen by `which` wait for.
fn count_waiting(connection: &Connection, which: &str, id: &str) -> Result<()> {
    let sql = format!(
        "UPDATE tasks SET waiting = (SELECT count(*) FROM dependencies d LEFT JOIN tasks b ON b.id = d.depends_on \
         WHERE d.task = tasks.ord AND (b.status IS NULL OR b.status <> 'completed')) WHERE ord IN ({which})"
    );
    execute(connection, &sql, [id])
}

fn put_tree(connection: &Connection, tree: &Tree) -> Result<()> {
    let task = tree.task.as_ref().map(TaskId::to_string);
    execute(
        connection,
        "INSERT INTO trees VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE SET name = excluded.name, \
         status = excluded.status, task = excluded.task, doc = excluded.doc",
        params![
            tree.id.0 as i64,
            tree.name.as_str(),
            tree.status.as_str(),
            task,
            text(tree)
        ],
    )
}

fn put_agent(connection: &Connection, agent: &Agent) -> Result<()> {
    execute(
        connection,
        "INSERT INTO agents VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET open = excluded.open, \
         doc = excluded.doc",
        params![
            agent.id.0 as i64,
            agent.task.to_string(),
            !agent.status.is_over(),
            text(agent)
        ],
    )
}

fn put_landing(connection: &Connection, landing: &Landing) -> Result<()> {
    let status = match landing.is_unsettled() {
        true => "unsettled",
        false => landing.status.as_str(),
    };
    execute(
        connection,
        "INSERT INTO landings VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET tree = excluded.tree, \
         status = excluded.status, doc = excluded.doc",
        params![
            landing.id.0 as i64,
            landing.tree.as_str(),
            status,
            text(landing)
        ],
    )
}

fn put_queue(connection: &Connection, queue: &Queue) -> Result<()> {
    execute(
        connection,
        "INSERT INTO queue VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
        params![text(queue)],
    )
}

fn put_session(connection: &Connection, session: &Session) -> Result<()> {
    let seen = nanoseconds(session.last_seen);
    execute(
        connection,
        "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET \
         last_seen = max(last_seen, excluded.last_seen), open = excluded.open, doc = excluded.doc",
        params![
            session.name.as_str(),
            seen,
            session.ended_at.is_none(),
            text(session)
        ],
    )
}

fn put_message(connection: &Connection, message: &Message) -> Result<()> {
    execute(
        connection,
        "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE SET \
         unread = excluded.unread, doc = excluded.doc",
        params![
            message.id.0 as i64,
            message.to.as_str(),
            message.read_at.is_none(),
            message.priority as i64,
            message.reply_to.map(|id| id.0 as i64),
            text(message),
        ],
    )
}

/// Runs one statement that answers nothing.
pub fn execute(connection: &Connection, sql: &str, with: impl Params) -> Result<()> {
    let mut statement = connection.prepare_cached(sql).map_err(backend)?;
    statement.execute(with).map_err(backend)?;
    Ok(())
}

/// A time as the store's columns hold it. Times before 1677 or after 2262 are kept in `doc`; the
/// columns hold the nearest they can.
pub fn nanoseconds(time: Timestamp) -> i64 {
    let time = time.as_nanosecond();
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}

/// The reverse of [`nanoseconds`].
pub fn from_nanoseconds(time: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(time)).unwrap_or(Timestamp::MAX)
}
