//! The rules of a task, as tables.

use weald_core::dependencies::Blockers;
use weald_core::event::EventKind;
use weald_core::id::{MessageId, TaskId, Token};
use weald_core::task::{PlanApproval, Task, TaskStatus};
use weald_core::task_rules::{TaskEdit, TaskInput, TaskRefusal, decide, legal_moves};
use weald_core::{SignedDuration, Timestamp};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn task(status: TaskStatus) -> Task {
    Task {
        status,
        ..Task::new(TaskId::Number(1), "a task", at(0))
    }
}

fn claim(session: &str, blockers: Blockers) -> TaskInput {
    let ttl = SignedDuration::from_secs(60);
    TaskInput::Claim {
        session: session.parse().unwrap(),
        ttl,
        blockers,
    }
}

fn claimed() -> Task {
    decide(
        &task(TaskStatus::Pending),
        claim("alice", Blockers::default()),
        at(0),
    )
    .unwrap()
    .0
}

fn token(number: u64) -> Option<Token> {
    Some(Token(number))
}

#[test]
fn t6_a_claim_needs_a_claimable_status() {
    for status in TaskStatus::ALL {
        let result = decide(&task(status), claim("alice", Blockers::default()), at(1));
        let claimable = matches!(
            status,
            TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::NeedsMerge
        );
        assert_eq!(result.is_ok(), claimable, "{status}");
        match result {
            Ok((task, change)) => {
                assert_eq!(task.status, TaskStatus::InProgress);
                assert_eq!(task.owner, Some("alice".parse().unwrap()));
                assert_eq!(task.lease.as_ref().unwrap().token, Token(1));
                assert_eq!(change.kind, EventKind::TASK_CLAIMED);
            }
            Err(refusal) => assert!(
                matches!(refusal, TaskRefusal::IllegalMove { .. }),
                "{refusal}"
            ),
        }
    }
}

#[test]
fn t6_a_claim_says_what_blocks_and_what_is_missing() {
    let blockers = Blockers {
        open: vec![TaskId::Number(2)],
        missing: vec!["gh-9".parse().unwrap()],
    };
    let refusal = decide(
        &task(TaskStatus::Pending),
        claim("alice", blockers.clone()),
        at(1),
    )
    .unwrap_err();
    assert_eq!(
        refusal,
        TaskRefusal::Waiting {
            task: TaskId::Number(1),
            blockers
        }
    );
    assert_eq!(
        refusal.to_string(),
        "task 1 is waiting for 2 and gh-9 (missing)"
    );
}

#[test]
fn t6_a_live_owner_refuses_and_an_expired_lease_is_taken_over() {
    let held = claimed();
    for second in [0, 59] {
        let refusal = decide(&held, claim("alice", Blockers::default()), at(second)).unwrap_err();
        assert!(
            matches!(refusal, TaskRefusal::Held { .. }),
            "not even by the holder: {refusal}"
        );
    }
    let (taken, change) = decide(&held, claim("bob", Blockers::default()), at(60)).unwrap();
    assert_eq!(change.kind, EventKind::TASK_TAKEN_OVER);
    assert_eq!(
        (taken.token, taken.owner),
        (Token(2), Some("bob".parse().unwrap()))
    );
}

#[test]
fn t6_somebody_who_works_without_a_lease_is_an_owner_too() {
    let started = decide(
        &task(TaskStatus::Pending),
        TaskInput::Start {
            owner: Some("alice".parse().unwrap()),
        },
        at(0),
    );
    let started = started.unwrap().0;
    let refusal = decide(&started, claim("bob", Blockers::default()), at(9)).unwrap_err();
    assert!(matches!(refusal, TaskRefusal::Owned { .. }), "{refusal}");
    assert!(decide(&started, claim("alice", Blockers::default()), at(9)).is_ok());
}

