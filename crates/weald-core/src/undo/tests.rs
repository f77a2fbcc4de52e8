//! Histories, and what of them can be taken back.

use super::*;
use crate::event::Change;
use crate::landing::Cleanup;
use crate::task::Task;
use crate::tree::Base;

struct Log(Vec<Event>);

impl Log {
    fn add(&mut self, change: Change) -> Seq {
        let seq = Seq(self.0.len() as u64 + 1);
        let event = Event::stamp(change, seq, Timestamp::UNIX_EPOCH, None);
        self.0.push(event);
        seq
    }

    fn tree(&mut self, kind: EventKind, id: u64) -> Seq {
        self.add(Change::tree(kind, tree(id)))
    }

    fn landing(&mut self, kind: EventKind, id: u64, of: u64, reverts: Option<u64>) -> Seq {
        self.landing_of(kind, id, of, reverts, None)
    }

    fn landing_of(
        &mut self,
        kind: EventKind,
        id: u64,
        of: u64,
        reverts: Option<u64>,
        cause: Option<RevertCause>,
    ) -> Seq {
        let mut landing = Landing::new(LandingId(id), &tree(of), "h".to_owned(), epoch());
        landing.reverts = reverts.map(LandingId);
        landing.revert_cause = cause;
        landing.cleanup = Some(Cleanup {
            directory: "trashed".to_owned(),
            ..Cleanup::default()
        });
        self.add(Change::landing(kind, landing))
    }

    fn undone(&mut self, of: Seq) -> Seq {
        self.add(Change::fact(EventKind::OPERATION_UNDONE).part_of(Some(of)))
    }

    /// The kinds that can be undone, newest first, each with how many trees come back.
    fn stack(&self) -> Vec<(&str, u64, usize)> {
        let mut found: Vec<_> = operations(&self.0)
            .into_iter()
            .map(|operation| {
                let event = self.0[operation.event.0 as usize - 1].kind.as_str();
                (event, operation.event.0, parts(&operation.way).count())
            })
            .collect();
        found.reverse();
        found
    }
}

fn epoch() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn tree(id: u64) -> Tree {
    let base = Base {
        reference: "main".to_owned(),
        commit: "c".to_owned(),
    };
    let name = format!("t{id}").parse().unwrap();
    Tree::new(TreeId(id), name, "/t".into(), base, epoch())
}

fn task() -> Task {
    Task::new(TaskId::Number(7), "a", epoch())
}

#[test]
fn removals_are_undone_one_after_the_other() {
    let mut log = Log(Vec::new());
    log.tree(EventKind::TREE_KEPT, 1);
    let first = log.tree(EventKind::TREE_TRASHED, 1);
    let second = log.tree(EventKind::TREE_TRASHED, 2);
    assert_eq!(
        log.stack(),
        [("tree.trashed", second.0, 1), ("tree.trashed", first.0, 1)]
    );
    let restored = log.tree(EventKind::TREE_RESTORED, 2);
    log.undone(second);
    assert_eq!(log.stack(), [("tree.trashed", first.0, 1)]);
    let refused = |seq| operation_at(&log.0, seq).unwrap_err();
    assert_eq!(refused(second), UndoRefusal::IsUndone(second));
    assert_eq!(refused(restored), UndoRefusal::IsUndoing(restored));
    assert_eq!(refused(Seq(99)), UndoRefusal::NoEvent(Seq(99)));
    assert!(matches!(refused(Seq(1)), UndoRefusal::NotUndoable(..)));
}

#[test]
fn a_clean_up_is_one_operation_and_each_tree_of_it_can_be_named() {
    let mut log = Log(Vec::new());
    let begun = log.add(Change::fact(EventKind::CLEAN_BEGUN));
    for id in [1, 2, 3] {
        let change = Change::tree(EventKind::TREE_TRASHED, tree(id));
        log.add(change.part_of(Some(begun)));
    }
    assert_eq!(log.stack(), [("clean.begun", begun.0, 3)]);
    let one = operation_at(&log.0, Seq(3)).unwrap();
    assert!(matches!(&one.way, Way::Restore(trees) if trees[0].id == TreeId(2)));
    // A kill in the middle: the rest still stands.
    log.tree(EventKind::TREE_RESTORED, 1);
    assert_eq!(log.stack(), [("clean.begun", begun.0, 2)]);
    let trashed = Tree {
        status: TreeStatus::Trashed,
        ..tree(2)
    };
    log.add(Change::tree(EventKind::TREE_REMOVE_BEFORE, trashed));
    log.tree(EventKind::TREE_REMOVE_AFTER, 2);
    let left = operation_at(&log.0, begun).unwrap();
    let Way::Restore(trees) = left.way else {
        panic!("{left:?}")
    };
    assert_eq!(
        trees.iter().map(|tree| tree.gone).collect::<Vec<_>>(),
        [true, false]
    );
    log.undone(begun);
    assert_eq!(log.stack(), []);
    // One that took nothing is nothing.
    log.add(Change::fact(EventKind::CLEAN_BEGUN));
    assert_eq!(log.stack(), []);
}

