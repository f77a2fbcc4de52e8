//! kill -9 at any moment: what was acknowledged is there, and the log explains the state.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use weald_app::SystemClock;
use weald_core::store::Store;
use weald_store::SqliteStore;
use weald_testkit::{TestEnv, assert_log_explains_state, full_scale};

use crate::env;

/// Starts an addition and kills it after `delay`; true if it was acknowledged before.
fn add_and_kill(env: &TestEnv, subject: &str, delay: Duration) -> bool {
    let mut command = env.weald_command(&["task", "add", subject]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(delay);
    // A child that is done already can't be killed, and that is fine.
    let _ = child.kill();
    child.wait_with_output().unwrap().stdout.ends_with(b"\n")
}

#[test]
fn t12_kill_nine_loses_no_acknowledged_write() {
    let env = env();
    env.ok(&["task", "add", "before"]);
    let writes = if full_scale() { 500 } else { 150 };
    let mut acknowledged = BTreeSet::from(["before".to_owned()]);
    let mut killed = 0;
    for write in 0..writes {
        let subject = format!("write {write}");
        // From at once to after the end, so that every part of a write meets a kill.
        let delay = Duration::from_micros(write % 60 * 250);
        match add_and_kill(&env, &subject, delay) {
            true => drop(acknowledged.insert(subject)),
            false => killed += 1,
        }
    }
    assert!(
        killed > writes / 10,
        "only {killed} of {writes} were killed in time"
    );
    let listed = env.ok(&["task", "list"]);
    let found: BTreeSet<_> = listed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["subject"].as_str().unwrap().to_owned())
        .collect();
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let store = SqliteStore::open(&env.private(), Arc::new(SystemClock)).unwrap();
    assert_log_explains_state(store.read().unwrap().as_ref());
    // The next write makes the journal good.
    env.ok(&["task", "add", "after"]);
    crate::events::assert_journal_is_the_log(&env);
}

#[test]
fn a_database_that_was_never_finished_is_made_again() {
    let env = env();
    std::fs::create_dir_all(env.private()).unwrap();
    for leftover in ["weald.new", "weald.new-wal", "weald.new-shm"] {
        std::fs::write(env.private().join(leftover), "torn").unwrap();
    }
    env.ok(&["task", "add", "works"]);
}

#[test]
fn many_first_commands_at_once_make_one_database() {
    let env = env();
    let started: Vec<_> = (0..16)
        .map(|number| {
            let subject = format!("task {number}");
            env.weald_command(&["task", "add", &subject])
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(env.ok(&["task", "list"])["total"], 16);
}

#[test]
fn a_damaged_or_emptied_database_is_refused_and_never_taken_for_new() {
    let env = env();
    env.ok(&["task", "add", "precious"]);
    let database = env.private().join("weald.db");
    for content in [
        "",
        "not a database at all, but long enough to look like one",
    ] {
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(env.private().join(format!("weald.db{suffix}")));
        }
        std::fs::write(&database, content).unwrap();
        let refused = env.refused(&["task", "list"], 1, "store_damaged");
        assert!(
            refused["error"]["hint"]
                .as_str()
                .unwrap()
                .contains("events.jsonl")
        );
        assert_eq!(
            std::fs::read_to_string(&database).unwrap(),
            content,
            "left as it is"
        );
    }
    // No new one is made beside an old journal.
    std::fs::remove_file(&database).unwrap();
    env.refused(&["task", "add", "again"], 1, "registry_lost");
    assert!(!database.exists());
    env.ok(&["doctor", "--rebuild", "--fix"]);
    assert_eq!(env.ok(&["task", "list"])["tasks"][0]["subject"], "precious");
    env.ok(&["task", "add", "again"]);
    crate::events::assert_journal_is_the_log(&env);
}

#[test]
fn a_held_journal_delays_but_does_not_hang() {
    let env = env();
    env.ok(&["task", "add", "one"]);
    let journal = std::fs::OpenOptions::new()
        .append(true)
        .open(env.private().join("events.jsonl"))
        .unwrap();
    journal.lock().unwrap();
    let answer = env.weald(&["task", "add", "two"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stderr.contains("journal is behind"), "{answer:?}");
    journal.unlock().unwrap();
    env.ok(&["task", "add", "three"]);
    crate::events::assert_journal_is_the_log(&env);
}
