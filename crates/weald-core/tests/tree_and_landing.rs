//! The states of trees and landings, and the brackets around what happens on disk.

use proptest::prelude::*;
use weald_core::Timestamp;
use weald_core::event::{Change, EventKind};
use weald_core::id::{LandingId, TreeId};
use weald_core::landing::{Landing, LandingInput, LandingStatus};
use weald_core::landing_rules;
use weald_core::tree::{Base, DirectoryIdentity, Trash, Tree, TreeStatus};
use weald_core::tree_rules::{TreeInput, announce, decide};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn tree(status: TreeStatus) -> Tree {
    let base = Base {
        reference: "main".into(),
        commit: "0".repeat(40),
    };
    Tree {
        status,
        ..Tree::new(
            TreeId(1),
            "fix".parse().unwrap(),
            "/srv/app.weald/fix".into(),
            base,
            NOW,
        )
    }
}

fn identity() -> DirectoryIdentity {
    DirectoryIdentity {
        device: 1,
        inode: 2,
        born: None,
    }
}

fn trash() -> Box<Trash> {
    Box::new(Trash {
        path: "/srv/app.weald/.trash/fix".into(),
        at: NOW,
        tip: None,
        branch_tip: None,
        snapshot: None,
        task: None,
        head: None,
        ports: None,
        status: None,
    })
}

fn inputs() -> Vec<TreeInput> {
    let error = || "git said no".to_owned();
    vec![
        TreeInput::Created {
            identity: identity(),
            registration: "fix".into(),
        },
        TreeInput::CreateFailed { error: error() },
        TreeInput::Keep,
        TreeInput::Landed,
        TreeInput::RemoveBegins { worker: None },
        TreeInput::Trashed(trash()),
        TreeInput::Removed,
        TreeInput::RemoveFailed { error: error() },
        TreeInput::Restored {
            identity: identity(),
            registration: "fix".into(),
            task: None,
            landed: None,
        },
        TreeInput::Broke { error: error() },
        TreeInput::Repaired {
            identity: identity(),
            path: "/srv/elsewhere".into(),
            registration: "fix".into(),
        },
    ]
}

#[test]
fn d18_the_states_of_a_tree_are_the_documented_ones() {
    use TreeStatus::*;
    let there: &[TreeStatus] = &[Active, Kept, Landed, Broken];
    let allowed = |input: &TreeInput| -> (Vec<TreeStatus>, Option<TreeStatus>) {
        match input {
            TreeInput::Created { .. } => (vec![Creating], Some(Active)),
            TreeInput::CreateFailed { .. } => (vec![Creating], Some(Removed)),
            TreeInput::Keep => (vec![Active, Kept, Landed], Some(Kept)),
            TreeInput::Landed => (vec![Active, Kept, Landed], Some(Landed)),
            TreeInput::Trashed(_) => (there.to_vec(), Some(Trashed)),
            TreeInput::Removed => ([there, &[Trashed]].concat(), Some(Removed)),
            TreeInput::RemoveBegins { .. } | TreeInput::RemoveFailed { .. } => {
                ([there, &[Trashed]].concat(), None)
            }
            TreeInput::Restored { .. } => (vec![Trashed], Some(Active)),
            TreeInput::Broke { .. } => (vec![Creating, Active, Kept, Landed], Some(Broken)),
            TreeInput::Repaired { .. } => (there.to_vec(), None),
            _ => unreachable!("only what changes the status is listed"),
        }
    };
    for input in inputs() {
        let (from, to) = allowed(&input);
        for status in TreeStatus::ALL {
            let ends_removal = matches!(
                input,
                TreeInput::Trashed(_) | TreeInput::Removed | TreeInput::RemoveFailed { .. }
            );
            if ends_removal {
                assert!(
                    decide(&tree(status), input.clone(), NOW).is_err(),
                    "nothing began: {input:?}"
                );
            }
            let before = Tree {
                removing: ends_removal,
                ..tree(status)
            };
            match decide(&before, input.clone(), NOW) {
                Ok((next, _)) => {
                    assert!(from.contains(&status), "{status:?} took {input:?}");
                    let mended = matches!(input, TreeInput::Repaired { .. }) && status == Broken;
                    let to = if mended { Some(Active) } else { to };
                    assert_eq!(next.status, to.unwrap_or(status));
                }
                Err(_) => assert!(!from.contains(&status), "{status:?} refused {input:?}"),
            }
        }
    }
}

