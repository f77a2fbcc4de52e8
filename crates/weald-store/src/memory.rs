//! The model: the same contract in plain collections, for unit tests and to compare other backends with.
//!
//! A transaction works on a copy and a commit puts the copy in place. Everything is computed from the records when it
//! is asked for; nothing is kept twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use weald_core::Timestamp;
use weald_core::agent::{Agent, AgentId};
use weald_core::event::{Change, Event};
use weald_core::id::{LandingId, MessageId, Seq, TaskId, TreeId};
use weald_core::landing::Landing;
use weald_core::message::{Message, RequestState};
use weald_core::name::{SessionName, TreeName};
use weald_core::queue::Queue;
use weald_core::session::Session;
use weald_core::store::{
    AgentFilter, AgentReader, Clock, Counter, Durability, EventFilter, EventReader, MessageFilter,
    Read, Result, SessionReader, SessionSet, Store, TaskClass, TaskFilter, TaskOrder, TaskReader,
    TreeReader, Write,
};
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::Tree;

use crate::out_of_order;

pub struct MemoryStore {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Clone, Default)]
struct State {
    tasks: Vec<Task>,
    sessions: BTreeMap<SessionName, Session>,
    messages: BTreeMap<u64, Message>,
    trees: BTreeMap<u64, Tree>,
    landings: BTreeMap<u64, Landing>,
    queue: Queue,
    agents: BTreeMap<u64, Agent>,
    events: Vec<Event>,
    counters: [u64; 5],
}

struct Transaction<'a> {
    shared: MutexGuard<'a, State>,
    state: State,
    now: Timestamp,
}

impl MemoryStore {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            state: Mutex::default(),
            clock,
        }
    }

    fn begin(&self) -> Transaction<'_> {
        let shared = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Transaction {
            state: shared.clone(),
            shared,
            now: self.clock.now(),
        }
    }
}

impl Store for MemoryStore {
    fn read(&self) -> Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.begin()))
    }

    fn write(&self, _durability: Durability) -> Result<Box<dyn Write + '_>> {
        Ok(Box::new(self.begin()))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn wait(&self, after: Seq, timeout: Duration) -> Result<Seq> {
        let deadline = Instant::now() + timeout;
        loop {
            let last = self.begin().last_seq()?;
            if last > after || Instant::now() >= deadline {
                return Ok(last);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl State {
    fn find(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    fn is_waiting(&self, task: &Task) -> bool {
        let completed = |id: &TaskId| {
            self.find(id)
                .is_some_and(|task| task.status == TaskStatus::Completed)
        };
        !task.blocked_by.iter().all(completed)
    }

    fn is_ready(&self, task: &Task) -> bool {
        task.is_open() && !self.is_waiting(task)
    }

    fn matches(&self, filter: &TaskFilter, task: &Task) -> bool {
        let in_class = |class: &TaskClass| match class {
            TaskClass::Status(status) => task.status == *status,
            TaskClass::Ready => self.is_ready(task),
            TaskClass::Waiting => task.status == TaskStatus::Pending && self.is_waiting(task),
        };
        (filter.classes.is_empty() || filter.classes.iter().any(in_class))
            && filter
                .owner
                .as_ref()
                .is_none_or(|owner| task.owner.as_ref() == Some(owner))
            && filter
                .label
                .as_ref()
                .is_none_or(|label| task.labels.contains(label))
    }

    fn put_task(&mut self, task: Task) {
        match self.tasks.iter_mut().find(|known| known.id == task.id) {
            Some(known) => *known = task,
            None => {
                if let Some(number) = task.id.counted() {
                    let counter = &mut self.counters[Counter::Task as usize];
                    *counter = number.max(*counter);
                }
                self.tasks.push(task);
            }
        }
    }
}

impl State {
    /// Stores the records of an event, and the event.
    fn apply(&mut self, event: Event) {
        let after = event.after.clone();
        self.events.push(event);
        if let Some(task) = after.task {
            self.put_task(task);
        }
        if let Some(mut session) = after.session {
            let seen = self
                .sessions
                .get(&session.name)
                .map(|known| known.last_seen);
            session.last_seen = seen.map_or(session.last_seen, |seen| seen.max(session.last_seen));
            self.sessions.insert(session.name.clone(), session);
        }
        self.messages
            .extend(after.message.map(|message| (message.id.0, message)));
        self.trees.extend(after.tree.map(|tree| (tree.id.0, tree)));
        self.landings
            .extend(after.landing.map(|landing| (landing.id.0, landing)));
        self.agents
            .extend(after.agent.map(|agent| (agent.id.0, agent)));
        if let Some(queue) = after.queue {
            self.queue = queue;
        }
    }
}

fn in_claim_order(tasks: &mut [&Task]) {
    tasks.sort_by_key(|task| (task.priority, task.created_at));
}

fn cut<T>(items: Vec<T>, limit: Option<u64>) -> Vec<T> {
    items
        .into_iter()
        .take(limit.map_or(usize::MAX, |limit| limit as usize))
        .collect()
}

impl TaskReader for Transaction<'_> {
    fn task(&self, id: &TaskId) -> Result<Option<Task>> {
        Ok(self.state.find(id).cloned())
    }

    fn tasks(&self, filter: &TaskFilter) -> Result<Vec<Task>> {
        let mut found: Vec<_> = self
            .state
            .tasks
            .iter()
            .filter(|task| self.state.matches(filter, task))
            .collect();
        if filter.order == TaskOrder::Claim {
            in_claim_order(&mut found);
        }
        Ok(cut(found.into_iter().cloned().collect(), filter.limit))
    }

    fn count_tasks(&self, filter: &TaskFilter) -> Result<u64> {
        Ok(self
            .state
            .tasks
            .iter()
            .filter(|task| self.state.matches(filter, task))
            .count() as u64)
    }

    fn dependents(&self, id: &TaskId) -> Result<Vec<TaskId>> {
        let dependents = self
            .state
            .tasks
            .iter()
            .filter(|task| task.blocked_by.contains(id));
        Ok(dependents.map(|task| task.id.clone()).collect())
    }
}

impl SessionReader for Transaction<'_> {
    fn session(&self, name: &SessionName) -> Result<Option<Session>> {
        Ok(self.state.sessions.get(name).cloned())
    }

    fn sessions(&self, which: SessionSet) -> Result<Vec<Session>> {
        let wanted = |session: &&Session| which == SessionSet::All || session.ended_at.is_none();
        Ok(self
            .state
            .sessions
            .values()
            .filter(wanted)
            .cloned()
            .collect())
    }

    fn message(&self, id: MessageId) -> Result<Option<Message>> {
        Ok(self.state.messages.get(&id.0).cloned())
    }

    fn messages(&self, filter: &MessageFilter) -> Result<Vec<Message>> {
        let matches = |message: &&Message| {
            filter.to.as_ref().is_none_or(|to| message.to == *to)
                && (!filter.unread || message.read_at.is_none())
                && (!filter.pending || message.state == Some(RequestState::Pending))
                && (filter.reply_to.is_none() || message.reply_to == filter.reply_to)
        };
        let mut found: Vec<_> = self
            .state
            .messages
            .values()
            .filter(matches)
            .cloned()
            .collect();
        found.sort_by_key(|message| message.priority);
        Ok(cut(found, filter.limit))
    }
}

impl TreeReader for Transaction<'_> {
    fn tree(&self, name: &TreeName) -> Result<Option<Tree>> {
        Ok(self
            .state
            .trees
            .values()
            .rev()
            .find(|tree| tree.name == *name)
            .cloned())
    }

    fn tree_by_id(&self, id: TreeId) -> Result<Option<Tree>> {
        Ok(self.state.trees.get(&id.0).cloned())
    }

    fn trees(&self) -> Result<Vec<Tree>> {
        Ok(self.state.trees.values().cloned().collect())
    }

    fn landing(&self, id: LandingId) -> Result<Option<Landing>> {
        Ok(self.state.landings.get(&id.0).cloned())
    }

    fn landings(&self) -> Result<Vec<Landing>> {
        Ok(self.state.landings.values().cloned().collect())
    }

    fn newest_landings(&self, limit: u64) -> Result<Vec<Landing>> {
        let newest = self.state.landings.values().rev().cloned();
        Ok(newest
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .collect())
    }

    fn open_landings(&self) -> Result<Vec<Landing>> {
        let mut open = self.landings()?;
        open.retain(|landing| landing.status.is_open() || landing.is_unsettled());
        Ok(open)
    }

    fn landings_of(&self, tree: &TreeName) -> Result<Vec<Landing>> {
        let mut found = self.landings()?;
        found.retain(|landing| landing.tree == *tree);
        Ok(found)
    }

    fn queue(&self) -> Result<Queue> {
        Ok(self.state.queue.clone())
    }
}

impl AgentReader for Transaction<'_> {
    fn agent(&self, id: AgentId) -> Result<Option<Agent>> {
        Ok(self.state.agents.get(&id.0).cloned())
    }

    fn agents(&self, filter: &AgentFilter) -> Result<Vec<Agent>> {
        let matches = |agent: &&Agent| {
            !(filter.open && agent.status.is_over())
                && filter.task.as_ref().is_none_or(|task| agent.task == *task)
        };
        Ok(self
            .state
            .agents
            .values()
            .filter(matches)
            .cloned()
            .collect())
    }
}

