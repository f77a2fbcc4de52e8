//! What doctor takes for a leftover in the workshop, and what it leaves to whoever works with it.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::trees_remove::{grow, repository};

/// Neither a process nor a tree has this number.
const NOBODY: &str = "999999999";

#[test]
fn l15_locks_of_trees_are_no_processes_and_leftovers_need_no_hour() {
    let env = repository();
    for name in ["a", "b", "c", "d"] {
        grow(&env, name, "sealed");
    }
    let workshop = env.private().join("workshop");
    let me = std::process::id();
    let mut kept: Vec<String> = (1..=4)
        .flat_map(|id| {
            [
                format!("snapshot-{id}"),
                format!("setup-{id}.lock"),
                format!("recreate-{id}.lock"),
            ]
        })
        .collect();
    kept.extend([
        format!("visit-{me}-x"),
        format!("registration-{me}-a"),
        format!("snapshot-{NOBODY}"),
    ]);
    let gone = [
        format!("index-{NOBODY}"),
        format!("setup-{NOBODY}.lock"),
        format!("visit-{NOBODY}-x"),
        format!("registration-{NOBODY}-a"),
        format!("branch-{NOBODY}"),
        "index-1".to_owned(),
        "something".to_owned(),
    ];
    let hours_ago = SystemTime::now() - Duration::from_secs(7200);
    for name in kept.iter().chain(&gone) {
        File::create(workshop.join(name)).unwrap();
    }
    for name in kept.iter().chain(["something".to_owned()].iter()) {
        File::options()
            .write(true)
            .open(workshop.join(name))
            .unwrap()
            .set_modified(hours_ago)
            .unwrap();
    }
    // Somebody holds the lock of a tree that is gone.
    let held = File::open(workshop.join(format!("snapshot-{NOBODY}"))).unwrap();
    held.lock().unwrap();
    let answer = env.weald(&["doctor", "--fix", "--json"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    for name in &kept {
        assert!(
            workshop.join(name).exists(),
            "{name} was deleted: {answer:#?}"
        );
    }
    for name in &gone {
        assert!(!workshop.join(name).exists(), "{name} is left");
    }
    held.unlock().unwrap();
    env.weald(&["doctor", "--fix"]);
    assert!(fs::metadata(workshop.join(format!("snapshot-{NOBODY}"))).is_err());
}