#[test]
fn what_is_gone_for_good_stands_but_can_be_told_apart() {
    let mut log = Log(Vec::new());
    log.tree(EventKind::TREE_KEPT, 1);
    let begun = log.add(Change::fact(EventKind::CLEAN_BEGUN));
    // Its directory was gone, so its record is all that went.
    let forgotten = Change::tree(EventKind::TREE_REMOVE_AFTER, tree(1)).part_of(Some(begun));
    let forgotten = log.add(forgotten);
    assert_eq!(log.stack(), [("clean.begun", begun.0, 1)]);
    assert!(operations(&log.0)[0].is_gone());
    assert!(operation_at(&log.0, forgotten).unwrap().is_gone());
    let trashed = Tree {
        status: TreeStatus::Trashed,
        ..tree(2)
    };
    log.tree(EventKind::TREE_CREATE_AFTER, 2);
    log.tree(EventKind::TREE_UNLOCKED, 2);
    log.add(Change::tree(EventKind::TREE_TRASHED, trashed));
    assert_eq!(log.stack().len(), 3);
    assert!(!operations(&log.0)[2].is_gone());
    log.tree(EventKind::TREE_REMOVE_AFTER, 2);
    let left = operations(&log.0);
    assert!(left.iter().all(Operation::is_gone), "{left:?}");
    assert_eq!(left.len(), 2, "the lock of a tree that is gone is nothing");
}

#[test]
fn a_lock_that_weald_opened_is_not_taken_back() {
    let mut log = Log(Vec::new());
    let created = log.tree(EventKind::TREE_CREATE_AFTER, 1);
    let locked = |reason: &str| Tree {
        locked: Some(TreeLock {
            owner: "me".to_owned(),
            reason: reason.to_owned(),
        }),
        ..tree(1)
    };
    let lock = |reason| Change::tree(EventKind::TREE_LOCKED, locked(reason));
    log.add(lock("profile").part_of(Some(created)));
    assert_eq!(log.stack(), []);
    let first = log.add(lock("one"));
    let second = log.add(lock("two"));
    assert_eq!(log.stack().len(), 2);
    log.add(lock("one").part_of(Some(second)));
    log.undone(second);
    assert_eq!(log.stack(), [("tree.locked", first.0, 0)]);
    // By a sweep, or with a session.
    log.add(Change::tree(EventKind::TREE_UNLOCKED, tree(1)).part_of(Some(second)));
    assert_eq!(log.stack(), []);
}

#[test]
fn a_landing_and_the_removal_after_it_are_one() {
    let mut log = Log(Vec::new());
    let landed = log.landing(EventKind::LANDING_LANDED, 1, 4, None);
    let trashed = log.tree(EventKind::TREE_TRASHED, 4);
    assert_eq!(log.stack().len(), 2, "killed here, each stands alone");
    log.landing(EventKind::LANDING_CLEANED, 1, 4, None);
    assert_eq!(log.stack(), [("landing.landed", landed.0, 1)]);
    let revert = log.landing(EventKind::LANDING_LANDED, 2, 4, Some(1));
    log.landing(EventKind::LANDING_REVERTED, 1, 4, None);
    // Killed before the tree came back: that is what is left to do.
    assert_eq!(log.stack(), [("tree.trashed", trashed.0, 1)]);
    assert_eq!(
        operation_at(&log.0, revert).unwrap_err(),
        UndoRefusal::IsUndoing(revert)
    );
    log.tree(EventKind::TREE_RESTORED, 4);
    assert_eq!(log.stack(), []);
}

#[test]
fn bindings_and_locks_are_undone_while_they_are_as_they_were_left() {
    let mut log = Log(Vec::new());
    log.tree(EventKind::TREE_CREATE_AFTER, 1);
    let unbound = Change::tree(EventKind::TASK_UNBOUND, tree(1)).and_task(task());
    let unbound = log.add(unbound);
    assert_eq!(log.stack(), [("task.unbound", unbound.0, 0)]);
    let lock = TreeLock {
        owner: "me".to_owned(),
        reason: "mine".to_owned(),
    };
    let locked = Tree {
        locked: Some(lock.clone()),
        ..tree(1)
    };
    let locked = log.add(Change::tree(EventKind::TREE_LOCKED, locked));
    let found = operation_at(&log.0, locked).unwrap();
    let before = None;
    assert!(
        matches!(found.way, Way::Lock { before: b, now: Some(n), .. } if b == before && n == lock)
    );
    // What undoing does is no operation.
    let unlocked = Change::tree(EventKind::TREE_UNLOCKED, tree(1)).part_of(Some(locked));
    let unlocked = log.add(unlocked);
    log.undone(locked);
    let refused = operation_at(&log.0, unlocked).unwrap_err();
    assert!(matches!(refused, UndoRefusal::NotUndoable(..)));
    assert_eq!(log.stack(), [("task.unbound", unbound.0, 0)]);
    log.add(Change::tree(EventKind::TASK_BOUND, tree(1)).and_task(task()));
    assert_eq!(log.stack(), []);
}

