//! Liveness with a clock and a process table that the test turns.

use std::sync::Arc;

use weald_control::engine::{Engine, Settings};
use weald_control::identity::{IdentitySource, identify};
use weald_control::sessions::SessionError;
use weald_control::tasks::NewTask;
use weald_core::SignedDuration;
use weald_core::name::SessionName;
use weald_core::session::{Liveness, ProcessState};
use weald_store::MemoryStore;
use weald_testkit::{FakeClock, FakeProcesses};

struct Lab {
    engine: Engine,
    clock: Arc<FakeClock>,
    processes: Arc<FakeProcesses>,
}

impl Lab {
    fn new() -> Self {
        let (clock, processes) = (FakeClock::new(), FakeProcesses::new());
        let store = MemoryStore::new(clock.clone());
        let engine = Engine::new(Box::new(store), processes.clone(), Settings::default());
        Self {
            engine,
            clock,
            processes,
        }
    }

    fn liveness(&self, name: &str) -> Liveness {
        self.engine
            .session(&name.parse().unwrap())
            .unwrap()
            .liveness
    }

    fn minutes_pass(&self, minutes: i64) {
        self.clock.advance(SignedDuration::from_mins(minutes));
    }

    fn claim(&self, name: &str) {
        let new = NewTask {
            subject: "a task".into(),
            ..NewTask::default()
        };
        let id = self.engine.add_task(None, new).unwrap().id;
        self.engine
            .claim(&name.parse().unwrap(), Some(&id), None)
            .unwrap();
    }
}

#[test]
fn s1_a_session_is_stale_after_five_minutes_and_a_heartbeat_revives_it() {
    let lab = Lab::new();
    let alice = "alice".parse().unwrap();
    lab.engine.register(&alice, None).unwrap();
    lab.minutes_pass(5);
    assert_eq!(lab.liveness("alice"), Liveness::Alive, "not yet");
    lab.clock.advance(SignedDuration::from_secs(1));
    assert_eq!(lab.liveness("alice"), Liveness::Unknown);
    assert!(lab.engine.session(&alice).unwrap().stale);
    lab.engine.heartbeat(&alice, None, None).unwrap();
    assert_eq!(lab.liveness("alice"), Liveness::Alive);
    lab.minutes_pass(4);
    lab.claim("alice");
    lab.minutes_pass(4);
    assert_eq!(
        lab.liveness("alice"),
        Liveness::Alive,
        "a claim is a sign of life"
    );
    lab.minutes_pass(20);
    assert_eq!(
        lab.liveness("alice"),
        Liveness::Dead,
        "stale, no process, and the lease ran out"
    );
}

#[test]
fn s1_a_process_decides_when_it_can_be_seen() {
    let lab = Lab::new();
    lab.processes.set(7, ProcessState::Running);
    lab.engine
        .register(&"agent".parse().unwrap(), Some(7))
        .unwrap();
    lab.minutes_pass(600);
    assert_eq!(
        lab.liveness("agent"),
        Liveness::Alive,
        "a silent process is not a dead one"
    );
    lab.processes.set(7, ProcessState::Unknown);
    lab.claim("agent");
    lab.minutes_pass(600);
    assert_eq!(
        lab.liveness("agent"),
        Liveness::Unknown,
        "not even an expired lease proves death then"
    );
    lab.processes.set(7, ProcessState::Gone);
    assert_eq!(lab.liveness("agent"), Liveness::Dead);
}

#[test]
fn s2_only_a_proven_dead_owner_does_not_contest() {
    let lab = Lab::new();
    let (task, bob) = ("1".parse().unwrap(), "bob".parse().unwrap());
    lab.processes.set(7, ProcessState::Running);
    lab.engine
        .register(&"agent".parse().unwrap(), Some(7))
        .unwrap();
    lab.claim("agent");
    for (state, contested) in [
        (ProcessState::Running, true),
        (ProcessState::Unknown, true),
        (ProcessState::Gone, false),
    ] {
        lab.processes.set(7, state);
        lab.minutes_pass(600);
        assert_eq!(
            lab.engine.contest(&bob, &task).unwrap().contested,
            contested,
            "{state:?}"
        );
    }
    lab.claim("unregistered");
    let second = "2".parse().unwrap();
    assert!(
        lab.engine.contest(&bob, &second).unwrap().contested,
        "its lease speaks for it"
    );
    lab.minutes_pass(600);
    assert!(!lab.engine.contest(&bob, &second).unwrap().contested);
}

#[test]
fn s3_the_nearest_living_ancestor_is_the_caller() {
    let lab = Lab::new();
    for (name, pid) in [("outer", 5), ("inner", 7), ("other", 9)] {
        lab.processes.set(pid, ProcessState::Running);
        lab.engine
            .register(&name.parse().unwrap(), Some(pid))
            .unwrap();
    }
    lab.processes.set_ancestors(&[8, 7, 5, 1]);
    let nobody = || None::<fn() -> Option<SessionName>>;
    let found = || identify(&lab.engine, None, |_| None, nobody()).unwrap();
    assert_eq!(
        (found().name.as_str(), found().source),
        ("inner", IdentitySource::Ancestor)
    );
    lab.processes.set(7, ProcessState::Gone);
    assert_eq!(found().name.as_str(), "outer");
    lab.processes.set_ancestors(&[8]);
    assert_eq!(found().source, IdentitySource::Anonymous);
}

#[test]
fn a_name_belongs_to_one_living_process() {
    let lab = Lab::new();
    let name = "agent".parse().unwrap();
    lab.processes.set(7, ProcessState::Running);
    lab.processes.set(8, ProcessState::Running);
    lab.engine.register(&name, Some(7)).unwrap();
    lab.engine.register(&name, Some(7)).unwrap();
    let refused = lab.engine.register(&name, Some(8)).unwrap_err();
    assert!(matches!(refused, SessionError::Taken(_)), "{refused}");
    lab.processes.set(7, ProcessState::Gone);
    lab.engine.register(&name, Some(8)).unwrap();
}
