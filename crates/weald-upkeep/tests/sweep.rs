//! The sweep with a clock and a process table that the test turns.

use std::borrow::Cow;
use std::sync::Arc;

use weald_control::engine::{Engine, Settings};
use weald_control::tasks::NewTask;
use weald_core::event::{Change, EventKind};
use weald_core::id::{TaskId, TreeId};
use weald_core::session::ProcessState;
use weald_core::store::{Durability, EventFilter};
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::{Base, Run, Tree, TreeLock, TreeStatus};
use weald_core::{SignedDuration, Timestamp};
use weald_store::MemoryStore;
use weald_testkit::{FakeClock, FakeProcesses};
use weald_upkeep::{Became, LockSweep, Outside, SweepError, SweepLease, Sweeper};

const SWEEPER: u32 = 900;

struct Lab {
    engine: Engine,
    clock: Arc<FakeClock>,
    processes: Arc<FakeProcesses>,
    lease: SweepLease,
}

impl Lab {
    /// A tree that `owner` locked for a task that is in progress.
    fn new(owner: &str) -> Self {
        let (clock, processes) = (FakeClock::new(), FakeProcesses::new());
        let store = MemoryStore::new(clock.clone());
        let engine = Engine::new(Box::new(store), processes.clone(), Settings::default());
        processes.set(SWEEPER, ProcessState::Running);
        let me = weald_core::session::ProcessTable::identify(processes.as_ref(), SWEEPER).unwrap();
        let lease = Sweeper(&engine)
            .take_maintenance(me, SignedDuration::from_hours(24 * 365))
            .unwrap();
        let lab = Self {
            engine,
            clock,
            processes,
            lease,
        };
        let new = NewTask {
            subject: "a task".into(),
            ..NewTask::default()
        };
        lab.engine.add_task(None, new).unwrap();
        lab.put_tree(|tree| {
            tree.task = Some(TaskId::Number(1));
            tree.locked = Some(TreeLock {
                owner: owner.into(),
                reason: "task 1".into(),
            });
        });
        lab
    }

    fn put_tree(&self, edit: impl FnOnce(&mut Tree)) {
        let mut tree = self.tree().unwrap_or_else(|| {
            let base = Base {
                reference: "main".into(),
                commit: "0".repeat(40),
            };
            Tree {
                status: TreeStatus::Active,
                ..Tree::new(
                    TreeId(1),
                    "a".parse().unwrap(),
                    "/a".into(),
                    base,
                    self.engine.now().unwrap(),
                )
            }
        });
        edit(&mut tree);
        self.record(Change::tree(EventKind::TREE_REPAIRED, tree));
    }

    fn record(&self, change: Change) {
        let mut tx = self.engine.store().write(Durability::Process).unwrap();
        tx.record(None, change).unwrap();
        tx.commit().unwrap();
    }

    fn tree(&self) -> Option<Tree> {
        let read = self.engine.store().read().unwrap();
        read.tree_by_id(TreeId(1)).unwrap()
    }

    /// Closes the task now, or opens it again.
    fn set_task(&self, status: TaskStatus) {
        let read = self.engine.store().read().unwrap();
        let task = read.task(&TaskId::Number(1)).unwrap().unwrap();
        let now = read.now();
        drop(read);
        self.record(Change::task(
            EventKind::TASK_EDITED,
            Task {
                status,
                closed_at: status.is_closed().then_some(now),
                ..task
            },
        ));
    }

    fn pass(&self, hours: i64) {
        self.clock.advance(SignedDuration::from_hours(hours));
    }

    fn cycle(&self) -> LockSweep {
        self.clock.advance(SignedDuration::from_mins(1));
        let cycle = SignedDuration::from_mins(1);
        Sweeper(&self.engine)
            .sweep_locks(cycle, Some(&self.lease), &|_| Outside::default())
            .unwrap()
    }

