//! Sessions, messages, trees, landings and the log.

use weald_core::event::Event;

use super::*;

pub fn a_heartbeat_makes_no_event_and_never_goes_back(store: &dyn Store, clock: &FakeClock) {
    let (_, change) = session_rules::register(None, alice(), None, clock.now()).expect("free");
    write(store, |tx| {
        tx.record(None, change.clone()).expect("recorded");
    });
    clock.advance(SignedDuration::from_secs(10));
    write(store, |tx| tx.touch_session(&alice()).expect("touched"));
    write(store, |tx| {
        tx.touch_session(&"nobody".parse().expect("a name"))
            .expect("left alone")
    });
    let seen = clock.now();
    write(store, |tx| {
        tx.record(None, change.clone()).expect("recorded");
    });
    read(store, |tx| {
        let found = tx.session(&alice()).expect("read").expect("known");
        assert_eq!(
            found.last_seen, seen,
            "an older record does not turn the heartbeat back"
        );
        assert_eq!(
            tx.sessions(SessionSet::Open).expect("read"),
            std::slice::from_ref(&found)
        );
        assert_eq!(tx.sessions(SessionSet::All).expect("read"), [found]);
        assert_eq!(tx.last_seq().expect("read"), Seq(2));
        assert_log_explains_state(tx);
    });
}

pub fn ended_sessions_are_told_apart(store: &dyn Store, clock: &FakeClock) {
    let (session, started) =
        session_rules::register(None, alice(), None, clock.now()).expect("free");
    let (_, ended) = session_rules::ended(&session, clock.now());
    write(store, |tx| {
        tx.record(None, started).expect("recorded");
        tx.record(None, ended).expect("recorded");
    });
    read(store, |tx| {
        assert!(tx.sessions(SessionSet::Open).expect("read").is_empty());
        assert_eq!(tx.sessions(SessionSet::All).expect("read").len(), 1);
    });
}

