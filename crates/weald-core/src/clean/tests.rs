//! Every blocker alone, all of them together, and every reason.

use super::*;

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn ago(hours: i64) -> Option<Timestamp> {
    Some(now() - SignedDuration::from_hours(hours))
}

/// A tree that may go.
fn free() -> CleanFacts {
    CleanFacts {
        status: TreeStatus::Landed,
        task: None,
        at_path: AtPath::Tree,
        path_fits: true,
        inside: Inside::Seen {
            is_dirty: false,
            is_conflicted: false,
        },
        base_known: true,
        work: Work::OnTarget,
        branch_fits: true,
        last_used: ago(25),
        is_shared: false,
        is_referenced: false,
        is_locked: false,
        is_active: false,
        holds_caller: false,
    }
}

fn rules(requires: Requires) -> CleanRules {
    CleanRules {
        requires,
        min_age: DAY,
    }
}

fn found(facts: &CleanFacts) -> Vec<Blocker> {
    judge(facts, &rules(Requires::Landed), now())
        .err()
        .unwrap_or_default()
}

type Worse = fn(&mut CleanFacts);

/// Each makes one thing worse, whatever else holds, and brings its blocker.
const WORSE: [(Blocker, Worse); 14] = [
    (Blocker::BranchSafetyUnknown, |facts| {
        facts.branch_fits = false
    }),
    (Blocker::MissingPath, |facts| {
        facts.at_path = AtPath::Nothing
    }),
    (Blocker::UnsafePath, |facts| facts.path_fits = false),
    (Blocker::BaseUnknown, |facts| facts.base_known = false),
    (Blocker::Shared, |facts| facts.is_shared = true),
    (Blocker::Referenced, |facts| facts.is_referenced = true),
    (Blocker::TooRecent, |facts| facts.last_used = ago(1)),
    (Blocker::BranchNotMerged, |facts| facts.work = Work::Lacking),
    (Blocker::Locked, |facts| facts.is_locked = true),
    (Blocker::Active, |facts| facts.is_active = true),
    (Blocker::Kept, |facts| facts.status = TreeStatus::Kept),
    (Blocker::Cwd, |facts| facts.holds_caller = true),
    (Blocker::Dirty, |facts| {
        set_inside(facts, |is_dirty, _| *is_dirty = true)
    }),
    (Blocker::Conflicted, |facts| {
        set_inside(facts, |_, is_conflicted| *is_conflicted = true)
    }),
];

fn set_inside(facts: &mut CleanFacts, set: impl FnOnce(&mut bool, &mut bool)) {
    if let Inside::Seen {
        is_dirty,
        is_conflicted,
    } = &mut facts.inside
    {
        set(is_dirty, is_conflicted);
    }
}

#[test]
fn l3_each_blocker_alone_keeps_a_tree() {
    let no_rules = |facts: &CleanFacts| judge(facts, &rules(Requires::Landed), now());
    assert_eq!(no_rules(&free()), Ok(Reason::Landed));
    let others: [(Blocker, Worse); 4] = [
        (Blocker::NotGitWorktree, |facts| {
            facts.at_path = AtPath::Other
        }),
        (Blocker::DiffError, |facts| facts.inside = Inside::Unknown),
        (Blocker::AgeUnknown, |facts| facts.last_used = None),
        (Blocker::NotDone, |facts| {
            (facts.status, facts.work) = (TreeStatus::Active, Work::None)
        }),
    ];
    let mut seen: Vec<Blocker> = Vec::new();
    for (blocker, worse) in WORSE.into_iter().chain(others) {
        let mut facts = free();
        worse(&mut facts);
        // A kept tree is landed no more by its status, but still by its commits.
        assert_eq!(found(&facts), [blocker]);
        seen.push(blocker);
    }
    seen.sort_unstable();
    assert_eq!(seen, Blocker::ALL);
    let unknown = CleanFacts {
        work: Work::Unknown,
        ..free()
    };
    assert_eq!(found(&unknown), [Blocker::BranchSafetyUnknown]);
}