#[test]
fn t6_nobody_takes_a_task_from_whoever_works_on_it() {
    let carol = || TaskInput::Start {
        owner: Some("carol".parse().unwrap()),
    };
    let refusal = decide(&claimed(), carol(), at(1)).unwrap_err();
    assert!(matches!(refusal, TaskRefusal::Held { .. }), "{refusal}");
    let start = TaskInput::Start {
        owner: Some("alice".parse().unwrap()),
    };
    let started = decide(&task(TaskStatus::Pending), start, at(0)).unwrap().0;
    let refusal = decide(&started, carol(), at(1)).unwrap_err();
    assert!(matches!(refusal, TaskRefusal::Owned { .. }), "{refusal}");
    let given_back = decide(&started, TaskInput::Release { token: None }, at(2));
    assert!(decide(&given_back.unwrap().0, carol(), at(3)).is_ok());
}

#[test]
fn a_token_that_never_was_is_not_an_old_one() {
    let renew = TaskInput::Renew {
        token: token(0),
        ttl: SignedDuration::from_secs(60),
    };
    let refusal = decide(&claimed(), renew, at(1)).unwrap_err().to_string();
    assert!(refusal.ends_with("there was no such claim"), "{refusal}");
}

#[test]
fn an_old_token_is_refused_everywhere_and_an_expired_one_is_not() {
    let ttl = SignedDuration::from_secs(60);
    let inputs = |token: Option<Token>| {
        [
            TaskInput::Renew { token, ttl },
            TaskInput::Release { token },
            TaskInput::Complete {
                token,
                report: None,
            },
            TaskInput::Fail {
                token,
                report: None,
            },
        ]
    };
    let taken = decide(&claimed(), claim("bob", Blockers::default()), at(100))
        .unwrap()
        .0;
    for input in inputs(token(1)) {
        let refusal = decide(&taken, input, at(101)).unwrap_err();
        assert!(
            matches!(
                refusal,
                TaskRefusal::StaleToken {
                    current: Token(2),
                    ..
                }
            ),
            "{refusal}"
        );
    }
    for input in inputs(None) {
        let refusal = decide(&taken, input, at(101)).unwrap_err();
        assert!(
            matches!(refusal, TaskRefusal::TokenRequired { .. }),
            "{refusal}"
        );
    }
    for input in inputs(token(1)) {
        assert!(
            decide(&claimed(), input, at(1_000_000)).is_ok(),
            "nobody took it, so its holder may go on"
        );
    }
    let released = decide(&claimed(), TaskInput::Release { token: token(1) }, at(1))
        .unwrap()
        .0;
    let again = decide(&released, claim("bob", Blockers::default()), at(2))
        .unwrap()
        .0;
    assert_eq!(again.token, Token(2), "tokens only grow");
    let refusal = decide(
        &released,
        TaskInput::Renew {
            token: token(1),
            ttl,
        },
        at(2),
    )
    .unwrap_err();
    assert!(
        matches!(refusal, TaskRefusal::StaleToken { .. }),
        "{refusal}"
    );
}

#[test]
fn t8_a_task_is_completed_once_and_only_while_in_progress() {
    for status in TaskStatus::ALL {
        let done = decide(
            &task(status),
            TaskInput::Complete {
                token: None,
                report: None,
            },
            at(1),
        );
        let allowed = matches!(status, TaskStatus::InProgress | TaskStatus::NeedsMerge);
        assert_eq!(done.is_ok(), allowed, "{status}");
    }
    let complete = TaskInput::Complete {
        token: token(1),
        report: Some("ok".into()),
    };
    let (done, change) = decide(&claimed(), complete.clone(), at(5)).unwrap();
    assert_eq!(
        (change.kind, change.token),
        (EventKind::TASK_COMPLETED, token(1))
    );
    assert_eq!((done.closed_at, done.lease.clone()), (Some(at(5)), None));
    assert_eq!(
        done.owner,
        Some("alice".parse().unwrap()),
        "who did it stays known"
    );
    let refusal = decide(&done, complete, at(6)).unwrap_err();
    assert!(
        matches!(refusal, TaskRefusal::IllegalMove { .. }),
        "{refusal}"
    );
}