pub fn messages_come_by_urgency_then_age(store: &dyn Store, clock: &FakeClock) {
    for (id, priority) in [
        (1, Urgency::Info),
        (2, Urgency::Urgent),
        (3, Urgency::Info),
        (4, Urgency::Steer),
    ] {
        let draft = Draft {
            from: "bob".parse().expect("a name"),
            to: if id == 3 {
                "carol".parse().expect("a name")
            } else {
                alice()
            },
            kind: MessageType::Message,
            priority,
            text: "hello".into(),
            task: None,
        };
        let (_, change) = message_rules::send(draft, MessageId(id), clock.now()).expect("sent");
        write(store, |tx| {
            tx.record(None, change).expect("recorded");
        });
    }
    let inbox = MessageFilter {
        to: Some(alice()),
        unread: true,
        ..MessageFilter::default()
    };
    let found = |filter: &MessageFilter| {
        read(store, |tx| {
            tx.messages(filter)
                .expect("read")
                .iter()
                .map(|m| m.id.0)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(found(&inbox), [2, 4, 1]);
    assert_eq!(
        found(&MessageFilter {
            limit: Some(1),
            ..inbox.clone()
        }),
        [2]
    );
    let first = read(store, |tx| tx.message(MessageId(2)).expect("read")).expect("known");
    let (_, change) = message_rules::consume(&first, clock.now()).expect("unread");
    write(store, |tx| {
        tx.record(None, change).expect("recorded");
    });
    assert_eq!(found(&inbox), [4, 1]);
    assert_eq!(
        found(&MessageFilter {
            unread: false,
            ..inbox
        }),
        [2, 4, 1]
    );
    assert_eq!(
        found(&MessageFilter {
            reply_to: Some(MessageId(1)),
            ..MessageFilter::default()
        }),
        [0u64; 0]
    );
    requests_are_pending_until_somebody_answers(store, clock);
    read(store, |tx| assert_log_explains_state(tx));
}

fn requests_are_pending_until_somebody_answers(store: &dyn Store, clock: &FakeClock) {
    let pending = || {
        let filter = MessageFilter {
            pending: true,
            ..MessageFilter::default()
        };
        read(store, |tx| tx.messages(&filter).expect("read"))
    };
    assert_eq!(pending(), []);
    let draft = Draft {
        from: "bob".parse().expect("a name"),
        to: alice(),
        kind: MessageType::Question,
        priority: Urgency::Info,
        text: "which one?".into(),
        task: None,
    };
    let (question, change) = message_rules::send(draft, MessageId(9), clock.now()).expect("sent");
    write(store, |tx| {
        tx.record(None, change).expect("recorded");
    });
    assert_eq!(pending(), std::slice::from_ref(&question));
    let draft = ReplyDraft {
        from: alice(),
        text: "that one".into(),
        kind: None,
        verdict: None,
    };
    let replied =
        message_rules::reply(&question, draft, MessageId(10), clock.now()).expect("answered");
    let Replied::Answered { request, reply } = replied else {
        panic!("it was pending");
    };
    write(store, |tx| {
        tx.record(None, request.1).expect("recorded");
        tx.record(None, reply.1).expect("recorded");
    });
    assert_eq!(pending(), []);
}

pub fn events_come_in_order_from_either_end(store: &dyn Store, clock: &FakeClock) {
    for id in 1..=5 {
        put_after(store, clock, id % 2 + 1, &[]);
    }
    let found = |filter: EventFilter| {
        read(store, |tx| {
            tx.events(&filter)
                .expect("read")
                .iter()
                .map(|e| e.seq.0)
                .collect::<Vec<_>>()
        })
    };
    let all = EventFilter::default();
    assert_eq!(found(all.clone()), [1, 2, 3, 4, 5]);
    assert_eq!(
        found(EventFilter {
            limit: Some(2),
            ..all.clone()
        }),
        [4, 5]
    );
    assert_eq!(
        found(EventFilter {
            since: Some(Seq(1)),
            limit: Some(2),
            ..all.clone()
        }),
        [2, 3]
    );
    assert_eq!(
        found(EventFilter {
            task: Some(number(2)),
            ..all.clone()
        }),
        [1, 3, 5]
    );
    assert_eq!(
        found(EventFilter {
            task: Some(number(2)),
            since: Some(Seq(1)),
            ..all.clone()
        }),
        [3, 5]
    );
    assert_eq!(
        found(EventFilter {
            since: Some(Seq(u64::MAX)),
            ..all.clone()
        }),
        [0u64; 0]
    );
    assert_eq!(
        found(EventFilter {
            tree: Some("x".parse().expect("a name")),
            ..all
        }),
        [0u64; 0]
    );
}

fn tree_record(id: u64, now: Timestamp) -> Tree {
    let base = Base {
        reference: "main".into(),
        commit: "0".repeat(40),
    };
    let path = "/srv/app.weald/fix".into();
    Tree::new(TreeId(id), "fix".parse().expect("a name"), path, base, now)
}

pub fn a_removed_tree_gives_its_name_back(store: &dyn Store, clock: &FakeClock) {
    let (mut tree, change) = tree_rules::announce(tree_record(1, clock.now()));
    let mut changes = vec![change];
    for input in [
        TreeInput::Created {
            identity: DirectoryIdentity {
                device: 1,
                inode: 1,
                born: None,
            },
            registration: "fix".into(),
        },
        TreeInput::RemoveBegins { worker: None },
        TreeInput::Removed,
    ] {
        let (next, change) = tree_rules::decide(&tree, input, clock.now()).expect("legal");
        tree = next;
        changes.push(change);
    }
    changes.push(tree_rules::announce(tree_record(2, clock.now())).1);
    write(store, |tx| {
        for change in changes {
            tx.record(None, change).expect("recorded");
        }
    });
    read(store, |tx| {
        let name = "fix".parse().expect("a name");
        assert_eq!(
            tx.tree(&name).expect("read").expect("known").id,
            TreeId(2),
            "the newest has the name"
        );
        assert_eq!(
            tx.tree_by_id(TreeId(1))
                .expect("read")
                .expect("known")
                .status,
            TreeStatus::Removed
        );
        assert_eq!(tx.trees().expect("read").len(), 2);
        let about = EventFilter {
            tree: Some(name),
            ..EventFilter::default()
        };
        assert_eq!(tx.events(&about).expect("read").len(), 5);
        assert_log_explains_state(tx);
    });
}

pub fn landings_are_kept(store: &dyn Store, clock: &FakeClock) {
    let base = Base {
        reference: "main".into(),
        commit: "0".repeat(40),
    };
    let name: TreeName = "fix".parse().expect("a name");
    let tree = Tree::new(TreeId(7), name.clone(), "/t".into(), base, clock.now());
    let waiting = Landing::new(LandingId(1), &tree, "1".repeat(40), clock.now());
    let ended = Landing {
        status: LandingStatus::Landed,
        cleanup: Some(Cleanup::default()),
        ..Landing::new(LandingId(2), &tree, "2".repeat(40), clock.now())
    };
    let unsettled = Landing {
        id: LandingId(3),
        cleanup: None,
        ..ended.clone()
    };
    write(store, |tx| {
        for landing in [&waiting, &ended, &unsettled] {
            let change = Change::landing(EventKind::LANDING_QUEUED, landing.clone());
            tx.record(None, change).expect("recorded");
        }
    });
    read(store, |tx| {
        let all = [waiting.clone(), ended.clone(), unsettled.clone()];
        assert_eq!(tx.landings().expect("read"), all);
        assert_eq!(tx.landings_of(&name).expect("read"), all);
        let newest = [unsettled.clone(), ended.clone()];
        assert_eq!(tx.newest_landings(2).expect("read"), newest);
        let other: TreeName = "other".parse().expect("a name");
        assert_eq!(tx.landings_of(&other).expect("read"), []);
        assert_eq!(tx.open_landings().expect("read"), [waiting, unsettled]);
        assert_eq!(tx.landing(LandingId(2)).expect("read"), Some(ended));
        assert_eq!(tx.landing(LandingId(4)).expect("read"), None);
        assert_log_explains_state(tx);
    });
}

pub fn agents_are_kept(store: &dyn Store, clock: &FakeClock) {
    let post = |task: u64| Post {
        session: "alice".parse().expect("a name"),
        task: TaskId::Number(task),
        token: Token(1),
    };
    let running = Agent::new(AgentId(1), post(1), "command", clock.now());
    let over = Agent {
        status: AgentStatus::Exited,
        ..Agent::new(AgentId(2), post(1), "command", clock.now())
    };
    let other = Agent::new(AgentId(3), post(2), "command", clock.now());
    write(store, |tx| {
        for agent in [&running, &over, &other] {
            assert_eq!(tx.next_number(Counter::Agent).expect("number"), agent.id.0);
            let change = Change::agent(EventKind::AGENT_SPAWNED, agent.clone());
            tx.record(None, change).expect("recorded");
        }
    });
    read(store, |tx| {
        let filter = |open, task: Option<u64>| AgentFilter {
            open,
            task: task.map(TaskId::Number),
        };
        let all = [running.clone(), over.clone(), other.clone()];
        assert_eq!(tx.agents(&filter(false, None)).expect("read"), all);
        let open = [running.clone(), other];
        assert_eq!(tx.agents(&filter(true, None)).expect("read"), open);
        let on_first = [running.clone(), over.clone()];
        assert_eq!(tx.agents(&filter(false, Some(1))).expect("read"), on_first);
        assert_eq!(tx.agents(&filter(true, Some(1))).expect("read"), [running]);
        assert_eq!(tx.agents(&filter(true, Some(9))).expect("read"), []);
        assert_eq!(tx.agent(AgentId(2)).expect("read"), Some(over));
        assert_log_explains_state(tx);
    });
}

pub fn the_queue_has_one_lease(store: &dyn Store, clock: &FakeClock) {
    read(store, |tx| {
        assert_eq!(tx.queue().expect("read"), Queue::default());
    });
    let pause = QueuePause {
        reason: "release day".into(),
        by: None,
        at: clock.now(),
    };
    write(store, |tx| {
        let queue = tx.queue().expect("read");
        let (_, change) = queue_rules::decide(&queue, QueueInput::Pause(pause.clone()), tx.now())
            .expect("paused");
        tx.record(None, change).expect("recorded");
    });
    read(store, |tx| {
        assert_eq!(tx.queue().expect("read").paused, Some(pause));
        assert_log_explains_state(tx);
    });
}

pub fn waiting_ends_with_a_new_event_or_in_time(store: &dyn Store, clock: &FakeClock) {
    assert_eq!(
        store
            .wait(Seq(0), Duration::from_millis(5))
            .expect("waited"),
        Seq(0)
    );
    put_after(store, clock, 1, &[]);
    assert_eq!(
        store.wait(Seq(0), Duration::from_secs(60)).expect("waited"),
        Seq(1)
    );
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| store.wait(Seq(1), Duration::from_secs(60)).expect("waited"));
        put_after(store, clock, 2, &[]);
        assert_eq!(waiter.join().expect("no panic"), Seq(2));
    });
}

