//! Tasks: state, order, dependencies, counters.

use super::*;

pub fn an_empty_store_is_empty(store: &dyn Store, clock: &FakeClock) {
    read(store, |tx| {
        assert_eq!(tx.last_seq().expect("read"), Seq(0));
        assert!(tx.tasks(&TaskFilter::default()).expect("read").is_empty());
        assert!(tx.task(&number(1)).expect("read").is_none());
        assert!(tx.sessions(SessionSet::All).expect("read").is_empty());
        assert!(tx.events(&EventFilter::default()).expect("read").is_empty());
        assert_eq!(tx.now(), clock.now());
    });
    write(store, |tx| {
        assert!(tx.next_claimable().expect("read").is_none())
    });
}

pub fn a_change_is_state_and_event_at_once(store: &dyn Store, clock: &FakeClock) {
    let change = Change::task(EventKind::TASK_CREATED, task(1, clock.now()));
    write(store, |tx| {
        let seq = tx.record(Some(&alice()), change.clone()).expect("recorded");
        assert_eq!(seq, Seq(1));
        assert!(
            tx.task(&number(1)).expect("read").is_some(),
            "a transaction sees its own changes"
        );
    });
    read(store, |tx| {
        assert_eq!(tx.task(&number(1)).expect("read"), change.after.task);
        let events = tx.events(&EventFilter::default()).expect("read");
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].seq, events[0].time), (Seq(1), clock.now()));
        assert_eq!(
            (&events[0].actor, &events[0].after),
            (&Some(alice()), &change.after)
        );
        assert_log_explains_state(tx);
    });
}

pub fn a_dropped_transaction_leaves_no_trace(store: &dyn Store, clock: &FakeClock) {
    put_after(store, clock, 1, &[]);
    {
        let mut tx = store.write(Durability::Power).expect("a turn");
        let change = Change::task(EventKind::TASK_CREATED, task(2, clock.now()));
        tx.record(None, change).expect("recorded");
    }
    read(store, |tx| {
        assert!(tx.task(&number(2)).expect("read").is_none());
        assert_eq!(tx.last_seq().expect("read"), Seq(1));
    });
    put_after(store, clock, 3, &[]);
    read(store, |tx| assert_log_explains_state(tx));
}

pub fn ready_follows_the_dependencies(store: &dyn Store, clock: &FakeClock) {
    put_after(store, clock, 1, &[]);
    put_after(store, clock, 2, &[1]);
    put_after(store, clock, 3, &[1, 2]);
    assert_eq!(ready(store), [1]);
    assert_eq!(listed(store, TaskClass::Waiting), [2, 3]);
    set_status(store, 1, TaskStatus::Completed);
    assert_eq!(ready(store), [2]);
    set_status(store, 1, TaskStatus::Pending);
    assert_eq!(
        ready(store),
        [1],
        "a dependency that is opened again blocks again"
    );
    put_after(store, clock, 3, &[]);
    assert_eq!(
        ready(store),
        [1, 3],
        "a dependency that is taken away does not block"
    );
    read(store, |tx| {
        assert_eq!(tx.dependents(&number(1)).expect("read"), [number(2)])
    });
    for status in [
        TaskStatus::Failed,
        TaskStatus::Cancelled,
        TaskStatus::InProgress,
    ] {
        set_status(store, 1, status);
        assert_eq!(
            ready(store),
            [3],
            "only completed frees what waits, not {status}"
        );
    }
}

pub fn a_missing_dependency_blocks_until_it_is_completed(store: &dyn Store, clock: &FakeClock) {
    put_after(store, clock, 1, &[9]);
    assert_eq!(ready(store), [0u64; 0]);
    put_after(store, clock, 9, &[]);
    assert_eq!(ready(store), [9]);
    set_status(store, 9, TaskStatus::Completed);
    assert_eq!(ready(store), [1]);
}

pub fn the_claim_order_is_priority_then_age(store: &dyn Store, clock: &FakeClock) {
    for (id, priority) in [
        (1, Priority::P2),
        (2, Priority::P0),
        (3, Priority::P2),
        (4, Priority::P0),
    ] {
        put(
            store,
            Task {
                priority,
                ..task(id, clock.now())
            },
        );
        clock.advance(SignedDuration::from_secs(1));
    }
    let old = clock
        .now()
        .checked_sub(SignedDuration::from_hours(1))
        .expect("in time");
    put(store, task(5, old));
    assert_eq!(ready(store), [2, 4, 5, 1, 3]);
    write(store, |tx| {
        let next = tx.next_claimable().expect("read").expect("one is ready");
        assert_eq!(next.id, number(2));
    });
}