#[test]
fn a_removal_that_completed_its_task_says_which() {
    let other = Task::new(TaskId::Number(8), "b", epoch());
    let ways = [
        (task(), true, Some(TaskId::Number(7))),
        (task(), false, None),
        (other, true, None),
    ];
    for (completed, is_part, expected) in ways {
        let mut log = Log(Vec::new());
        let trashed = Change::tree(EventKind::TREE_TRASHED, tree(1)).and_task(task());
        let trashed = log.add(trashed);
        let completion = Change::task(EventKind::TASK_COMPLETED, completed);
        log.add(completion.part_of(is_part.then_some(trashed)));
        let [operation] = &operations(&log.0)[..] else {
            panic!("{:?}", log.0)
        };
        let part = parts(&operation.way).next().unwrap();
        assert_eq!(part.completed, expected);
    }
}

#[test]
fn nothing_is_taken_back_by_itself_that_nobody_may_mean() {
    let mut log = Log(Vec::new());
    let me: SessionName = "alice".parse().unwrap();
    let asked =
        |log: &Log, me: Option<&SessionName>| match last_operation(&log.0, |actor| actor == me) {
            Ok(found) => Ok(found.map(|found| found.event)),
            Err(refused) => Err((
                refused.why,
                refused.last.event,
                refused.next.map(|next| next.event),
            )),
        };
    assert_eq!(asked(&log, None), Ok(None));
    let landed = log.landing(EventKind::LANDING_LANDED, 1, 1, None);
    // The removal that follows from a landing is a part of it, and nothing that came after.
    log.tree(EventKind::TREE_TRASHED, 1);
    log.landing(EventKind::LANDING_CLEANED, 1, 1, None);
    assert_eq!(asked(&log, None), Ok(Some(landed)));
    let others = Err((Unasked::Others, landed, Some(landed)));
    assert_eq!(asked(&log, Some(&me)), others);
    let removed = log.tree(EventKind::TREE_TRASHED, 2);
    assert_eq!(asked(&log, None), Ok(Some(removed)));
    // Whatever brought it back: the landing was not the last that was done.
    log.tree(EventKind::TREE_RESTORED, 2);
    let older = Err((Unasked::Older, landed, Some(landed)));
    assert_eq!(asked(&log, None), older);
    let forgotten = log.tree(EventKind::TREE_REMOVE_AFTER, 2);
    let gone = Err((Unasked::Gone, forgotten, Some(landed)));
    assert_eq!(asked(&log, None), gone);
}

#[test]
fn removals_go_one_further_back_by_themselves() {
    let mut log = Log(Vec::new());
    let first = log.tree(EventKind::TREE_TRASHED, 1);
    let second = log.tree(EventKind::TREE_TRASHED, 2);
    log.tree(EventKind::TREE_RESTORED, 2);
    log.undone(second);
    let found = last_operation(&log.0, |actor| actor.is_none()).unwrap();
    assert_eq!(found.map(|found| found.event), Some(first));
}

#[test]
fn u9_a_revert_that_was_asked_for_is_an_operation_and_one_of_an_undo_is_not() {
    let newest = |log: &Log| last_operation(&log.0, |actor| actor.is_none()).unwrap();
    for (cause, is_one) in [
        (Some(RevertCause::Asked), true),
        (Some(RevertCause::Undo), false),
        (Some(RevertCause::Check), false),
        // Records of earlier versions do not say.
        (None, false),
    ] {
        let mut log = Log(Vec::new());
        log.landing(EventKind::LANDING_LANDED, 1, 1, None);
        let event = log.landing_of(EventKind::LANDING_LANDED, 2, 1, Some(1), cause);
        log.landing(EventKind::LANDING_REVERTED, 1, 1, None);
        let found = newest(&log);
        assert_eq!(found.as_ref().map(|one| one.event), is_one.then_some(event));
        let Some(found) = found else { continue };
        assert_eq!(found.to_string(), "landing 2, which reverted landing 1");
        // Taking it back is no operation, and it does not stand any more.
        let undo = Some(RevertCause::Undo);
        log.landing_of(EventKind::LANDING_LANDED, 3, 1, Some(2), undo);
        log.landing(EventKind::LANDING_REVERTED, 2, 1, Some(1));
        assert_eq!(newest(&log), None);
        assert_eq!(
            operation_at(&log.0, event),
            Err(UndoRefusal::IsUndone(event))
        );
    }
}