/// Every input in every state: it moves along a documented edge, or refuses and names the legal ones.
#[test]
fn t11_the_transition_matrix_is_the_documented_one() {
    use TaskStatus::*;
    let inputs: [(TaskInput, &[TaskStatus], TaskStatus); 9] = [
        (
            claim("alice", Blockers::default()),
            &[Pending, InProgress, NeedsMerge],
            InProgress,
        ),
        (
            TaskInput::Start { owner: None },
            &[Pending, NeedsMerge],
            InProgress,
        ),
        (TaskInput::Release { token: None }, &[InProgress], Pending),
        (
            TaskInput::Complete {
                token: None,
                report: None,
            },
            &[InProgress, NeedsMerge],
            Completed,
        ),
        (
            TaskInput::Fail {
                token: None,
                report: None,
            },
            &[InProgress, NeedsMerge],
            Failed,
        ),
        (
            TaskInput::Cancel { reason: None },
            &[Pending, InProgress, NeedsMerge, Blocked, Failed],
            Cancelled,
        ),
        (
            TaskInput::Block { reason: "x".into() },
            &[Pending, InProgress, NeedsMerge],
            Blocked,
        ),
        (TaskInput::NeedMerge, &[InProgress], NeedsMerge),
        (
            TaskInput::Reopen,
            &[NeedsMerge, Blocked, Failed, Completed, Cancelled],
            Pending,
        ),
    ];
    for (input, from, to) in inputs {
        for status in TaskStatus::ALL {
            match decide(&task(status), input.clone(), at(1)) {
                Ok((next, change)) => {
                    assert!(from.contains(&status), "{status} took {input:?}");
                    assert_eq!(next.status, to);
                    assert!(to == status || legal_moves(status).contains(&to));
                    assert_eq!(
                        change.after.task,
                        Some(next),
                        "the event holds the whole record"
                    );
                }
                Err(refusal) => {
                    assert!(
                        !from.contains(&status),
                        "{status} refused {input:?}: {refusal}"
                    );
                    if let TaskRefusal::IllegalMove { legal, .. } = refusal {
                        assert_eq!(legal, legal_moves(status));
                    }
                }
            }
        }
    }
}

#[test]
fn s9_a_plan_gates_completion_until_it_is_approved() {
    let wants = TaskEdit {
        needs_plan: Some(true),
        ..TaskEdit::default()
    };
    let mut task = decide(&claimed(), TaskInput::Edit(Box::new(wants)), at(1))
        .unwrap()
        .0;
    let complete = TaskInput::Complete {
        token: token(1),
        report: None,
    };
    for plan in [PlanApproval::Submitted, PlanApproval::Rejected] {
        let refusal = decide(&task, complete.clone(), at(2)).unwrap_err();
        assert!(
            matches!(refusal, TaskRefusal::PlanNotApproved { .. }),
            "{refusal}"
        );
        task = decide(
            &task,
            TaskInput::Plan {
                state: plan,
                message: MessageId(1),
            },
            at(2),
        )
        .unwrap()
        .0;
    }
    task = decide(
        &task,
        TaskInput::Plan {
            state: PlanApproval::Approved,
            message: MessageId(1),
        },
        at(3),
    )
    .unwrap()
    .0;
    assert!(decide(&task, complete, at(4)).is_ok());
}

#[test]
fn words_are_checked() {
    let edit = |edit: TaskEdit| {
        decide(
            &task(TaskStatus::Pending),
            TaskInput::Edit(Box::new(edit)),
            at(1),
        )
    };
    for bad in [
        "",
        "  ",
        "a\nb",
        "a\0b",
        "pay \u{202e}100",
        &"x".repeat(501),
    ] {
        let subject = TaskEdit {
            subject: Some(bad.into()),
            ..TaskEdit::default()
        };
        assert_eq!(
            edit(subject).unwrap_err(),
            TaskRefusal::BadSubject,
            "{bad:?}"
        );
    }
    let label = TaskEdit {
        add_labels: vec!["a\u{7}".into()],
        ..TaskEdit::default()
    };
    assert_eq!(edit(label).unwrap_err(), TaskRefusal::BadLabel);
}
