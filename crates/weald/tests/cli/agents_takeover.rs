//! A holder that does not answer any more: whoever takes its task over ends it first, or works elsewhere.

use std::fs;

use rustix::process::Signal;
use weald_core::agent::{Agent, AgentStatus, Outcome};
use weald_testkit::{Answer, TestEnv, full_scale};

use crate::agents_dying::{
    agent, agents, assert_clean, keeper, signal, started, status, supervisor, until, work,
};
use crate::trees_remove::repository;

/// Leases are short here, and the landing is not what is looked at.
const SHORT: [&str; 2] = ["--set", "lease.ttl=1s"];

/// The steps of a holder: it goes on writing, in a process of its own, too.
const HOLDER: [&str; 4] = ["append who first", "fork ticks.log", "say works", "hang"];

/// The steps of whoever comes next: nobody else may write meanwhile.
const NEXT: [&str; 4] = [
    "append who second",
    "cp ticks.log before",
    "sleep 0.5",
    "cmp ticks.log before && rm before",
];

fn holder(env: &TestEnv) -> Agent {
    env.ok(&["task", "add", "Fix it"]);
    started(env, &[&["1"], &SHORT[..]].concat(), &HOLDER, "works")
}

fn until_expired(env: &TestEnv) {
    until("its lease runs out", || {
        let task = env.ok(&["task", "show", "1"]);
        let until = task["task"]["lease"]["expires_at"]
            .as_str()
            .unwrap()
            .parse();
        let until: weald_core::Timestamp = until.unwrap();
        until < weald_core::store::Clock::now(&weald_app::SystemClock)
    });
}

fn next(env: &TestEnv, by: &[&str]) -> Answer {
    let args = [by, &SHORT[..], &["--json"]].concat();
    Answer::of(work(env, &args, &NEXT).output().unwrap())
}

/// Stops processes while none of them changes a record: one that is stopped in the middle of it would hold up everybody.
fn stop(env: &TestEnv, pids: &[u32]) {
    let turn = fs::File::open(env.private().join("write.lock")).unwrap();
    turn.lock().unwrap();
    pids.iter().for_each(|pid| signal(*pid, Signal::STOP));
    until("they stand still", || {
        let threads = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task"));
        let all = pids.iter().filter_map(|pid| threads(pid).ok()).flatten();
        all.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit(") ").next().unwrap_or_default();
            state.is_empty() || state.starts_with(['T', 't', 'Z', 'X'])
        })
    });
}

/// What is stopped of the holder.
fn stop_part(env: &TestEnv, what: &str, holder: &Agent) {
    match what {
        "supervisor" => stop(env, &[supervisor(holder)]),
        "agent and supervisor" => stop(env, &[supervisor(holder), keeper(holder)]),
        // Each of them, so that nobody notices what happens to another.
        "everything" => stop(env, &env.processes()),
        _ => unreachable!(),
    }
}

#[test]
fn t14_a_stopped_holder_is_ended_before_the_next_one_begins() {
    let parts = ["supervisor", "agent and supervisor", "everything"];
    for (number, what) in parts.into_iter().enumerate() {
        let next_ones = [
            &["work", "1"][..],
            &["resume", "1"],
            &["worker", "--idle-timeout", "100ms"],
        ];
        for (place, by) in next_ones.into_iter().enumerate() {
            if !full_scale() && place != number {
                continue;
            }
            let env = repository();
            let first = holder(&env);
            stop_part(&env, what, &first);
            until_expired(&env);
            let done = next(&env, by);
            assert_eq!(done.code, 0, "{what} {by:?}: {done:#?}");
            assert_eq!(
                env.git(&["show", "main:who"]),
                "first\nsecond\n",
                "{what} {by:?}"
            );
            let ended = agent(&env, first.id).end.unwrap();
            assert_eq!(ended.outcome, Outcome::Superseded, "{what} {by:?}");
            assert_eq!(status(&env, "1"), "completed");
            assert_clean(&env);
        }
    }
}

#[test]
fn t14_s15_a_stopped_command_does_not_outlive_its_killed_supervisor() {
    let env = repository();
    let first = holder(&env);
    // Stopped, it does not notice that its supervisor is gone.
    signal(keeper(&first), Signal::STOP);
    signal(supervisor(&first), Signal::KILL);
    until("it is noticed", || {
        env.weald(&["task", "list"]);
        agent(&env, first.id).status == AgentStatus::Crashed
    });
    let done = next(&env, &["resume", "1"]);
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(env.git(&["show", "main:who"]), "first\nsecond\n");
    assert_clean(&env);
}

