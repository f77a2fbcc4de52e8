//! Workers: each ready task is done once, whoever takes it; they end when told to, or when nothing is left.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use weald_testkit::{Answer, TestEnv};

use crate::agents_dying::{agents, assert_clean, log, status, until, work};
use crate::trees_remove::repository;

fn worker(env: &TestEnv, name: &str, idle: &str, steps: &[&str]) -> Child {
    let args = ["worker", "--name", name, "--idle-timeout", idle];
    let mut command = work(env, &args, steps);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn ended(child: Child) -> Answer {
    Answer::of(child.wait_with_output().unwrap())
}

fn ask_to_shut_down(env: &TestEnv, name: &str) -> u64 {
    let args = [
        "msg",
        "send",
        name,
        "enough",
        "--type",
        "shutdown",
        "--session",
        "boss",
    ];
    env.ok(&args)["messages"][0]["id"].as_u64().unwrap()
}

/// What the one who asked finds in the inbox.
fn assert_answered(env: &TestEnv) {
    let inbox = env.ok(&["msg", "inbox", "--session", "boss"]);
    let reply = &inbox["messages"][0];
    assert_eq!(reply["type"], json!("shutdown_reply"), "{inbox:#}");
}

#[test]
fn s6_two_workers_do_three_tasks_each_once() {
    let env = repository();
    for task in ["one", "two", "three"] {
        env.ok(&["task", "add", task]);
    }
    let steps = ["append f-$WEALD_TASK $WEALD_SESSION", "sleep 0.2"];
    let [alice, bob] = ["alice", "bob"].map(|name| worker(&env, name, "500ms", &steps));
    let said = [ended(alice), ended(bob)];
    assert!(said.iter().all(|answer| answer.code == 0), "{said:#?}");
    let lines: usize = said
        .iter()
        .map(|answer| answer.stdout.lines().count())
        .sum();
    assert_eq!((lines, agents(&env).len()), (3, 3), "{said:#?}");
    for task in 1..=3 {
        assert_eq!(status(&env, &task.to_string()), "completed");
        let file = env.git(&["show", &format!("main:f-{task}")]);
        assert_eq!(file.lines().count(), 1, "{file}");
    }
    assert_clean(&env);
}

#[test]
fn s6_an_idle_worker_ends_by_itself() {
    let env = repository();
    let started = Instant::now();
    assert_eq!(ended(worker(&env, "alice", "300ms", &["say no"])).code, 0);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn s6_a_shutdown_is_answered_by_an_idle_worker() {
    let env = repository();
    let idle = worker(&env, "alice", "60s", &["say no"]);
    until("she is there", || {
        env.weald(&["session", "list"]).stdout.contains("alice")
    });
    ask_to_shut_down(&env, "alice");
    assert_eq!(ended(idle).code, 0);
    assert_answered(&env);
}

#[test]
fn s6_a_shutdown_is_answered_by_a_worker_at_work() {
    let env = repository();
    env.ok(&["task", "add", "one"]);
    env.ok(&["task", "add", "two"]);
    let go = env.repo().join("go.log");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let busy = worker(
        &env,
        "alice",
        "60s",
        &["say works", &wait, "write f-$WEALD_TASK x"],
    );
    until("she works", || {
        agents(&env)
            .iter()
            .any(|agent| log(&env, agent).contains("works"))
    });
    ask_to_shut_down(&env, "alice");
    fs::write(&go, "").unwrap();
    assert_eq!(ended(busy).code, 0);
    assert_answered(&env);
    // The next task is not begun.
    assert_eq!(
        (agents(&env).len(), status(&env, "2").as_str()),
        (1, "pending")
    );
    until("its processes are gone", || env.processes().is_empty());
}

#[test]
fn s6_s12_a_worker_whose_agent_is_stopped_goes_on_with_another_task() {
    for flag in [None, Some("--release")] {
        let env = repository();
        env.ok(&["task", "add", "one"]);
        env.ok(&["task", "add", "two"]);
        let wait = "until [ $WEALD_TASK != 1 ]; do sleep 0.02; done";
        let steps = ["say works", wait, "write f-$WEALD_TASK x"];
        let busy = worker(&env, "alice", "500ms", &steps);
        until("she works", || {
            agents(&env)
                .iter()
                .any(|agent| log(&env, agent).contains("works"))
        });
        env.ok(&[&["agent", "stop", "a1"][..], flag.as_slice()].concat());
        let said = ended(busy);
        assert_eq!(
            (said.code, said.stdout.lines().count()),
            (0, 2),
            "{said:#?}"
        );
        let expected = if flag.is_some() { "pending" } else { "failed" };
        assert_eq!(
            (status(&env, "1").as_str(), status(&env, "2").as_str()),
            (expected, "completed")
        );
        assert_eq!(agents(&env).len(), 2, "it is left to others");
    }
}

#[test]
fn s6_s15_a_killed_worker_comes_back_under_its_name_and_waits_for_its_agent() {
    let env = repository();
    env.ok(&["task", "add", "one"]);
    env.ok(&["task", "add", "two"]);
    let go = env.repo().join("go.log");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let steps = ["say works", &wait, "append f-$WEALD_TASK x"];
    let mut first = worker(&env, "alice", "300ms", &steps);
    until("she works", || {
        agents(&env)
            .iter()
            .any(|agent| log(&env, agent).contains("works"))
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let second = worker(&env, "alice", "300ms", &steps);
    until("she is back", || {
        let session = env.ok(&["session", "list"]);
        session["sessions"][0]["process"]["pid"] == json!(second.id())
    });
    assert_eq!(agents(&env).len(), 1, "one thing at a time");
    fs::write(&go, "").unwrap();
    let done = ended(second);
    assert_eq!(
        (done.code, done.stdout.lines().count()),
        (0, 2),
        "{done:#?}"
    );
    for task in ["1", "2"] {
        assert_eq!(env.git(&["show", &format!("main:f-{task}")]), "x\n");
    }
    assert_clean(&env);
}

#[test]
fn s6_a_worker_tells_what_it_begins_and_that_it_waits() {
    let env = repository();
    env.ok(&["task", "add", "Two words"]);
    let args = [
        "worker",
        "--name",
        "alice",
        "--idle-timeout",
        "300ms",
        "--",
        "true",
    ];
    let answer = env.weald(&args);
    let begun = "alice: started task 1 (a1 in two-words)";
    assert_eq!(answer.stderr.matches(begun).count(), 1, "{answer:#?}");
    let waits = answer.stderr.matches("alice: waiting for work").count();
    assert_eq!(waits, 1, "{answer:#?}");
}

#[test]
fn s6_a_worker_without_its_driver_begins_nothing_and_blocks_nobodys_task() {
    let env = repository();
    env.ok(&["task", "add", "Ready"]);
    let mut worker = env.weald_command(&["worker", "--name", "w", "--driver", "claude", "--json"]);
    let answer = Answer::of(worker.env("PATH", env.plain_path()).output().unwrap());
    assert_eq!(answer.error_code(), "driver_not_installed", "{answer:#?}");
    let task = env.ok(&["task", "show", "1"])["task"].clone();
    assert_eq!(task["status"], "pending");
    assert_eq!(
        env.ok(&["session", "list"])["sessions"],
        serde_json::json!([])
    );
}

#[test]
fn s6_a_worker_stops_at_a_dirty_main_and_leaves_every_task_ready() {
    let env = repository();
    env.ok(&["init", "--profile", "jean-claude"]);
    for subject in ["one", "two", "three"] {
        env.ok(&["task", "add", subject]);
    }
    fs::write(env.repo().join("config.py"), "dirty\n").unwrap();
    let idle = ["--idle-timeout", "200ms", "--json", "--", "true"];
    let answer = env.weald(&[&["worker", "--name", "w"][..], &idle].concat());
    assert_eq!(answer.error_code(), "main_dirty", "{answer:#?}");
    for task in ["1", "2", "3"] {
        assert_eq!(status(&env, task), "pending");
    }
}

#[test]
fn s5_nobody_takes_a_name_that_weald_gives() {
    let env = repository();
    for name in ["weald", "a7", "12", "race-1", "phase-x", "anon-1"] {
        for args in [
            &["work", "Do it", "--name", name, "--", "true"][..],
            &[
                "worker",
                "--name",
                name,
                "--idle-timeout",
                "1s",
                "--",
                "true",
            ],
            &["session", "register", name],
        ] {
            env.refused(args, 2, "name_reserved");
        }
    }
    assert_eq!(env.ok(&["task", "list"])["tasks"], json!([]));
}
