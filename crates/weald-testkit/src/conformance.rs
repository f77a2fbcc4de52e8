//! The contract of a store in executable form. Every backend runs every case on a fresh store.

mod records;
mod tasks;

use std::time::Duration;

use weald_core::agent::{Agent, AgentId, AgentStatus, Post};
use weald_core::event::{Change, EventKind};
use weald_core::id::{LandingId, MessageId, Seq, TaskId, Token, TreeId};
use weald_core::landing::{Cleanup, Landing, LandingStatus};
use weald_core::message::{Draft, MessageType, ReplyDraft, Urgency};
use weald_core::message_rules::{self, Replied};
use weald_core::name::{SessionName, TreeName};
use weald_core::queue::{Queue, QueueInput, QueuePause};
use weald_core::queue_rules;
use weald_core::session_rules;
use weald_core::store::{
    AgentFilter, Clock, Counter, Durability, EventFilter, MessageFilter, Read, SessionSet, Store,
    TaskClass, TaskFilter, TaskOrder, Write,
};
use weald_core::task::{Lease, Priority, Task, TaskStatus};
use weald_core::tree::{Base, DirectoryIdentity, Tree, TreeStatus};
use weald_core::tree_rules::{self, TreeInput};
use weald_core::{SignedDuration, Timestamp};

use crate::forged::FakeClock;
use crate::replay::assert_log_explains_state;
use records::*;
use tasks::*;

pub struct Case {
    pub name: &'static str,
    /// Runs it on an empty store with this clock.
    pub run: fn(&dyn Store, &FakeClock),
}

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub const CASES: &[Case] = &[$(Case { name: stringify!($name), run: $name }),*];
    };
}

cases! {
    an_empty_store_is_empty,
    a_change_is_state_and_event_at_once,
    a_dropped_transaction_leaves_no_trace,
    ready_follows_the_dependencies,
    a_missing_dependency_blocks_until_it_is_completed,
    the_claim_order_is_priority_then_age,
    next_claimable_prefers_ready_then_longest_expired,
    filters_combine,
    numbers_are_given_once_and_above_all_known,
    unknown_fields_come_back,
    a_heartbeat_makes_no_event_and_never_goes_back,
    ended_sessions_are_told_apart,
    messages_come_by_urgency_then_age,
    events_come_in_order_from_either_end,
    a_removed_tree_gives_its_name_back,
    landings_are_kept,
    agents_are_kept,
    the_queue_has_one_lease,
    waiting_ends_with_a_new_event_or_in_time,
    a_log_that_is_replayed_gives_the_same_store,
}

fn write(store: &dyn Store, change: impl FnOnce(&mut dyn Write)) {
    let mut transaction = store.write(Durability::Process).expect("a turn");
    change(transaction.as_mut());
    transaction.commit().expect("a commit");
}

fn read<T>(store: &dyn Store, look: impl FnOnce(&dyn Read) -> T) -> T {
    look(store.read().expect("a snapshot").as_ref())
}

fn alice() -> SessionName {
    "alice".parse().expect("a name")
}

fn number(id: u64) -> TaskId {
    TaskId::Number(id)
}

fn task(id: u64, now: Timestamp) -> Task {
    Task::new(number(id), format!("task {id}"), now)
}

fn put(store: &dyn Store, task: Task) {
    write(store, |tx| {
        tx.record(None, Change::task(EventKind::TASK_EDITED, task))
            .expect("recorded");
    });
}

fn put_after(store: &dyn Store, clock: &FakeClock, id: u64, after: &[u64]) {
    let blocked_by = after.iter().map(|id| number(*id)).collect();
    put(
        store,
        Task {
            blocked_by,
            ..task(id, clock.now())
        },
    );
}

fn set_status(store: &dyn Store, id: u64, status: TaskStatus) {
    let task = read(store, |tx| tx.task(&number(id)).expect("read")).expect("known");
    put(store, Task { status, ..task });
}

fn ids(tasks: Vec<Task>) -> Vec<u64> {
    tasks
        .iter()
        .map(|task| task.id.to_string().parse().expect("a number"))
        .collect()
}

fn listed(store: &dyn Store, class: TaskClass) -> Vec<u64> {
    let filter = TaskFilter {
        classes: vec![class],
        order: TaskOrder::Claim,
        ..TaskFilter::default()
    };
    let found = read(store, |tx| {
        (
            tx.tasks(&filter).expect("read"),
            tx.count_tasks(&filter).expect("read"),
        )
    });
    assert_eq!(found.0.len() as u64, found.1);
    ids(found.0)
}

fn ready(store: &dyn Store) -> Vec<u64> {
    listed(store, TaskClass::Ready)
}
