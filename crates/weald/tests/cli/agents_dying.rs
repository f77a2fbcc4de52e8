//! Agents, their supervisors and whole machines die: what was written stays, the next command notices, `resume` goes on.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use weald_app::{SystemClock, SystemProcesses};
use weald_core::agent::{Agent, AgentId, AgentStatus, Outcome};
use weald_core::session::ProcessTable;
use weald_core::store::{AgentFilter, Store};
use weald_store::SqliteStore;
use weald_testkit::STEPS as STEPS_OF_ALL;
use weald_testkit::{Answer, TestEnv, assert_log_explains_state};

use crate::trees_remove::repository;

pub fn store(env: &TestEnv) -> SqliteStore {
    SqliteStore::open(&env.private(), Arc::new(SystemClock)).unwrap()
}

pub fn agents(env: &TestEnv) -> Vec<Agent> {
    let store = store(env);
    let read = store.read().unwrap();
    read.agents(&AgentFilter::default()).unwrap()
}

pub fn agent(env: &TestEnv, id: AgentId) -> Agent {
    let store = store(env);
    let read = store.read().unwrap();
    read.agent(id).unwrap().unwrap()
}

#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "it took too long: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

pub fn signal(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

pub fn supervisor(agent: &Agent) -> u32 {
    agent.supervisor.as_ref().unwrap().pid
}

pub fn keeper(agent: &Agent) -> u32 {
    agent.process.as_ref().unwrap().pid
}

pub fn log(env: &TestEnv, agent: &Agent) -> String {
    let folder = env.private().join("agents").join(agent.id.to_string());
    fs::read_to_string(folder.join("output.log")).unwrap_or_default()
}

/// `weald work` with a scripted agent, not started yet.
pub fn work(env: &TestEnv, args: &[&str], steps: &[&str]) -> Command {
    let words = env.agent(steps);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    env.weald_command(&[args, &["--"], &words].concat())
}

/// Starts a scripted agent in the background; answers once it has said `said`.
pub fn started(env: &TestEnv, args: &[&str], steps: &[&str], said: &str) -> Agent {
    let args = [&["work"], args, &["--detach", "--json"]].concat();
    let answer = Answer::of(work(env, &args, steps).output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    let id = answer.json()["agent"]["id"].as_str().unwrap().to_owned();
    let id = id.parse().unwrap();
    until("it says its word", || {
        log(env, &agent(env, id)).contains(said)
    });
    agent(env, id)
}

/// `weald resume` with other steps, to its end.
pub fn resumed(env: &TestEnv, task: &str, steps: &[&str]) -> Answer {
    Answer::of(
        work(env, &["resume", task, "--json"], steps)
            .output()
            .unwrap(),
    )
}

pub fn status(env: &TestEnv, task: &str) -> String {
    let task = env.ok(&["task", "show", task]);
    task["task"]["status"].as_str().unwrap().to_owned()
}

/// Everything is over and nothing of it is left: no process, nothing for the doctor.
pub fn assert_clean(env: &TestEnv) {
    until("its processes are gone", || env.processes().is_empty());
    let told = env.weald(&["doctor", "--json"]);
    assert_eq!(told.code, 0, "{told:#?}");
    assert_log_explains_state(store(env).read().unwrap().as_ref());
}

const STEPS: [&str; 4] = ["write a one", "commit a", "write b two", "hang"];

#[test]
fn s15_a_killed_command_is_a_crash_and_resume_goes_on() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let first = started(&env, &["1"], &STEPS, "wrote b");
    signal(keeper(&first), Signal::KILL);
    until("it is over", || agent(&env, first.id).status.is_over());
    let ended = agent(&env, first.id).end.unwrap();
    assert_eq!(
        (ended.outcome, status(&env, "1").as_str()),
        (Outcome::Crashed, "pending")
    );
    let tree = env.root().join("app.weald/fix-it");
    assert_eq!(fs::read_to_string(tree.join("b")).unwrap(), "two\n");
    let done = resumed(&env, "1", &["append b three"]);
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(env.git(&["show", "main:a"]), "one\n");
    assert_eq!(env.git(&["show", "main:b"]), "two\nthree\n");
    assert_eq!(status(&env, "1"), "completed");
    assert_clean(&env);
}

#[test]
fn s15_an_agent_that_kills_itself_three_times_waits_for_a_person() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    for round in 1..=3 {
        let crashed = resumed(&env, "1", &["append a one", "crash"]);
        assert_eq!(crashed.code, 1, "{crashed:#?}");
        assert_eq!(crashed.json()["agent"]["end"]["outcome"], "crashed");
        let expected = if round < 3 { "pending" } else { "blocked" };
        assert_eq!(status(&env, "1"), expected);
    }
    let none = work(
        &env,
        &["worker", "--idle-timeout", "100ms"],
        &["write c no"],
    );
    let none = Answer::of({ none }.output().unwrap());
    assert_eq!((none.code, none.stdout.as_str()), (0, ""), "{none:#?}");
    assert_eq!(resumed(&env, "1", &["say well"]).code, 0);
    assert_eq!(env.git(&["show", "main:a"]), "one\none\none\n");
    assert_clean(&env);
}