impl EventReader for Transaction<'_> {
    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>> {
        let matches = |event: &&Event| {
            filter.since.is_none_or(|since| event.seq > since)
                && filter
                    .task
                    .as_ref()
                    .is_none_or(|task| event.task.as_ref() == Some(task))
                && filter
                    .tree
                    .as_ref()
                    .is_none_or(|tree| event.tree.as_ref() == Some(tree))
        };
        let mut found: Vec<_> = self.state.events.iter().filter(matches).cloned().collect();
        if let (None, Some(limit)) = (filter.since, filter.limit) {
            found.drain(..found.len().saturating_sub(limit as usize));
        }
        Ok(cut(found, filter.limit))
    }

    fn last_seq(&self) -> Result<Seq> {
        Ok(Seq(self.state.events.len() as u64))
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
        self.state.apply(event);
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
        self.state.apply(event);
        Ok(())
    }

    fn raise(&mut self, counter: Counter, number: u64) -> Result<()> {
        let value = &mut self.state.counters[counter as usize];
        *value = number.max(*value);
        Ok(())
    }

    fn next_claimable(&mut self) -> Result<Option<Task>> {
        let mut ready: Vec<_> = self
            .state
            .tasks
            .iter()
            .filter(|task| self.state.is_ready(task))
            .collect();
        in_claim_order(&mut ready);
        let abandoned = self
            .state
            .tasks
            .iter()
            .filter(|task| task.is_abandoned(self.now));
        let longest =
            abandoned.min_by_key(|task| task.lease.as_ref().map(|lease| lease.expires_at));
        Ok(ready.first().copied().or(longest).cloned())
    }

    fn next_number(&mut self, counter: Counter) -> Result<u64> {
        let number = &mut self.state.counters[counter as usize];
        *number += 1;
        Ok(*number)
    }

    fn touch_session(&mut self, name: &SessionName) -> Result<()> {
        if let Some(session) = self.state.sessions.get_mut(name) {
            session.last_seen = session.last_seen.max(self.now);
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        *self.shared = std::mem::take(&mut self.state);
        Ok(())
    }
}
