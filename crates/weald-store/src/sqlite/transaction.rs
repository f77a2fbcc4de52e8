//! One transaction: a snapshot to read, or the turn to write.

use std::sync::MutexGuard;

use rusqlite::Connection;
use rusqlite::types::ToSql;
use serde::de::DeserializeOwned;
use weald_core::Timestamp;
use weald_core::agent::{Agent, AgentId};
use weald_core::event::{Change, Event};
use weald_core::id::{LandingId, MessageId, Seq, TaskId, TreeId};
use weald_core::landing::Landing;
use weald_core::message::Message;
use weald_core::name::{SessionName, TreeName};
use weald_core::queue::Queue;
use weald_core::session::Session;
use weald_core::store::{
    AgentFilter, AgentReader, Counter, Durability, EventFilter, EventReader, MessageFilter, Read,
    Result, SessionReader, SessionSet, TaskClass, TaskFilter, TaskOrder, TaskReader, TreeReader,
    Write,
};
use weald_core::task::Task;
use weald_core::tree::Tree;

use super::turn::TurnGuard;
use super::{backend, rows, schema};
use crate::out_of_order;

/// What makes a pending task ready; word for word the condition of the index.
const READY: &str = "(status = 'pending' AND owner IS NULL AND waiting = 0)";

/// Left alone the planner takes the index of the status, and then sorts every pending task.
const READY_TASKS: &str = "tasks INDEXED BY tasks_ready";

/// A transaction that rolls back unless it was committed.
pub struct Transaction<'a> {
    connection: MutexGuard<'a, Connection>,
    now: Timestamp,
    durability: Durability,
    finished: bool,
    // Dropped after the rollback in `drop`, so nobody writes before this one is really over.
    _turn: Option<TurnGuard>,
}

impl<'a> Transaction<'a> {
    pub fn begin_read(connection: MutexGuard<'a, Connection>, now: Timestamp) -> Result<Self> {
        connection.execute_batch("BEGIN").map_err(backend)?;
        let durability = Durability::Process;
        let transaction = Self {
            connection,
            now,
            durability,
            finished: false,
            _turn: None,
        };
        transaction.with_known_schema()
    }

    pub fn begin_write(
        connection: MutexGuard<'a, Connection>,
        turn: TurnGuard,
        durability: Durability,
        now: Timestamp,
    ) -> Result<Self> {
        if durability == Durability::Power {
            connection
                .execute_batch("PRAGMA synchronous = FULL")
                .map_err(backend)?;
        }
        connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(backend)?;
        let transaction = Self {
            connection,
            now,
            durability,
            finished: false,
            _turn: Some(turn),
        };
        transaction.with_known_schema()
    }

    /// A newer weald may have changed the tables since this process opened them.
    fn with_known_schema(self) -> Result<Self> {
        schema::known_version(&self.connection)?;
        Ok(self)
    }
}

impl Transaction<'_> {
    fn one<T: DeserializeOwned>(&self, sql: &str, with: &[&dyn ToSql]) -> Result<Option<T>> {
        rows::one(&self.connection, sql, with)
    }

    fn all<T: DeserializeOwned>(&self, sql: &str, with: &[&dyn ToSql]) -> Result<Vec<T>> {
        rows::all(&self.connection, sql, with)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // If even this fails the connection is broken, and closing it rolls back.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        if self.durability == Durability::Power {
            let _ = self.connection.execute_batch("PRAGMA synchronous = NORMAL");
        }
    }
}

impl TaskReader for Transaction<'_> {
    fn task(&self, id: &TaskId) -> Result<Option<Task>> {
        self.one("SELECT doc FROM tasks WHERE id = ?1", &[&id.to_string()])
    }

    fn tasks(&self, filter: &TaskFilter) -> Result<Vec<Task>> {
        let (condition, values) = task_condition(filter);
        let order = match filter.order {
            TaskOrder::Created => "ord",
            TaskOrder::Claim => "priority, created, ord",
        };
        let sql = format!(
            "SELECT doc FROM {} WHERE {condition} ORDER BY {order} LIMIT {}",
            table(filter),
            limit(filter.limit)
        );
        self.all(&sql, &borrow(&values))
    }

    fn count_tasks(&self, filter: &TaskFilter) -> Result<u64> {
        let (condition, values) = task_condition(filter);
        let sql = format!("SELECT count(*) FROM {} WHERE {condition}", table(filter));
        let count: i64 = rows::value(&self.connection, &sql, &*borrow(&values))?;
        Ok(count as u64)
    }

    fn dependents(&self, id: &TaskId) -> Result<Vec<TaskId>> {
        let sql = "SELECT json_extract(doc, '$.id') FROM tasks WHERE ord IN \
                   (SELECT task FROM dependencies WHERE depends_on = ?1) ORDER BY ord";
        let mut statement = self.connection.prepare_cached(sql).map_err(backend)?;
        let ids = statement.query_map([id.to_string()], |row| {
            let value = row.get_ref(0)?;
            Ok(match value.as_i64() {
                Ok(number) => TaskId::Number(number as u64),
                Err(_) => TaskId::External(value.as_str()?.to_owned()),
            })
        });
        ids.and_then(Iterator::collect).map_err(backend)
    }
}

