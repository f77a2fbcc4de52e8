//! Ctrl-C and SIGTERM: what waits or is tested is taken out of the queue, what is being moved goes to its end.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::landing::{landed, rev};
use crate::landing_gate::wait_until;
use crate::trees_remove::{commit, grow, repository};

/// Starts weald as a terminal would: in a process group that gets the signal as a whole.
fn start(env: &TestEnv, args: &[&str], step: &str) -> Child {
    let mut command = env.weald_command(args);
    command
        .env("WEALD_STEP", step)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command.spawn().unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).unwrap()
}

fn ended(child: Child) -> Answer {
    Answer::of(child.wait_with_output().unwrap())
}

pub fn status_of(env: &TestEnv, id: usize) -> Value {
    let all = env.ok(&["queue", "status", "--all"])["queue"].clone();
    let all = all.as_array().unwrap().clone();
    all.iter().find(|one| one["id"] == id).unwrap()["status"].clone()
}

/// A repository whose gate takes for ever, with tree `a`.
pub fn endless() -> TestEnv {
    let env = repository();
    env.ok(&["config", "set", "gate.command", "sleep 600"]);
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "mine", "m\n");
    env
}

pub fn is_testing(env: &TestEnv, id: usize) -> bool {
    let open = env.ok(&["queue"])["queue"].clone();
    let log = env.private().join(format!("landings/{id}-1.log"));
    let text = fs::read_to_string(log).unwrap_or_default();
    let open = open.as_array().unwrap().iter();
    open.clone().any(|one| one["id"] == id) && text.contains("$ sleep 600")
}

pub fn no_gate_goes_on(env: &TestEnv) {
    let gates = env.root().join("app.weald/.gate");
    let is_empty = |path: &Path| fs::read_dir(path).is_ok_and(|mut all| all.next().is_none());
    assert!(!gates.exists() || is_empty(&gates));
}

/// Whoever works the queue has settings of their own.
#[test]
fn m8_what_guards_a_landing_is_not_lost_in_the_queue() {
    let env = endless();
    for setting in [
        "gate.command=false",
        "policy.gate=human",
        "sandbox.network=off",
    ] {
        let refused = env.weald(&["--set", setting, "land", "a", "--no-wait", "--json"]);
        assert_eq!((refused.code, &*refused.error_code()), (2, "setting_lost"));
    }
    assert_eq!(env.ok(&["queue"])["queue"], serde_json::json!([]));
    let kept = ["--set", "landing.strategy=merge", "land", "a", "--no-wait"];
    assert_eq!(env.ok(&kept)["landings"][0]["outcome"], "queued");
}

#[test]
fn m8_ctrl_c_takes_a_landing_that_is_tested_out_of_the_queue() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let env = endless();
        let before = rev(&env, "main");
        let child = start(&env, &["land", "a", "--json"], "");
        wait_until(|| is_testing(&env, 1));
        // As `timeout` does: first the process, then its group.
        kill_process(pid(&child), signal).unwrap();
        kill_process_group(pid(&child), signal).unwrap();
        let answer = ended(child);
        assert_eq!(answer.code, code, "{answer:#?}");
        assert_eq!(answer.json()["landings"][0]["outcome"], "dropped");
        assert_eq!(status_of(&env, 1), "dropped");
        assert_eq!(rev(&env, "main"), before);
        assert_eq!(env.ok(&["queue"])["holder"], Value::Null);
        no_gate_goes_on(&env);
        // Nothing is in the way of the next one.
        env.ok(&["config", "set", "gate.command", "true"]);
        landed(&env, &["a"]);
    }
}

#[test]
fn m8_ctrl_c_takes_only_its_own_landings_out() {
    let env = endless();
    let path = grow(&env, "b", "sealed");
    commit(&env, &path, "other", "o\n");
    let first = start(&env, &["land", "a", "--json"], "");
    wait_until(|| is_testing(&env, 1));
    let second = start(&env, &["land", "b"], "");
    wait_until(|| env.ok(&["queue"])["queue"].as_array().unwrap().len() == 2);
    kill_process_group(pid(&second), Signal::INT).unwrap();
    let answer = ended(second);
    assert_eq!(answer.code, 130, "{answer:#?}");
    assert!(
        answer
            .stdout
            .contains("b was removed from the queue; the worktree is kept")
    );
    assert_eq!(status_of(&env, 2), "dropped");
    assert_eq!(status_of(&env, 1), "testing");
    // Whoever works it is asked to end: it does not go on with what others queued.
    env.ok(&["land", "b", "--no-wait"]);
    kill_process_group(pid(&first), Signal::TERM).unwrap();
    assert_eq!(ended(first).code, 143);
    assert_eq!(status_of(&env, 1), "dropped");
    assert_eq!(status_of(&env, 3), "queued");
    // Working what is queued has none of its own.
    let work = start(&env, &["queue", "resume", "--json"], "");
    wait_until(|| is_testing(&env, 3));
    kill_process_group(pid(&work), Signal::INT).unwrap();
    assert_eq!(ended(work).code, 130);
    assert_ne!(status_of(&env, 3), "dropped");
}

#[test]
fn m8_ctrl_c_while_the_target_moves_lets_it_land() {
    for step in ["land.intent", "land.ref_prepared", "land.swapping"] {
        let env = repository();
        let path = grow(&env, "a", "sealed");
        commit(&env, &path, "mine", "m\n");
        let child = start(&env, &["land", "a", "--json"], &format!("stop:{step}"));
        let is_stopped = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            stat.contains(") T ")
        };
        wait_until(is_stopped);
        kill_process_group(pid(&child), Signal::INT).unwrap();
        kill_process(pid(&child), Signal::CONT).unwrap();
        let answer = ended(child);
        assert_eq!(answer.code, 0, "{step}: {answer:#?}");
        assert_eq!(answer.json()["landings"][0]["outcome"], "landed", "{step}");
        assert_eq!(env.git(&["show", "main:mine"]), "m\n", "{step}");
        assert_eq!(env.git(&["status", "--porcelain"]), "", "{step}");
    }
}

#[test]
fn m8_a_killed_lander_leaves_its_landings_queued_and_holds_nothing() {
    let env = endless();
    let mut child = start(&env, &["land", "a"], "");
    wait_until(|| is_testing(&env, 1));
    assert_ne!(env.ok(&["queue"])["holder"], Value::Null);
    child.kill().unwrap();
    child.wait().unwrap();
    let queue = env.ok(&["queue"]);
    assert_eq!(queue["holder"], Value::Null, "{queue:#}");
    assert_eq!(queue["queue"][0]["outcome"], json!("queued"));
    let plain = env.weald(&["queue"]).stdout;
    assert!(!plain.contains("is working the queue"), "{plain}");
}