#[test]
fn s15_a_killed_supervisor_is_noticed_by_the_next_command() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    // Deaf, and with a grandchild in a session of its own.
    let steps = ["deaf", "fork ticks.log", "write a one", "hang"];
    let first = started(&env, &["1"], &steps, "wrote a");
    assert!(!env.processes().is_empty());
    signal(supervisor(&first), Signal::KILL);
    until("all of it is gone", || env.processes().is_empty());
    let told = env.weald(&["task", "show", "1"]);
    assert!(told.stderr.contains("a1 crashed"), "{told:#?}");
    assert_eq!(agent(&env, first.id).status, AgentStatus::Crashed);
    assert_eq!(status(&env, "1"), "pending");
    let done = resumed(&env, "1", &["append a two"]);
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(env.git(&["show", "main:a"]), "one\ntwo\n");
    assert_clean(&env);
}

#[test]
fn p3_everything_is_killed_and_resume_goes_on() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let front = work(&env, &["work", "1"], &STEPS)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut front = front.unwrap();
    until("it works", || {
        agents(&env)
            .iter()
            .any(|agent| log(&env, agent).contains("wrote b"))
    });
    env.end_processes();
    front.wait().unwrap();
    let done = resumed(&env, "1", &["append b three"]);
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(env.git(&["show", "main:b"]), "two\nthree\n");
    assert_clean(&env);
}

/// First whoever is at a step, then everything that still lives.
#[test]
fn p3_killed_at_any_step_of_an_agents_life_resume_goes_on() {
    let steps = STEPS_OF_ALL
        .iter()
        .filter(|step| step.starts_with("agent."));
    for step in steps {
        let env = repository();
        env.ok(&["task", "add", "Fix it"]);
        // Killed between the opening of a file and the writing, an agent leaves an empty one.
        let once = ["[ -s a ] || write a one", "[ -s b ] || write b two"];
        let mut killed = work(&env, &["work", "1"], &once);
        killed.env("WEALD_STEP", format!("kill:{step}"));
        let killed = Answer::of(killed.output().unwrap());
        assert_ne!(killed.code, 0, "{step}: {killed:#?}");
        env.end_processes();
        let done = resumed(&env, "1", &once);
        assert_eq!(done.code, 0, "{step}: {done:#?}");
        assert_eq!(env.git(&["show", "main:a"]), "one\n", "{step}");
        assert_eq!(env.git(&["show", "main:b"]), "two\n", "{step}");
        assert_eq!(status(&env, "1"), "completed", "{step}");
        assert_clean(&env);
    }
}

#[test]
fn p3_w9_a_supervisor_killed_while_it_lands_is_gone_on_with_behind_the_command() {
    for step in [
        "land.ready",
        "land.intent",
        "land.ref_committed",
        "land.recorded",
    ] {
        for by in ["resume", "worker"] {
            let env = repository();
            env.ok(&["task", "add", "Fix it"]);
            let mut killed = work(&env, &["work", "1", "--json"], &["append a one"]);
            let killed = Answer::of(
                killed
                    .env("WEALD_STEP", format!("kill:{step}"))
                    .output()
                    .unwrap(),
            );
            assert_eq!(
                killed.json()["agent"]["status"],
                "crashed",
                "{step}: {killed:#?}"
            );
            // The command was done: it is not done again.
            let answer = match by {
                "resume" => resumed(&env, "1", &["append a two"]),
                _ => {
                    let args = ["worker", "--idle-timeout", "100ms"];
                    Answer::of(work(&env, &args, &["append a two"]).output().unwrap())
                }
            };
            assert_eq!(answer.code, 0, "{step} {by}: {answer:#?}");
            assert_eq!(env.git(&["show", "main:a"]), "one\n", "{step} {by}");
            assert_eq!(status(&env, "1"), "completed", "{step} {by}");
            assert_eq!(
                env.git(&["log", "--format=%s", "main", "--", "a"]),
                "Fix it\n"
            );
            assert_clean(&env);
        }
    }
}

