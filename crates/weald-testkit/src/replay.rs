//! The check behind "events and state agree": replaying the log must give the tables.

use std::collections::BTreeMap;

use weald_core::store::{EventFilter, Read, SessionSet, TaskFilter};

/// Panics unless the after-images of the whole log, each on top of the one before, are exactly what the store holds,
/// and places in the log have no gaps. Heartbeats (`last_seen`) are no part of the log.
pub fn assert_log_explains_state(read: &dyn Read) {
    let events = read
        .events(&EventFilter::default())
        .expect("the log can be read");
    let mut tasks = BTreeMap::new();
    let mut sessions = BTreeMap::new();
    let (mut messages, mut trees, mut landings) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (mut queue, mut agents) = (None, BTreeMap::new());
    for (place, event) in events.into_iter().enumerate() {
        assert_eq!(event.seq.0, place as u64 + 1, "the log has a gap");
        let after = event.after;
        tasks.extend(after.task.map(|task| (task.id.clone(), task)));
        sessions.extend(after.session.map(|session| (session.name.clone(), session)));
        messages.extend(after.message.map(|message| (message.id, message)));
        trees.extend(after.tree.map(|tree| (tree.id, tree)));
        landings.extend(after.landing.map(|landing| (landing.id, landing)));
        queue = after.queue.or(queue);
        agents.extend(after.agent.map(|agent| (agent.id, agent)));
    }
    let mut stored = read
        .tasks(&TaskFilter::default())
        .expect("tasks can be read");
    stored.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(
        stored,
        tasks.into_values().collect::<Vec<_>>(),
        "tasks and log disagree"
    );
    let mut stored = read
        .sessions(SessionSet::All)
        .expect("sessions can be read");
    for (session, logged) in stored.iter_mut().zip(sessions.values()) {
        session.last_seen = logged.last_seen;
    }
    assert_eq!(
        stored,
        sessions.into_values().collect::<Vec<_>>(),
        "sessions and log disagree"
    );
    let mut stored = read
        .messages(&Default::default())
        .expect("messages can be read");
    stored.sort_by_key(|message| message.id);
    assert_eq!(
        stored,
        messages.into_values().collect::<Vec<_>>(),
        "messages and log disagree"
    );
    let stored = read.trees().expect("trees can be read");
    assert_eq!(
        stored,
        trees.into_values().collect::<Vec<_>>(),
        "trees and log disagree"
    );
    let stored = read.landings().expect("landings can be read");
    assert_eq!(
        stored,
        landings.into_values().collect::<Vec<_>>(),
        "landings and log disagree"
    );
    let stored = read
        .agents(&Default::default())
        .expect("agents can be read");
    assert_eq!(
        stored,
        agents.into_values().collect::<Vec<_>>(),
        "agents and log disagree"
    );
    assert_eq!(
        read.queue().expect("the queue can be read"),
        queue.unwrap_or_default(),
        "queue and log disagree"
    );
}
