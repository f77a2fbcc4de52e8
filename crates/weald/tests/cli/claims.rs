//! Many real processes at once: each task has exactly one owner, and an old token completes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use weald_testkit::{TestEnv, full_scale};

use crate::env;

fn add_tasks(env: &TestEnv, count: usize) {
    let lines: String = (0..count)
        .map(|n| format!("{{\"subject\":\"task {n}\"}}\n"))
        .collect();
    let answer = env.weald_with_input(&["task", "import", "--json"], lines.as_bytes());
    assert_eq!(answer.json()["imported"], count);
}

fn events(env: &TestEnv) -> Vec<Value> {
    let text = fs::read_to_string(env.private().join("events.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn t7_of_twenty_concurrent_claims_exactly_one_succeeds() {
    let env = env();
    for round in 1..=3 {
        env.ok(&["task", "add", "wanted"]);
        let id = round.to_string();
        let claims: Vec<_> = (0..20)
            .map(|_| {
                let mut command = env.weald_command(&["task", "claim", &id, "--json"]);
                command
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut codes: Vec<_> = claims
            .into_iter()
            .map(|claim| claim.wait_with_output().unwrap().status.code().unwrap())
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [&[0][..], &[5; 19]].concat());
    }
}

#[test]
fn z6_sixty_four_processes_claim_each_task_once() {
    let env = env();
    let tasks = if full_scale() { 1_000 } else { 300 };
    add_tasks(&env, tasks);
    let claim_all = |worker: usize| {
        let session = format!("worker-{worker}");
        let mut claimed = Vec::new();
        loop {
            let answer = env.weald(&["task", "claim", "--json", "--session", &session]);
            match answer.code {
                0 => claimed.push(answer.json()["task"]["id"].as_u64().unwrap()),
                4 => return claimed,
                _ => panic!("a claim failed: {answer:?}"),
            }
        }
    };
    let mut all: Vec<u64> = thread::scope(|scope| {
        let workers: Vec<_> = (0..64)
            .map(|worker| scope.spawn(move || claim_all(worker)))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    all.sort_unstable();
    assert_eq!(all, (1..=tasks as u64).collect::<Vec<_>>());
}

/// A worker: claims, works for a moment, finishes, until it is told to stop. What it finished it writes down.
const WORKER: &str = r#"
while [ ! -e "$STOP" ]; do
  out=$("$WEALD" task claim --json --session "$NAME" --ttl 1s 2>/dev/null); code=$?
  case $code in
    0) ;;
    4) sleep 0.2; continue ;;
    *) echo "failed claim $code $out"; continue ;;
  esac
  id=$(printf %s "$out" | sed 's/.*"task":{"id":\([0-9]*\),.*/\1/')
  token=$(printf %s "$out" | sed 's/.*"lease":{"token":\([0-9]*\),.*/\1/')
  echo "claimed $id $token"
  "$WEALD" task done "$id" --token "$token" --json >/dev/null 2>&1; code=$?
  echo "done $id $token $code"
done
"#;

fn start_worker(env: &TestEnv, number: usize) -> Child {
    let log = fs::File::create(env.root().join(format!("worker-{number}.log"))).unwrap();
    let mut command = env.command("sh");
    command.args(["-c", WORKER]);
    command.env("WEALD", env!("CARGO_BIN_EXE_weald"));
    command
        .env("NAME", format!("worker-{number}"))
        .env("STOP", env.root().join("stop"));
    command.stdout(log).stderr(Stdio::null()).process_group(0);
    command.spawn().unwrap()
}

fn signal(worker: &Child, signal: Signal) {
    kill_process_group(Pid::from_child(worker), signal).unwrap();
}

/// Stops a worker that holds a task and is not in the middle of a change, which would hold up all others. There is work
/// for it for as long as that takes: `tasks` grows where the others left none.
fn catch(env: &TestEnv, workers: &[Child], number: usize, tasks: &mut usize) {
    let log = env.root().join(format!("worker-{number}.log"));
    let deadline = Instant::now() + Duration::from_secs(60);
    let holds = || {
        let text = fs::read_to_string(&log).unwrap();
        let words: Vec<_> = text.lines().next_back().unwrap_or("").split(' ').collect();
        let &["claimed", task, token] = &words[..] else {
            return false;
        };
        let token: u64 = token.parse().unwrap();
        let shown = env.ok(&["task", "show", task])["task"].clone();
        let turn = fs::File::open(env.private().join("write.lock")).unwrap();
        let is_free = (0..20).any(|_| {
            thread::sleep(Duration::from_millis(2));
            turn.try_lock().is_ok()
        });
        let is_held = shown["status"] == "in_progress" && shown["token"] == json!(token);
        is_held && is_free
    };
    loop {
        signal(&workers[number], Signal::STOP);
        if holds() {
            return;
        }
        signal(&workers[number], Signal::CONT);
        assert!(Instant::now() < deadline, "worker {number} never holds one");
        if counted(env, "pending") == 0 {
            add_tasks(env, workers.len());
            *tasks += workers.len();
        }
        thread::sleep(Duration::from_millis(3));
    }
}

fn counted(env: &TestEnv, status: &str) -> u64 {
    env.ok(&["task", "list", "--status", status, "--limit", "1"])["total"]
        .as_u64()
        .unwrap()
}

#[test]
fn t7_killed_and_stopped_workers_complete_nothing_with_an_old_token() {
    let env = env();
    let (mut tasks, count) = if full_scale() { (1_000, 64) } else { (150, 20) };
    add_tasks(&env, tasks);
    let mut workers: Vec<_> = (0..count)
        .map(|number| start_worker(&env, number))
        .collect();
    let fifth = count / 5;
    // Spread over the run: one is killed, one is stopped, again and again.
    for victim in 0..fifth {
        thread::sleep(Duration::from_millis(60));
        catch(&env, &workers, victim, &mut tasks);
        signal(&workers[victim], Signal::CONT);
        thread::sleep(Duration::from_millis(victim as u64));
        signal(&workers[victim], Signal::KILL);
        catch(&env, &workers, fifth + victim, &mut tasks);
    }
    thread::sleep(Duration::from_millis(1_500));
    for stopped in &workers[fifth..2 * fifth] {
        signal(stopped, Signal::CONT);
    }
    let deadline = Instant::now() + Duration::from_secs(240);
    while counted(&env, "completed") < tasks as u64 {
        assert!(
            Instant::now() < deadline,
            "work stands still at {}",
            counted(&env, "completed")
        );
        thread::sleep(Duration::from_millis(200));
    }
    fs::write(env.root().join("stop"), "").unwrap();
    for worker in &mut workers {
        worker.wait().unwrap();
    }
    check_history(&env, tasks);
    check_logs(&env, count);
}

/// Each task is completed once, by the newest token that was given out for it.
fn check_history(env: &TestEnv, tasks: usize) {
    let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
    let mut done: BTreeMap<u64, u64> = BTreeMap::new();
    for event in events(env) {
        let data = &event["data"];
        let (Some(task), Some(token)) = (data["task"].as_u64(), data["token"].as_u64()) else {
            continue;
        };
        match event["type"].as_str().unwrap() {
            "dev.weald.task.claimed" | "dev.weald.task.taken_over" => {
                assert!(
                    newest.insert(task, token).unwrap_or(0) < token,
                    "tokens grow"
                );
            }
            "dev.weald.task.completed" => {
                assert_eq!(
                    newest[&task], token,
                    "task {task} was completed with an old token"
                );
                assert_eq!(
                    done.insert(task, token),
                    None,
                    "task {task} was completed twice"
                );
            }
            other => panic!("unexpected {other}"),
        }
    }
    assert_eq!(done.len(), tasks);
    let takeovers = events(env)
        .iter()
        .filter(|event| event["type"] == "dev.weald.task.taken_over")
        .count();
    assert!(
        takeovers > 0,
        "nobody was killed or stopped while holding a task: this run shows nothing"
    );
}

/// Nobody failed but for old tokens, and what a worker saw acknowledged is in the log.
fn check_logs(env: &TestEnv, count: usize) {
    let done: Vec<_> = events(env)
        .into_iter()
        .filter(|event| event["type"] == "dev.weald.task.completed")
        .map(|event| {
            (
                event["data"]["task"].as_u64().unwrap(),
                event["data"]["token"].as_u64().unwrap(),
            )
        })
        .collect();
    for number in 0..count {
        let log = fs::read_to_string(env.root().join(format!("worker-{number}.log"))).unwrap();
        assert!(!log.contains("failed"), "worker {number}: {log}");
        for line in log.lines().filter(|line| line.starts_with("done")) {
            let fields: Vec<u64> = line
                .split(' ')
                .skip(1)
                .map(|field| field.parse().unwrap())
                .collect();
            match fields[2] {
                0 => assert!(done.contains(&(fields[0], fields[1])), "lost: {line}"),
                1 => {}
                code => panic!("worker {number}: exit {code}"),
            }
        }
    }
}

#[test]
fn a_lease_that_ran_out_is_taken_over_and_the_late_holder_refused() {
    let env = env();
    env.ok(&["task", "add", "a"]);
    env.ok(&["task", "claim", "1", "--session", "slow", "--ttl", "1ms"]);
    let taken = env.ok(&["task", "claim", "--session", "fast"]);
    assert_eq!(
        (&taken["task"]["id"], &taken["lease"]["token"]),
        (&1.into(), &2.into())
    );
    env.refused(&["task", "renew", "1", "--token", "1"], 1, "stale_token");
    env.refused(&["task", "done", "1", "--token", "1"], 1, "stale_token");
    env.refused(&["task", "fail", "1", "--token", "1"], 1, "stale_token");
    env.ok(&["task", "done", "1", "--token", "2"]);
}