impl SessionReader for Transaction<'_> {
    fn session(&self, name: &SessionName) -> Result<Option<Session>> {
        let found = sessions(
            &self.connection,
            "SELECT last_seen, doc FROM sessions WHERE name = ?1",
            &[&name.as_str()],
        )?;
        Ok(found.into_iter().next())
    }

    fn sessions(&self, which: SessionSet) -> Result<Vec<Session>> {
        let sql = match which {
            SessionSet::Open => "SELECT last_seen, doc FROM sessions WHERE open = 1 ORDER BY name",
            SessionSet::All => "SELECT last_seen, doc FROM sessions ORDER BY name",
        };
        sessions(&self.connection, sql, &[])
    }

    fn message(&self, id: MessageId) -> Result<Option<Message>> {
        self.one("SELECT doc FROM messages WHERE id = ?1", &[&(id.0 as i64)])
    }

    fn messages(&self, filter: &MessageFilter) -> Result<Vec<Message>> {
        let (mut conditions, mut values) = (vec!["1"], Vec::<Box<dyn ToSql>>::new());
        if let Some(inbox) = &filter.to {
            conditions.push("inbox = ?");
            values.push(Box::new(inbox.as_str().to_owned()));
        }
        if filter.unread {
            conditions.push("unread = 1");
        }
        if filter.pending {
            conditions.push("doc ->> '$.state' = 'pending'");
        }
        if let Some(request) = filter.reply_to {
            conditions.push("reply_to = ?");
            values.push(Box::new(request.0 as i64));
        }
        let condition = conditions.join(" AND ");
        let sql = format!(
            "SELECT doc FROM messages WHERE {condition} ORDER BY urgency, id LIMIT {}",
            limit(filter.limit)
        );
        self.all(&sql, &borrow(&values))
    }
}

impl TreeReader for Transaction<'_> {
    fn tree(&self, name: &TreeName) -> Result<Option<Tree>> {
        self.one(
            "SELECT doc FROM trees WHERE name = ?1 ORDER BY id DESC LIMIT 1",
            &[&name.as_str()],
        )
    }

    fn tree_by_id(&self, id: TreeId) -> Result<Option<Tree>> {
        self.one("SELECT doc FROM trees WHERE id = ?1", &[&(id.0 as i64)])
    }

    fn trees(&self) -> Result<Vec<Tree>> {
        self.all("SELECT doc FROM trees ORDER BY id", &[])
    }

    fn landing(&self, id: LandingId) -> Result<Option<Landing>> {
        self.one("SELECT doc FROM landings WHERE id = ?1", &[&(id.0 as i64)])
    }

    fn open_landings(&self) -> Result<Vec<Landing>> {
        self.all("SELECT doc FROM landings WHERE status IN ('queued', 'testing', 'moving', 'unsettled') ORDER BY id",
            &[],
        )
    }

    fn landings_of(&self, tree: &TreeName) -> Result<Vec<Landing>> {
        self.all(
            "SELECT doc FROM landings WHERE tree = ?1 ORDER BY id",
            &[&tree.as_str()],
        )
    }

    fn queue(&self) -> Result<Queue> {
        let found = self.one("SELECT doc FROM queue", &[])?;
        Ok(found.unwrap_or_default())
    }

    fn landings(&self) -> Result<Vec<Landing>> {
        self.all("SELECT doc FROM landings ORDER BY id", &[])
    }

    fn newest_landings(&self, limit: u64) -> Result<Vec<Landing>> {
        self.all(
            "SELECT doc FROM landings ORDER BY id DESC LIMIT ?1",
            &[&i64::try_from(limit).unwrap_or(i64::MAX)],
        )
    }
}

impl AgentReader for Transaction<'_> {
    fn agent(&self, id: AgentId) -> Result<Option<Agent>> {
        self.one("SELECT doc FROM agents WHERE id = ?1", &[&(id.0 as i64)])
    }

    fn agents(&self, filter: &AgentFilter) -> Result<Vec<Agent>> {
        let task = filter.task.as_ref().map(TaskId::to_string);
        match (task, filter.open) {
            (None, true) => self.all("SELECT doc FROM agents WHERE open = 1 ORDER BY id", &[]),
            (None, false) => self.all("SELECT doc FROM agents ORDER BY id", &[]),
            (Some(task), open) => self.all(
                "SELECT doc FROM agents WHERE task = ?1 AND open >= ?2 ORDER BY id",
                &[&task, &open],
            ),
        }
    }
}