#[test]
fn d18_a_tree_comes_back_from_the_trash_as_it_stood() {
    use TreeStatus::*;
    for (before, landed, after) in [
        (Active, None, Active),
        (Kept, None, Kept),
        (Landed, Some(LandingId(1)), Landed),
        (Landed, None, Active),
        (Broken, None, Active),
    ] {
        let going = Tree {
            removing: true,
            ..tree(before)
        };
        let (trashed, _) = decide(&going, TreeInput::Trashed(trash()), NOW).unwrap();
        let begins = TreeInput::RemoveBegins { worker: None };
        let (purging, _) = decide(&trashed, begins, NOW).unwrap();
        let failed = TreeInput::RemoveFailed {
            error: "no".to_owned(),
        };
        let (still, _) = decide(&purging, failed, NOW).unwrap();
        let restored = TreeInput::Restored {
            identity: identity(),
            registration: "fix".into(),
            task: None,
            landed,
        };
        let (back, _) = decide(&still, restored, NOW).unwrap();
        assert_eq!(back.status, after, "{before:?} {landed:?}");
    }
}

fn kinds(changes: &[Change]) -> Vec<&str> {
    changes.iter().map(|change| change.kind.as_str()).collect()
}

proptest! {
    /// Whatever comes in whatever order: `after` and `failed` stand behind their `before`, once, and `failed` says why.
    #[test]
    fn p7_after_and_failed_come_only_behind_before(choices in prop::collection::vec(0usize..11, 0..40)) {
        let (mut tree, change) = announce(tree(TreeStatus::Active));
        let mut log = vec![change];
        for choice in choices {
            if let Ok((next, change)) = decide(&tree, inputs()[choice].clone(), NOW) {
                tree = next;
                log.push(change);
            }
        }
        let names = kinds(&log);
        prop_assert_eq!(names[0], "tree.create.before");
        let ends = names.iter().filter(|name| matches!(**name, "tree.create.after" | "tree.create.failed"));
        prop_assert!(ends.count() <= 1);
        if let Some(failed) = names.iter().position(|name| *name == "tree.create.failed") {
            prop_assert_eq!(failed, names.len() - 1, "nothing follows a failed creation");
        }
        // Between two beginnings of a removal there is at most one end, and none before the first.
        let mut removing = false;
        for name in &names {
            match *name {
                "tree.remove.before" => removing = true,
                "tree.remove.after" | "tree.remove.failed" | "tree.trashed" => {
                    prop_assert!(removing, "{names:?}");
                    removing = false;
                }
                _ => {}
            }
        }
        for change in &log {
            let told = change.kind.as_str().ends_with(".failed") || change.kind == EventKind::TREE_BROKEN;
            prop_assert_eq!(change.error.is_some(), told, "{}", change.kind);
            prop_assert!(change.after.tree.is_some());
        }
    }
}