#[test]
fn t14_a_holder_that_renews_is_not_taken_over_and_goes_on() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let go = env.repo().join("go.log");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let first = started(
        &env,
        // Long enough for a machine that is busy.
        &["1", "--set", "lease.ttl=4s"],
        &["say works", &wait, "write a one"],
        "works",
    );
    // Its command alone is stopped: its supervisor answers for it.
    signal(keeper(&first), Signal::STOP);
    let held_until = || env.ok(&["task", "show", "1"])["task"]["lease"]["expires_at"].clone();
    let before = held_until();
    until("it is renewed", || held_until() != before);
    let refused = next(&env, &["work", "1"]);
    assert_eq!(refused.code, 5, "{refused:#?}");
    let idle = next(&env, &["worker", "--idle-timeout", "100ms"]);
    assert_eq!((idle.code, idle.stdout.as_str()), (0, ""), "{idle:#?}");
    signal(keeper(&first), Signal::CONT);
    // One whose lease ran out, but that nobody followed, may go on, too.
    stop(&env, &[supervisor(&first)]);
    until_expired(&env);
    signal(supervisor(&first), Signal::CONT);
    fs::write(&go, "").unwrap();
    until("it landed", || status(&env, "1") == "completed");
    assert_eq!(env.git(&["show", "main:a"]), "one\n");
    assert_eq!(agents(&env).len(), 1);
    assert_clean(&env);
}

/// The records as they would be if the holder ran on another machine.
fn as_of_another_host(env: &TestEnv) {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
    let from = format!("\"host\":\"{}\"", host.trim());
    for table in ["agents", "trees"] {
        let change = format!("UPDATE {table} SET doc = replace(doc, ?1, '\"host\":\"elsewhere\"')");
        database.execute(&change, [&from]).unwrap();
    }
}

#[test]
fn t14_where_the_holder_is_unknown_the_work_goes_on_in_a_new_tree() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let steps = ["append who first", "commit one", "say works", "hang"];
    let first = started(&env, &[&["1"], &SHORT[..]].concat(), &steps, "works");
    // What was taken in last is what the next one begins with.
    env.ok(&["status", "fix-it"]);
    stop(&env, &[supervisor(&first)]);
    until_expired(&env);
    as_of_another_host(&env);
    let args = [&["work", "1"], &SHORT[..], &["--json"]].concat();
    let done = Answer::of(work(&env, &args, &["append who second"]).output().unwrap());
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(env.git(&["show", "main:who"]), "first\nsecond\n");
    assert!(env.root().join("app.weald/fix-it/who").exists());
    // It wakes up late, is refused, and what it wrote stays.
    signal(supervisor(&first), Signal::CONT);
    until("the late one gives up", || {
        agent(&env, first.id).status.is_over()
    });
    assert_eq!(
        agent(&env, first.id).end.unwrap().outcome,
        Outcome::Superseded
    );
    assert_eq!(status(&env, "1"), "completed");
    assert!(env.root().join("app.weald/fix-it/who").exists());
    until("its processes are gone", || env.processes().is_empty());
}

#[test]
fn t14_a_late_holder_can_neither_land_nor_complete() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let go = env.repo().join("go.log");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let first = started(
        &env,
        &[&["1"], &SHORT[..]].concat(),
        &["write a late", "say works", &wait],
        "works",
    );
    // Somebody takes the claim, not the tree, while the holder is stopped.
    stop(&env, &[supervisor(&first)]);
    until_expired(&env);
    env.ok(&["task", "claim", "1", "--session", "bob"]);
    fs::write(&go, "").unwrap();
    until("its command ends", || {
        !fs::exists(format!("/proc/{}/root", keeper(&first))).unwrap()
    });
    signal(supervisor(&first), Signal::CONT);
    until("the late one is over", || {
        agent(&env, first.id).status.is_over()
    });
    assert_eq!(
        agent(&env, first.id).end.unwrap().outcome,
        Outcome::Superseded
    );
    assert_eq!(status(&env, "1"), "in_progress");
    assert_eq!(env.git(&["ls-tree", "main", "a"]), "");
    let kept = env.root().join("app.weald/fix-it/a");
    assert_eq!(fs::read_to_string(kept).unwrap(), "late\n");
    assert_clean(&env);
}
