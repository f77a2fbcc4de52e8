//! A lander that is stopped, killed or outrun: the next one goes on, and the late one can't land.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::{land, landed, rev};
use crate::trees_remove::{commit, grow, repository};

/// A lander that ends or stops itself at a labelled step; its lease is short.
fn lander_at(env: &TestEnv, name: &str, step: &str) -> Child {
    let mut command = env.weald_command(&["land", name, "--json", "--keep"]);
    command
        .env("WEALD_STEP", step)
        .env("WEALD_LANDING_LEASE", "1s")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

pub fn state_of(pid: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit(')').next()?.trim().chars().next()
}

fn until_stopped(child: &Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while state_of(child.id()) != Some('T') {
        assert!(Instant::now() < deadline, "it did not stop");
        thread::sleep(Duration::from_millis(5));
    }
}

fn go_on(child: &Child) {
    let _ = kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::CONT);
}

/// How often a file's content came to the target.
fn times_landed(env: &TestEnv, file: &str) -> usize {
    env.git(&["log", "--format=%h", "main", "--", file])
        .lines()
        .count()
}

#[test]
fn t14_a_lander_stopped_past_its_lease_cannot_land() {
    // Before anything is recorded, with the intent recorded, with the ref locked, with half of the files moved.
    for step in [
        "land.ready",
        "land.intent",
        "land.ref_prepared",
        "land.swapping",
    ] {
        let env = repository();
        for name in ["a", "b"] {
            let path = grow(&env, name, "sealed");
            commit(&env, &path, name, name);
        }
        fs::write(env.repo().join("config.py"), "edited by hand\n").unwrap();
        let late = lander_at(&env, "a", &format!("stop:{step}"));
        until_stopped(&late);
        // Another one takes over when the lease has run out, and lands both: the first is in the queue, too.
        let mut next = env.weald_command(&["land", "b", "--json", "--keep"]);
        let answer = next.env("WEALD_LANDING_LEASE", "1s").output().unwrap();
        let done: Value = serde_json::from_slice(&answer.stdout).unwrap();
        assert_eq!(done["landings"][0]["outcome"], "landed", "{step}: {done:#}");
        let tip = rev(&env, "main");
        go_on(&late);
        let ended = late.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(env.git(&["show", "main:b"]), "b", "{step}");
        // Stopped while it held nothing of the target, it may go on: it learns how its landing ended.
        if ended.status.code().is_some() {
            assert!(
                said.contains("\"outcome\":\"landed\"") || said.contains("nothing_to_land"),
                "{step}: {said}"
            );
        }
        let (_, again) = land(&env, &["a", "--keep"]);
        let outcome = again[0]["outcome"].as_str().unwrap();
        assert!(
            matches!(outcome, "landed" | "nothing_to_land"),
            "{step}: {again:#?}"
        );
        assert_eq!(times_landed(&env, "a"), 1, "{step}");
        assert_eq!(times_landed(&env, "b"), 1, "{step}");
        assert!(
            env.git(&["log", "--format=%H", "main"]).contains(&tip),
            "{step}"
        );
        let file = fs::read_to_string(env.repo().join("config.py")).unwrap();
        assert_eq!(file, "edited by hand\n", "{step}");
        assert_eq!(
            env.git(&["status", "--porcelain"]),
            " M config.py\n",
            "{step}"
        );
    }
}

#[test]
fn m20_the_next_lander_ends_what_a_killed_one_began() {
    for step in [
        "land.intent",
        "land.swapping",
        "land.index_renamed",
        "land.ref_committed",
        "land.moved",
        "land.recorded",
    ] {
        let env = repository();
        env.ok(&["task", "add", "Fix it"]);
        env.ok(&["new", "a", "--task", "1"]);
        commit(&env, &env.root().join("app.weald/a"), "a", "a");
        let path = grow(&env, "b", "sealed");
        commit(&env, &path, "b", "b");
        let killed = lander_at(&env, "a", &format!("kill:{step}"));
        assert_eq!(killed.wait_with_output().unwrap().status.code(), None);
        landed(&env, &["b", "--keep"]);
        assert_eq!(
            (env.git(&["show", "main:a"]), env.git(&["show", "main:b"])),
            ("a".into(), "b".into()),
            "{step}"
        );
        assert_eq!(times_landed(&env, "a"), 1, "{step}");
        assert_eq!(env.git(&["status", "--porcelain"]), "", "{step}");
        // Asked again, it says so, and what follows from a landing follows.
        land(&env, &["a"]);
        assert_eq!(
            env.ok(&["task", "show", "1"])["task"]["status"],
            "completed",
            "{step}"
        );
        assert_eq!(env.weald(&["doctor"]).code, 0, "{step}");
    }
}

#[test]
fn t14_a_landing_under_a_claim_that_was_taken_over_is_refused() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "a", "--task", "1"]);
    commit(&env, &env.root().join("app.weald/a"), "a", "a");
    env.ok(&["task", "claim", "1", "--session", "alice", "--ttl", "1ms"]);
    thread::sleep(Duration::from_millis(5));
    env.ok(&["task", "claim", "1", "--session", "bob"]);
    let before = rev(&env, "main");
    let (code, done) = land(&env, &["a", "--token", "1"]);
    assert_eq!(
        (code, &done[0]["reason"]["code"]),
        (1, &json!("stale_token"))
    );
    assert_eq!(rev(&env, "main"), before);
    let done = landed(&env, &["a", "--token", "2"]);
    assert_eq!(done[0]["cleanup"]["task"], "completed");
}

/// How often somebody took the queue.
fn times_taken(env: &TestEnv) -> usize {
    let told = env.weald(&["events", "--json", "--limit", "1000"]).stdout;
    told.matches("dev.weald.queue.taken").count()
}

#[test]
fn l11_an_expired_landing_lease_is_taken_over_by_exactly_one() {
    let env = repository();
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        let path = grow(&env, name, "sealed");
        commit(&env, &path, name, name);
    }
    let late = lander_at(&env, names[0], "stop:land.ready");
    until_stopped(&late);
    assert_eq!(times_taken(&env), 1);
    // Nothing but time ends its lease.
    thread::sleep(Duration::from_secs(1));
    let mut rivals: Vec<_> = names[1..]
        .iter()
        .map(|name| {
            let mut command = env.weald_command(&["land", name, "--keep"]);
            command.env("WEALD_STEP", "stop:land.ready");
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let stopped = |rivals: &[Child]| {
        let is_stopped = |rival: &&Child| state_of(rival.id()) == Some('T');
        rivals.iter().filter(is_stopped).count()
    };
    let queued = || {
        env.ok(&["queue", "status"])["queue"]
            .as_array()
            .unwrap()
            .len()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while stopped(&rivals) == 0 || queued() < names.len() {
        assert!(Instant::now() < deadline, "nobody took over");
        thread::sleep(Duration::from_millis(5));
    }
    // All of them asked; one is at work, the others wait for it.
    assert_eq!(stopped(&rivals), 1);
    assert_eq!(times_taken(&env), 2);
    // Whoever is at work stops again at each landing.
    while !rivals.is_empty() {
        assert!(Instant::now() < deadline, "they don't end");
        rivals.retain_mut(|rival| match rival.try_wait().unwrap() {
            Some(ended) => {
                assert_eq!(ended.code(), Some(0));
                false
            }
            None => {
                go_on(rival);
                true
            }
        });
        thread::sleep(Duration::from_millis(5));
    }
    go_on(&late);
    late.wait_with_output().unwrap();
    for name in names {
        assert_eq!(times_landed(&env, name), 1, "{name}");
    }
}