#[test]
fn a_landing_moves_forward_only() {
    let base = Base {
        reference: "main".into(),
        commit: "0".repeat(40),
    };
    let tree = Tree::new(TreeId(1), "fix".parse().unwrap(), "/t".into(), base, NOW);
    let landing = |status| Landing {
        status,
        ..Landing::new(LandingId(1), &tree, "1".repeat(40), NOW)
    };
    let test = LandingInput::Test {
        old_tip: "a".into(),
        onto: "a".into(),
        new_tip: "b".into(),
    };
    let (testing, change) =
        landing_rules::decide(&landing(LandingStatus::Queued), test, NOW).unwrap();
    assert_eq!(change.kind, EventKind::LANDING_TESTING);
    assert_eq!(
        (testing.old_tip.as_deref(), testing.new_tip.as_deref()),
        (Some("a"), Some("b"))
    );
    assert!(
        landing_rules::decide(&testing, LandingInput::Land, NOW).is_err(),
        "without an intent nothing moves"
    );
    let queued = landing(LandingStatus::Queued);
    assert!(
        landing_rules::decide(&queued, LandingInput::Land, NOW).is_err(),
        "untested work does not land"
    );
    for done in [
        LandingStatus::Landed,
        LandingStatus::Conflict,
        LandingStatus::Red,
        LandingStatus::Dropped,
    ] {
        for input in [
            LandingInput::Land,
            LandingInput::Requeue,
            LandingInput::Drop,
        ] {
            assert!(
                landing_rules::decide(&landing(done), input, NOW).is_err(),
                "{done:?}"
            );
        }
    }
}

#[test]
fn k14_ports_and_set_up_belong_to_a_tree_that_is_there() {
    use weald_core::ports::PortBlock;
    use weald_core::setup::SetupOutcome;
    let block = PortBlock {
        first: 20_000,
        count: 10,
    };
    let inputs = || {
        [
            TreeInput::Ports(Some(block)),
            TreeInput::SetUp {
                outcome: SetupOutcome::Failed,
                error: Some("exit code 1".into()),
            },
        ]
    };
    for status in TreeStatus::ALL {
        let there = !matches!(
            status,
            TreeStatus::Creating | TreeStatus::Trashed | TreeStatus::Removed
        );
        for input in inputs() {
            let decided = decide(&tree(status), input, NOW);
            assert_eq!(decided.is_ok(), there, "{status:?}");
        }
    }
    let [ports, set_up] = inputs();
    let (tree, change) = decide(&tree(TreeStatus::Active), ports, NOW).unwrap();
    assert_eq!(
        (tree.ports, change.kind),
        (Some(block), EventKind::TREE_PORTS)
    );
    let (tree, change) = decide(&tree, set_up, NOW).unwrap();
    assert_eq!(change.kind, EventKind::TREE_SETUP_FAILED);
    assert_eq!(change.error.as_deref(), Some("exit code 1"));
    let (tree, _) = decide(&tree, TreeInput::RemoveBegins { worker: None }, NOW).unwrap();
    let (tree, _) = decide(&tree, TreeInput::Trashed(trash()), NOW).unwrap();
    assert_eq!(tree.ports, None, "they are others' to take");
}

#[test]
fn l5_only_work_counts_as_use() {
    let later = NOW + weald_core::SignedDuration::from_hours(1);
    let moves = |input: TreeInput| {
        let (next, _) = decide(&tree(TreeStatus::Active), input, later).unwrap();
        next.last_used_at == later
    };
    let imported = |head: &str| TreeInput::Imported {
        head: head.repeat(40),
        diverged: false,
    };
    let lock = weald_core::tree::TreeLock {
        owner: "me".into(),
        reason: "mine".into(),
    };
    for used in [
        TreeInput::Entered { from: "/".into() },
        TreeInput::Bind("1".parse().unwrap()),
        TreeInput::Landed,
        imported("1"),
    ] {
        assert!(moves(used.clone()), "{used:?}");
    }
    for unused in [
        // What a look finds again.
        imported("0"),
        TreeInput::Keep,
        TreeInput::Unlock,
        TreeInput::Lock(lock),
        TreeInput::RemoveBegins { worker: None },
        TreeInput::Unbind,
        TreeInput::Ports(None),
    ] {
        assert!(!moves(unused.clone()), "{unused:?}");
    }
}