pub fn a_log_that_is_replayed_gives_the_same_store(store: &dyn Store, clock: &FakeClock) {
    let time = clock.now();
    let mut change = Change::task(EventKind::TASK_CREATED, task(7, time));
    change.error = Some("kept".to_owned());
    let first = Event::stamp(change, Seq(1), time, Some(alice()));
    let base = Base {
        reference: "main".to_owned(),
        commit: "c".to_owned(),
    };
    let name: TreeName = "fix".parse().expect("a name");
    let mut tree = Tree::new(TreeId(5), name, "/t/fix".into(), base, time);
    tree.task = Some(number(7));
    let change = Change::tree(EventKind::TREE_CREATE_AFTER, tree.clone());
    let second = Event::stamp(change, Seq(2), time, None);
    clock.advance(SignedDuration::from_hours(1));
    write(store, |tx| {
        tx.replay(first.clone()).expect("the first");
        assert!(tx.replay(first.clone()).is_err(), "the same place twice");
        tx.replay(second.clone()).expect("the second");
        tx.raise(Counter::Agent, 9).expect("raised");
        tx.raise(Counter::Agent, 3).expect("never lowered");
    });
    read(store, |tx| {
        let events = tx.events(&EventFilter::default()).expect("read");
        assert_eq!(events, [first, second]);
        assert_eq!(tx.trees().expect("read"), [tree]);
        assert_log_explains_state(tx);
    });
    write(store, |tx| {
        let mut next = |counter| tx.next_number(counter).expect("a number");
        assert_eq!(next(Counter::Task), 8);
        assert_eq!(next(Counter::Tree), 6);
        assert_eq!(next(Counter::Agent), 10);
        assert_eq!(next(Counter::Landing), 1);
        let gap = Change::fact(EventKind::LOG_LOST);
        let later = Event::stamp(gap, Seq(4), time, None);
        assert!(tx.replay(later).is_err(), "a gap");
        let seq = tx.record(None, Change::fact(EventKind::LOG_LOST));
        assert_eq!(seq.expect("recorded"), Seq(3));
    });
}