    /// What the cycle did with the one lock.
    fn outcome(&self) -> Cow<'static, str> {
        let swept = self.cycle();
        match (swept.unlocked.len(), swept.marked.len(), swept.kept.first()) {
            (1, 0, None) => "unlocked".into(),
            (0, 1, None) => "marked".into(),
            (0, 0, Some(kept)) => kept.code.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn kinds(&self) -> Vec<String> {
        let read = self.engine.store().read().unwrap();
        let all = read.events(&EventFilter::default()).unwrap();
        all.iter().map(|event| event.kind.to_string()).collect()
    }
}

#[test]
fn l9_cycle_one_marks_and_cycle_two_unlocks() {
    let lab = Lab::new("weald");
    assert_eq!(lab.outcome(), "task_open");
    lab.set_task(TaskStatus::Completed);
    lab.pass(23);
    assert_eq!(lab.outcome(), "closed_lately", "at 23 hours nothing");
    assert_eq!(lab.tree().unwrap().unlock_marked, None);
    lab.pass(1);
    let used = lab.tree().unwrap().last_used_at;
    assert_eq!(lab.outcome(), "marked");
    assert!(lab.tree().unwrap().locked.is_some());
    assert_eq!(lab.outcome(), "unlocked");
    let tree = lab.tree().unwrap();
    assert_eq!((tree.locked, tree.unlock_marked), (None, None));
    assert_eq!(tree.last_used_at, used, "a sweep is nobody's work");
    assert!(
        lab.kinds()
            .ends_with(&["tree.unlock_marked".into(), "tree.unlocked".into()])
    );
}

#[test]
fn l9_reopening_between_cycles_resets() {
    let lab = Lab::new("weald");
    lab.set_task(TaskStatus::Completed);
    lab.pass(25);
    assert_eq!(lab.outcome(), "marked");
    lab.set_task(TaskStatus::Pending);
    assert_eq!(lab.outcome(), "task_open");
    lab.set_task(TaskStatus::Cancelled);
    assert_eq!(lab.outcome(), "closed_lately");
    lab.pass(25);
    assert_eq!(lab.outcome(), "marked", "the old mark does not count");
    // Somebody locks it anew, for whatever reason.
    lab.put_tree(|tree| {
        let lock = TreeLock {
            owner: "weald".into(),
            reason: "mine".into(),
        };
        let input = weald_core::tree_rules::TreeInput::Lock(lock);
        *tree = weald_core::tree_rules::decide(tree, input, Timestamp::UNIX_EPOCH)
            .unwrap()
            .0;
    });
    assert_eq!(lab.outcome(), "marked", "another lock, another mark");
    assert_eq!(lab.outcome(), "unlocked");
}

#[test]
fn l9_a_call_a_moment_later_is_no_second_cycle() {
    let lab = Lab::new("weald");
    lab.set_task(TaskStatus::Completed);
    lab.pass(25);
    assert_eq!(lab.outcome(), "marked");
    let swept = Sweeper(&lab.engine)
        .sweep_locks(SignedDuration::from_mins(1), Some(&lab.lease), &|_| {
            Outside::default()
        })
        .unwrap();
    assert_eq!(swept.kept[0].code, "marked");
    assert!(lab.tree().unwrap().locked.is_some());
}

#[test]
fn l10_only_proven_death_opens_a_lock() {
    for (state, expected) in [
        (ProcessState::Running, "alive"),
        (ProcessState::Unknown, "unknown"),
        (ProcessState::Gone, "marked"),
    ] {
        // Who locked it, who works in it, and what runs in it.
        let owner = Lab::new("alice");
        let visitor = Lab::new("weald");
        let runner = Lab::new("weald");
        for lab in [&owner, &visitor] {
            lab.processes.set(7, ProcessState::Running);
            let alice = "alice".parse().unwrap();
            lab.engine.register(&alice, Some(7)).unwrap();
        }
        let (alice, a) = ("alice".parse().unwrap(), "a".parse().unwrap());
        visitor.engine.heartbeat(&alice, None, Some(a)).unwrap();
        runner.processes.set(7, ProcessState::Running);
        let table: &dyn weald_core::session::ProcessTable = runner.processes.as_ref();
        let process = table.identify(7).unwrap();
        runner.put_tree(|tree| {
            tree.runs.push(Run {
                session: None,
                process,
                level: "full".into(),
                program: "make".into(),
                started_at: tree.created_at,
            });
        });
        for (place, lab) in [("owner", owner), ("visitor", visitor), ("runner", runner)] {
            lab.set_task(TaskStatus::Completed);
            lab.pass(30);
            lab.processes.set(7, state);
            assert_eq!(lab.outcome(), expected, "{place} {state:?}");
        }
    }
}

#[test]
fn l10_an_owner_that_nobody_knows_keeps_its_lock() {
    for owner in ["somebody", "a person!"] {
        let lab = Lab::new(owner);
        lab.set_task(TaskStatus::Completed);
        lab.pass(1000);
        assert_eq!(lab.outcome(), "unknown", "{owner}");
    }
}

#[test]
fn l11_who_lost_the_lease_changes_nothing() {
    let lab = Lab::new("weald");
    lab.set_task(TaskStatus::Completed);
    lab.pass(24 * 366);
    lab.processes.set(901, ProcessState::Running);
    let table: &dyn weald_core::session::ProcessTable = lab.processes.as_ref();
    let other = table.identify(901).unwrap();
    let ttl = SignedDuration::from_mins(30);
    let theirs = Sweeper(&lab.engine).take_maintenance(other, ttl).unwrap();
    let late = Sweeper(&lab.engine)
        .sweep_locks(ttl, Some(&lab.lease), &|_| Outside::default())
        .unwrap_err();
    assert!(matches!(late, SweepError::Refused(_)), "{late}");
    assert!(
        Sweeper(&lab.engine)
            .sweep_sessions(Some(&lab.lease))
            .is_err()
    );
    assert!(Sweeper(&lab.engine).renew_maintenance(&lab.lease).is_err());
    assert_eq!(lab.tree().unwrap().unlock_marked, None);
    Sweeper(&lab.engine).renew_maintenance(&theirs).unwrap();
    Sweeper(&lab.engine).release_maintenance(&theirs).unwrap();
}

#[test]
fn l9_leases_and_sessions_of_the_dead_end() {
    let lab = Lab::new("weald");
    let claim = |name: &str, pid: Option<u32>| {
        if let Some(pid) = pid {
            lab.processes.set(pid, ProcessState::Running);
        }
        let name = name.parse().unwrap();
        lab.engine.register(&name, pid).unwrap();
        let new = NewTask {
            subject: "work".into(),
            ..NewTask::default()
        };
        let id = lab.engine.add_task(None, new).unwrap().id;
        lab.engine.claim(&name, Some(&id), None).unwrap();
        id
    };
    let gone = claim("gone", Some(7));
    let alive = claim("alive", Some(8));
    let unknown = claim("unknown", Some(9));
    lab.processes.set(7, ProcessState::Gone);
    lab.processes.set(9, ProcessState::Unknown);
    let early = Sweeper(&lab.engine)
        .sweep_sessions(Some(&lab.lease))
        .unwrap();
    assert_eq!(
        (early.leases.len(), early.sessions.len()),
        (0, 0),
        "{early:?}"
    );
    lab.pass(1);
    let dry = Sweeper(&lab.engine).sweep_sessions(None).unwrap();
    let swept = Sweeper(&lab.engine)
        .sweep_sessions(Some(&lab.lease))
        .unwrap();
    assert_eq!(dry, swept, "a dry run says what is done");
    assert_eq!(swept.leases, std::slice::from_ref(&gone));
    let became: Vec<_> = swept
        .sessions
        .iter()
        .map(|swept| (swept.session.as_str(), swept.became))
        .collect();
    assert_eq!(
        became,
        [("gone", Became::Ended), ("unknown", Became::Stale)]
    );
    let status = |id| lab.engine.task(id).unwrap().task.status;
    assert_eq!(status(&gone), TaskStatus::Pending);
    assert_eq!(status(&alive), TaskStatus::InProgress);
    assert_eq!(status(&unknown), TaskStatus::InProgress);
    let again = Sweeper(&lab.engine)
        .sweep_sessions(Some(&lab.lease))
        .unwrap();
    assert!(
        again.sessions.is_empty() && again.leases.is_empty(),
        "{again:?}"
    );
    let kinds = lab.kinds();
    for kind in ["task.released", "session.ended", "session.stale"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind}");
    }
    // Whoever is heard of again, and falls silent again, is told again.
    lab.engine
        .heartbeat(&"unknown".parse().unwrap(), None, None)
        .unwrap();
    lab.pass(1);
    let later = Sweeper(&lab.engine)
        .sweep_sessions(Some(&lab.lease))
        .unwrap();
    assert_eq!(later.sessions.len(), 1, "{later:?}");
}
