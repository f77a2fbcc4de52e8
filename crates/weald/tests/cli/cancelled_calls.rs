//! A call that its caller cancels in a process that goes on: it leaves what a signal to a process of its own leaves.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_app::operations::landing::LandTrees;
use weald_app::operations::works::WorkOnTask;
use weald_app::operations::{Caller, Done, Operation};
use weald_app::progress::Progress;
use weald_app::supervision::AgentWish;
use weald_app::{App, Call, Environment, OnConflict};
use weald_sandbox::Cancel;
use weald_testkit::{Answer, TestEnv};

use crate::landing::rev;
use crate::landing_gate::wait_until;
use crate::landing_interrupt::{endless, is_testing, no_gate_goes_on, status_of};
use crate::mcp_ends::running;
use crate::trees_remove::{commit, grow};

/// What this program does when a test has started it again, in the environment of that test.
const INNER: &str = "WEALD_TEST_CALL";

struct Silence;

impl Progress for Silence {
    fn note(&self, _: &str) {}

    fn warn(&self, _: &str) {}
}

/// Does an operation in this process, and cancels it as soon as the file is there.
fn cancelled<O: Operation>(request: O, when: &Path) -> Value {
    let narration = || -> Box<dyn io::Write + Send> { Box::new(io::sink()) };
    let here = std::env::current_dir().unwrap();
    let app = App::new(narration, Environment::read(), here, Vec::new());
    let app = app.started_as(PathBuf::from(env!("CARGO_BIN_EXE_weald")));
    let (caller, cancel) = (Caller::default(), Cancel::by_caller());
    let (began, done) = thread::scope(|scope| {
        let call = Call {
            app: &app,
            caller: &caller,
            progress: &Silence,
            cancel: &cancel,
            windows: None,
        };
        let work = scope.spawn(move || call.perform(request, None));
        wait_until(|| when.exists());
        let began = Instant::now();
        cancel.ask();
        (began, work.join().unwrap())
    });
    assert!(began.elapsed() < Duration::from_secs(30));
    match done.map(|output| Done::of::<O>(&output)) {
        Ok(done) => json!({"answer": done.answer, "exit": done.exit}),
        Err(failure) => json!({"error": failure.code.as_str(), "exit": failure.exit}),
    }
}

fn land(tree: &str) -> LandTrees {
    LandTrees {
        names: vec![tree.to_owned()],
        strategy: None,
        no_wait: false,
        dry_run: false,
        keep: false,
        force: false,
        stop_on_conflict: false,
        at_conflict: OnConflict::Abort,
        leaves: false,
        commit: None,
        message: None,
        report: None,
    }
}

fn work() -> WorkOnTask {
    WorkOnTask {
        task: "say hello".to_owned(),
        is_subject: true,
        in_main: false,
        detach: false,
        how: AgentWish {
            command: ["sh", "-c", "echo hello > said; sleep 600"]
                .map(str::to_owned)
                .to_vec(),
            ..AgentWish::default()
        },
    }
}

/// The answer of an operation that is cancelled as soon as `until` holds.
fn call(env: &TestEnv, what: &str, until: impl Fn() -> bool) -> Value {
    let when = env.home().join("cancel now");
    let mut command = env.command(std::env::current_exe().unwrap());
    command.args(["--exact", "cancelled_calls::inner"]);
    command.env(INNER, what).env("WEALD_TEST_WHEN", &when);
    command.current_dir(env.repo());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(until);
    fs::write(&when, "").unwrap();
    let ended = Answer::of(child.wait_with_output().unwrap());
    let answer = fs::read_to_string(when.with_extension("answer"));
    serde_json::from_str(&answer.unwrap_or_else(|_| panic!("{ended:#?}"))).unwrap()
}

/// Nothing by itself: the other tests start it.
#[test]
fn inner() {
    let Ok(what) = std::env::var(INNER) else {
        return;
    };
    let when = PathBuf::from(std::env::var("WEALD_TEST_WHEN").unwrap());
    let answer = match what.as_str() {
        "work" => cancelled(work(), &when),
        tree => cancelled(land(tree), &when),
    };
    fs::write(when.with_extension("answer"), answer.to_string()).unwrap();
}

#[test]
fn m8_a_cancelled_call_takes_a_landing_that_is_tested_out_of_the_queue() {
    let env = endless();
    let before = rev(&env, "main");
    let told = call(&env, "a", || is_testing(&env, 1));
    assert_eq!(told["exit"], 143, "{told:#}");
    assert_eq!(told["answer"]["landings"][0]["outcome"], "dropped");
    assert_eq!(status_of(&env, 1), "dropped");
    assert_eq!(rev(&env, "main"), before);
    assert_eq!(env.ok(&["queue"])["holder"], Value::Null);
    no_gate_goes_on(&env);
}

#[test]
fn m8_a_cancelled_call_that_waits_for_the_queue_takes_only_its_own_landing_out() {
    let env = endless();
    let path = grow(&env, "b", "sealed");
    commit(&env, &path, "other", "o\n");
    let mut first = env
        .weald_command(&["land", "a"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| is_testing(&env, 1));
    let queued = || env.ok(&["queue"])["queue"].as_array().unwrap().len() == 2;
    let told = call(&env, "b", queued);
    assert_eq!(told["exit"], 143, "{told:#}");
    assert_eq!(status_of(&env, 2), "dropped");
    assert_eq!(status_of(&env, 1), "testing");
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn m8_a_cancelled_call_that_follows_an_agent_has_it_stop_and_gives_its_task_back() {
    let env = endless();
    let said = env.root().join("app.weald/say-hello/said");
    let told = call(&env, "work", || said.exists());
    assert_eq!(told["exit"], 143, "{told:#}");
    assert_eq!(
        told["answer"]["agent"]["end"]["outcome"], "stopped",
        "{told:#}"
    );
    assert_eq!(env.ok(&["task", "show", "1"])["task"]["status"], "pending");
    assert_eq!(running("said; sleep 600"), 0);
    assert!(said.exists());
}