fn lease(task: Task, now: Timestamp, seconds: i64) -> Task {
    let expires_at = now
        .checked_add(SignedDuration::from_secs(seconds))
        .expect("in time");
    let token = task.token.next();
    let lease = Lease {
        token,
        session: alice(),
        acquired_at: now,
        expires_at,
    };
    Task {
        status: TaskStatus::InProgress,
        owner: Some(alice()),
        token,
        lease: Some(lease),
        ..task
    }
}

fn next(store: &dyn Store) -> Option<TaskId> {
    let mut found = None;
    write(store, |tx| {
        found = tx.next_claimable().expect("read").map(|task| task.id)
    });
    found
}

pub fn next_claimable_prefers_ready_then_longest_expired(store: &dyn Store, clock: &FakeClock) {
    put(store, lease(task(1, clock.now()), clock.now(), 60));
    put(store, lease(task(2, clock.now()), clock.now(), 30));
    put_after(store, clock, 3, &[]);
    clock.advance(SignedDuration::from_secs(60));
    assert_eq!(next(store), Some(number(3)));
    set_status(store, 3, TaskStatus::Completed);
    assert_eq!(next(store), Some(number(2)), "expired first");
    put(store, lease(task(2, clock.now()), clock.now(), 60));
    assert_eq!(
        next(store),
        Some(number(1)),
        "a lease that ends now is over"
    );
    put(store, lease(task(1, clock.now()), clock.now(), 60));
    assert_eq!(next(store), None, "a lease that runs is left alone");
}

pub fn filters_combine(store: &dyn Store, clock: &FakeClock) {
    put(store, lease(task(1, clock.now()), clock.now(), 60));
    put(
        store,
        Task {
            labels: vec!["ui".into(), "a'b".into()],
            ..task(2, clock.now())
        },
    );
    put(
        store,
        Task {
            labels: vec!["uix".into()],
            ..task(3, clock.now())
        },
    );
    let found = |filter: TaskFilter| read(store, |tx| ids(tx.tasks(&filter).expect("read")));
    let all = TaskFilter::default();
    assert_eq!(found(all.clone()), [1, 2, 3]);
    assert_eq!(
        found(TaskFilter {
            limit: Some(2),
            ..all.clone()
        }),
        [1, 2]
    );
    assert_eq!(
        found(TaskFilter {
            label: Some("ui".into()),
            ..all.clone()
        }),
        [2]
    );
    assert_eq!(
        found(TaskFilter {
            label: Some("a'b".into()),
            ..all.clone()
        }),
        [2]
    );
    assert_eq!(
        found(TaskFilter {
            owner: Some(alice()),
            ..all.clone()
        }),
        [1]
    );
    let classes = vec![TaskClass::Status(TaskStatus::InProgress), TaskClass::Ready];
    assert_eq!(
        found(TaskFilter {
            classes: classes.clone(),
            ..all.clone()
        }),
        [1, 2, 3]
    );
    assert_eq!(
        found(TaskFilter {
            classes,
            label: Some("uix".into()),
            ..all
        }),
        [3]
    );
}

pub fn numbers_are_given_once_and_above_all_known(store: &dyn Store, clock: &FakeClock) {
    let take = |counter| {
        let mut taken = 0;
        write(store, |tx| {
            taken = tx.next_number(counter).expect("a number")
        });
        taken
    };
    assert_eq!((take(Counter::Task), take(Counter::Task)), (1, 2));
    put_after(store, clock, 50, &[]);
    assert_eq!(take(Counter::Task), 51);
    put_after(store, clock, 7, &[]);
    assert_eq!(take(Counter::Task), 52);
    assert_eq!(
        (
            take(Counter::Message),
            take(Counter::Tree),
            take(Counter::Landing)
        ),
        (1, 1, 1)
    );
}

pub fn unknown_fields_come_back(store: &dyn Store, clock: &FakeClock) {
    let mut odd = task(1, clock.now());
    odd.extra.insert(
        "estimate".into(),
        serde_json::json!({"days": 3, "by": ["ü", null]}),
    );
    put(store, odd.clone());
    assert_eq!(
        read(store, |tx| tx.task(&number(1)).expect("read")),
        Some(odd)
    );
}
