//! The tables of the sweep, and of the end of a session.

use super::*;
use crate::id::TreeId;
use crate::tree::Base;

fn at(hours: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
}

fn tree(mark: Option<UnlockMark>) -> Tree {
    let base = Base {
        reference: "main".into(),
        commit: "0".repeat(40),
    };
    let mut tree = Tree::new(TreeId(1), "a".parse().unwrap(), "/a".into(), base, at(0));
    tree.unlock_marked = mark;
    tree
}

fn task(status: TaskStatus, closed_at: Option<Timestamp>) -> Task {
    let mut task = Task::new(TaskId::Number(1), "a", at(0));
    (task.status, task.closed_at) = (status, closed_at);
    task
}

fn evidence(task: Task, lives: &[Liveness]) -> LockEvidence {
    let witness = |liveness: &Liveness| Witness {
        who: "session alice".into(),
        liveness: *liveness,
    };
    LockEvidence {
        tasks: vec![task],
        witnesses: lives.iter().map(witness).collect(),
        foreign_lock: None,
    }
}

const CYCLE: SignedDuration = SignedDuration::from_mins(1);

/// A task closed at hour 10, everybody dead.
fn stale() -> LockEvidence {
    evidence(task(TaskStatus::Completed, Some(at(10))), &[Liveness::Dead])
}

fn code(verdict: LockVerdict) -> &'static str {
    match verdict {
        LockVerdict::Unlock => "unlock",
        LockVerdict::Mark(_) => "mark",
        LockVerdict::Keep(why) => why.code(),
    }
}

#[test]
fn l9_a_lock_goes_a_day_after_the_closing_and_in_the_second_cycle() {
    let seen = |closed, marked| {
        Some(UnlockMark {
            closed_at: at(closed),
            at: at(marked),
        })
    };
    for (mark, hour, expected) in [
        (None, 33, "closed_lately"),
        (seen(10, 32), 33, "closed_lately"),
        (None, 34, "mark"),
        (seen(10, 34), 34, "marked"),
        (seen(10, 34), 35, "unlock"),
        // Reopened and closed again since: what was seen does not count.
        (seen(5, 34), 35, "mark"),
        // A clock that was turned back.
        (seen(10, 40), 35, "mark"),
    ] {
        let found = judge_lock(&tree(mark.clone()), &stale(), CYCLE, at(hour));
        assert_eq!(code(found), expected, "{mark:?} at hour {hour}");
    }
    let second = tree(seen(10, 34));
    let soon = at(34) + SignedDuration::from_secs(59);
    assert_eq!(code(judge_lock(&second, &stale(), CYCLE, soon)), "marked");
    let next = at(34) + CYCLE;
    assert_eq!(code(judge_lock(&second, &stale(), CYCLE, next)), "unlock");
}

#[test]
fn l9_l10_only_closed_tasks_and_proven_death_open_a_lock() {
    use Liveness::*;
    let marked = || {
        tree(Some(UnlockMark {
            closed_at: at(10),
            at: at(50),
        }))
    };
    let closed = || task(TaskStatus::Completed, Some(at(10)));
    for (evidence, expected) in [
        (evidence(closed(), &[Dead, Dead]), "unlock"),
        (evidence(closed(), &[]), "unlock"),
        (evidence(closed(), &[Dead, Unknown]), "unknown"),
        (evidence(closed(), &[Unknown, Alive]), "alive"),
        (
            evidence(task(TaskStatus::Pending, None), &[Dead]),
            "task_open",
        ),
        (
            evidence(task(TaskStatus::NeedsMerge, Some(at(10))), &[Dead]),
            "task_open",
        ),
        (
            evidence(task(TaskStatus::Cancelled, None), &[Dead]),
            "closed_unknown",
        ),
        (LockEvidence::default(), "no_task"),
        (
            LockEvidence {
                foreign_lock: Some("mine".into()),
                ..stale()
            },
            "git_lock",
        ),
        (
            LockEvidence {
                tasks: vec![closed(), task(TaskStatus::InProgress, None)],
                ..stale()
            },
            "task_open",
        ),
    ] {
        let found = judge_lock(&marked(), &evidence, CYCLE, at(60));
        assert_eq!(code(found), expected, "{evidence:?}");
    }
    let mut leaving = marked();
    leaving.removing = true;
    let found = judge_lock(&leaving, &stale(), CYCLE, at(60));
    assert_eq!(code(found), "removing");
}

#[test]
fn l12_the_end_of_a_session_opens_its_lock_only_if_everything_is_over() {
    let known = |staged, untracked, commits| Contents::Known {
        staged,
        unstaged: 0,
        untracked,
        commits,
        elsewhere: false,
    };
    let statuses = [
        (TaskStatus::Completed, true),
        (TaskStatus::Cancelled, true),
        (TaskStatus::Failed, false),
        (TaskStatus::InProgress, false),
        (TaskStatus::NeedsMerge, false),
        (TaskStatus::Pending, false),
        (TaskStatus::Blocked, false),
    ];
    let contents = [
        (known(0, 0, 0), None),
        (known(1, 0, 0), Some(LockStays::Unlanded)),
        (known(0, 1, 0), Some(LockStays::Unlanded)),
        (known(0, 0, 1), Some(LockStays::Unlanded)),
        (Contents::Unknown("odd".into()), Some(LockStays::Unknown)),
        (Contents::Gone, Some(LockStays::Unknown)),
    ];
    for (is_own, is_in_tree) in [(true, true), (true, false), (false, true), (false, false)] {
        for (status, is_over) in statuses {
            for (contents, keeps) in &contents {
                let facts = EndFacts {
                    is_own,
                    is_in_tree,
                    tasks: vec![task(status, None)],
                    contents: contents.clone(),
                };
                let mut expected = Vec::new();
                expected.extend((!is_own).then_some(LockStays::NotOwn));
                expected.extend((!is_in_tree).then_some(LockStays::Elsewhere));
                expected.extend((!is_over).then_some(LockStays::TaskOpen));
                expected.extend(keeps.clone());
                assert_eq!(why_lock_stays(&facts), expected, "{facts:?}");
            }
        }
    }
    let nobodys = EndFacts {
        is_own: true,
        is_in_tree: true,
        tasks: Vec::new(),
        contents: known(0, 0, 0),
    };
    assert_eq!(why_lock_stays(&nobodys), [LockStays::NoTask]);
}