/// The records as another start of the machine would have left them, with numbers that live processes have now.
fn as_of_another_boot(env: &TestEnv) {
    let me = SystemProcesses.identify(std::process::id()).unwrap();
    let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
    for table in ["agents", "trees", "sessions"] {
        let change = format!("UPDATE {table} SET doc = replace(doc, ?1, 'another-boot')");
        database.execute(&change, [&me.boot_id]).unwrap();
    }
    let doc: String = database
        .query_row("SELECT doc FROM agents WHERE open = 1", [], |row| {
            row.get(0)
        })
        .unwrap();
    let mut doc: serde_json::Value = serde_json::from_str(&doc).unwrap();
    for name in ["supervisor", "process"] {
        doc[name]["pid"] = json!(me.pid);
        doc[name]["start_time"] = json!(me.start_time);
    }
    let change = "UPDATE agents SET doc = ?1 WHERE open = 1";
    database.execute(change, [doc.to_string()]).unwrap();
}

#[test]
fn p3_after_a_reboot_resume_goes_on() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    started(&env, &["1"], &STEPS, "wrote b");
    env.end_processes();
    as_of_another_boot(&env);
    let told = env.weald(&["task", "show", "1"]);
    assert!(told.stderr.contains("a1 crashed"), "{told:#?}");
    let done = resumed(&env, "1", &["append b three"]);
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(env.git(&["show", "main:b"]), "two\nthree\n");
    until("its processes are gone", || env.processes().is_empty());
}

#[test]
fn p3_a_closed_terminal_does_not_end_an_agent() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = || {
        let path = name.to_str().unwrap();
        fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap()
    };
    let go = env.repo().join("go.log");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let words = env.agent(&["write a one", &wait, "append a two"]);
    let mut shell = env.command("setsid");
    shell
        .args(["--ctty", "--wait"])
        .arg(env!("CARGO_BIN_EXE_weald"));
    shell.args(["work", "1", "--"]).args(words);
    let mut shell = shell
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap();
    until("it works", || {
        agents(&env)
            .iter()
            .any(|agent| log(&env, agent).contains("wrote a"))
    });
    // With the last hand that holds it the terminal is gone, and whoever is in the foreground is told so.
    drop(terminal);
    until("the command in the foreground is gone", || {
        shell.try_wait().unwrap().is_some()
    });
    fs::write(&go, "").unwrap();
    until("it landed", || status(&env, "1") == "completed");
    assert_eq!(env.git(&["show", "main:a"]), "one\ntwo\n");
    assert_clean(&env);
}

#[test]
fn s5_a_supervisor_keeps_nothing_of_its_caller_open() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let mut shell = env.command("sh");
    // As under `flock`: a descriptor that whoever is started inherits.
    let script = "exec 9> \"$HOME/held\"; exec \"$@\"";
    shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_weald")]);
    shell.args(["work", "1", "--detach", "--"]);
    let words = env.agent(&["hang"]);
    assert!(shell.args(words).output().unwrap().status.success());
    let pid = supervisor(&agents(&env)[0]);
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let open: Vec<_> = open.flat_map(|fd| fs::read_link(fd.path())).collect();
    assert!(!open.contains(&env.home().join("held")), "{open:?}");
}

#[test]
fn p3_what_another_lander_lands_for_a_dead_supervisor_completes_its_task() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["task", "add", "Something else"]);
    let mut killed = work(&env, &["work", "1", "--json"], &["append a one"]);
    killed.env("WEALD_STEP", "kill:land.ready");
    assert_eq!(Answer::of(killed.output().unwrap()).code, 1);
    // Its claim was given back; its landing waits, and whoever lands next lands it.
    assert_eq!(status(&env, "1"), "pending");
    let other = Answer::of(
        work(&env, &["work", "2"], &["append b two"])
            .output()
            .unwrap(),
    );
    assert_eq!(other.code, 0, "{other:#?}");
    assert_eq!(env.git(&["show", "main:a"]), "one\n");
    assert_eq!(status(&env, "1"), "completed");
    assert_clean(&env);
}

#[test]
fn p3_a_lock_of_a_git_that_died_with_its_run_is_in_nobodys_way() {
    let env = repository();
    env.ok(&["task", "add", "Locked"]);
    let script = "echo one > one; : > .git/index.lock; : > .git/HEAD.lock";
    let answer = env.weald(&["work", "1", "--json", "--", "sh", "-c", script]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(env.git(&["show", "main:one"]), "one\n");
}