#[test]
fn l3_one_more_fact_never_takes_a_blocker_away() {
    for chosen in 0_u32..1 << WORSE.len() {
        let mut facts = free();
        let is_chosen = |place: usize| chosen & (1 << place) != 0;
        for (place, (_, worse)) in WORSE.iter().enumerate() {
            if is_chosen(place) {
                worse(&mut facts);
            }
        }
        let before = found(&facts);
        for (place, (blocker, worse)) in WORSE.iter().enumerate() {
            assert_eq!(before.contains(blocker), is_chosen(place));
            let mut more = facts.clone();
            worse(&mut more);
            let after = found(&more);
            assert!(before.iter().all(|known| after.contains(known)));
        }
    }
}

#[test]
fn l3_the_words_are_the_documented_ones() {
    for blocker in Blocker::ALL {
        assert_eq!(serde_json::json!(blocker), blocker.as_str());
    }
    use Reason::*;
    for reason in [Landed, TaskCompleted, TaskCancelled, Unchanged] {
        assert_eq!(serde_json::json!(reason), reason.as_str());
    }
}

#[test]
fn l5_age_counts_from_the_last_use_and_zero_asks_for_nothing() {
    let at = |last_used, min_age| age_blocker(last_used, min_age, now());
    let soon = Some(now() + SignedDuration::from_secs(1));
    for (last_used, blocker) in [
        (ago(24), None),
        (ago(23), Some(Blocker::TooRecent)),
        (Some(now()), Some(Blocker::TooRecent)),
        (soon, Some(Blocker::AgeUnknown)),
        (None, Some(Blocker::AgeUnknown)),
    ] {
        assert_eq!(at(last_used, DAY), blocker, "{last_used:?}");
        assert_eq!(at(last_used, SignedDuration::ZERO), None);
    }
}

#[test]
fn l6_only_landed_trees_and_those_of_tasks_that_are_over_go() {
    use Requires::*;
    use TaskStatus::{Cancelled, Completed, InProgress};
    use TreeStatus::{Active, Landed as Recorded};
    for (requires, status, task, work, reason) in [
        (Landed, Active, None, Work::None, None),
        (Landed, Active, None, Work::OnTarget, Some(Reason::Landed)),
        (Landed, Recorded, None, Work::None, Some(Reason::Landed)),
        (Landed, Active, Some(InProgress), Work::None, None),
        (
            Landed,
            Active,
            Some(Completed),
            Work::None,
            Some(Reason::TaskCompleted),
        ),
        (
            Landed,
            Active,
            Some(Cancelled),
            Work::None,
            Some(Reason::TaskCancelled),
        ),
        (Merged, Active, Some(Completed), Work::None, None),
        (
            Merged,
            Active,
            Some(InProgress),
            Work::OnTarget,
            Some(Reason::Landed),
        ),
        (
            Complete,
            Active,
            Some(Completed),
            Work::None,
            Some(Reason::TaskCompleted),
        ),
        (Complete, Recorded, Some(InProgress), Work::OnTarget, None),
        (
            Complete,
            Recorded,
            None,
            Work::OnTarget,
            Some(Reason::Landed),
        ),
        (Unchanged, Active, None, Work::None, Some(Reason::Unchanged)),
        (
            Unchanged,
            Active,
            None,
            Work::OnTarget,
            Some(Reason::Landed),
        ),
    ] {
        let facts = CleanFacts {
            status,
            task,
            work,
            ..free()
        };
        let judged = judge(&facts, &rules(requires), now());
        let expected = reason.ok_or(vec![Blocker::NotDone]);
        assert_eq!(judged, expected, "{requires:?} {facts:?}");
    }
    for status in TaskStatus::ALL {
        let facts = CleanFacts {
            status: Active,
            task: Some(status),
            work: Work::None,
            ..free()
        };
        let is_over = matches!(status, Completed | Cancelled);
        assert_eq!(found(&facts).is_empty(), is_over, "{status:?}");
    }
}

#[test]
fn l13_stale_is_longer_than_so_long() {
    let week = SignedDuration::from_hours(24 * 7);
    assert!(is_stale(ago(24 * 8), week, now()));
    assert!(!is_stale(ago(24 * 7), week, now()));
    assert!(!is_stale(None, week, now()));
}