impl EventReader for Transaction<'_> {
    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>> {
        let (mut conditions, mut values) = (vec!["1"], Vec::<Box<dyn ToSql>>::new());
        if let Some(since) = filter.since {
            conditions.push("seq > ?");
            values.push(Box::new(since.0.min(i64::MAX as u64) as i64));
        }
        if let Some(task) = &filter.task {
            conditions.push("task = ?");
            values.push(Box::new(task.to_string()));
        }
        if let Some(tree) = &filter.tree {
            conditions.push("tree = ?");
            values.push(Box::new(tree.as_str().to_owned()));
        }
        let order = if filter.since.is_some() {
            "ASC"
        } else {
            "DESC"
        };
        let condition = conditions.join(" AND ");
        let sql = format!(
            "SELECT doc FROM events WHERE {condition} ORDER BY seq {order} LIMIT {}",
            limit(filter.limit)
        );
        let mut events: Vec<Event> = self.all(&sql, &borrow(&values))?;
        if filter.since.is_none() {
            events.reverse();
        }
        Ok(events)
    }

    fn last_seq(&self) -> Result<Seq> {
        rows::last_seq(&self.connection)
    }
}

impl Read for Transaction<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Write for Transaction<'_> {
    fn record(&mut self, actor: Option<&SessionName>, change: Change) -> Result<Seq> {
        let seq = Seq(self.last_seq()?.0 + 1);
        let event = Event::stamp(change, seq, self.now, actor.cloned());
        rows::apply(&self.connection, &event.after)?;
        rows::insert_event(&self.connection, &event)?;
        Ok(seq)
    }

    fn replay(&mut self, event: Event) -> Result<()> {
        let next = Seq(self.last_seq()?.0 + 1);
        if event.seq != next {
            return Err(out_of_order(event.seq, next));
        }
        for (counter, number) in Counter::seen_in(&event.after) {
            self.raise(counter, number)?;
        }
        rows::apply(&self.connection, &event.after)?;
        rows::insert_event(&self.connection, &event)
    }

    fn raise(&mut self, counter: Counter, number: u64) -> Result<()> {
        rows::raise_counter(&self.connection, counter, number)
    }

    fn next_claimable(&mut self) -> Result<Option<Task>> {
        let ready = format!(
            "SELECT doc FROM {READY_TASKS} WHERE {READY} ORDER BY priority, created, ord LIMIT 1"
        );
        if let Some(task) = self.one(&ready, &[])? {
            return Ok(Some(task));
        }
        let abandoned = "SELECT doc FROM tasks WHERE expires IS NOT NULL AND expires <= ?1 ORDER BY expires LIMIT 1";
        self.one(abandoned, &[&rows::nanoseconds(self.now)])
    }

    fn next_number(&mut self, counter: Counter) -> Result<u64> {
        rows::next_number(&self.connection, counter)
    }

    fn touch_session(&mut self, name: &SessionName) -> Result<()> {
        let sql = "UPDATE sessions SET last_seen = max(last_seen, ?2) WHERE name = ?1";
        rows::execute(
            &self.connection,
            sql,
            rusqlite::params![name.as_str(), rows::nanoseconds(self.now)],
        )
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.connection.execute_batch("COMMIT").map_err(backend)?;
        self.finished = true;
        Ok(())
    }
}

fn sessions(connection: &Connection, sql: &str, with: &[&dyn ToSql]) -> Result<Vec<Session>> {
    let mut statement = connection.prepare_cached(sql).map_err(backend)?;
    let mut found = Vec::new();
    let mut rows = statement.query(with).map_err(backend)?;
    while let Some(row) = rows.next().map_err(backend)? {
        let (seen, doc): (i64, String) =
            (row.get(0).map_err(backend)?, row.get(1).map_err(backend)?);
        let mut session: Session = rows::parse(&doc)?;
        session.last_seen = session.last_seen.max(rows::from_nanoseconds(seen));
        found.push(session);
    }
    Ok(found)
}

fn table(filter: &TaskFilter) -> &'static str {
    match filter.classes[..] {
        [TaskClass::Ready] => READY_TASKS,
        _ => "tasks",
    }
}

fn task_condition(filter: &TaskFilter) -> (String, Vec<Box<dyn ToSql>>) {
    let (mut conditions, mut values) = (Vec::new(), Vec::<Box<dyn ToSql>>::new());
    let classes = filter.classes.iter().map(|class| match class {
        TaskClass::Status(status) => format!("status = '{}'", status.as_str()),
        TaskClass::Ready => READY.to_owned(),
        TaskClass::Waiting => "(status = 'pending' AND waiting > 0)".to_owned(),
    });
    let classes = classes.collect::<Vec<_>>().join(" OR ");
    conditions.push(if classes.is_empty() {
        "1".to_owned()
    } else {
        format!("({classes})")
    });
    if let Some(owner) = &filter.owner {
        conditions.push("owner = ?".to_owned());
        values.push(Box::new(owner.as_str().to_owned()));
    }
    if let Some(label) = &filter.label {
        conditions
            .push("EXISTS (SELECT 1 FROM json_each(doc, '$.labels') WHERE value = ?)".to_owned());
        values.push(Box::new(label.clone()));
    }
    (conditions.join(" AND "), values)
}

fn borrow(values: &[Box<dyn ToSql>]) -> Vec<&dyn ToSql> {
    values.iter().map(AsRef::as_ref).collect()
}

/// SQLite takes a negative limit for none.
fn limit(limit: Option<u64>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}
