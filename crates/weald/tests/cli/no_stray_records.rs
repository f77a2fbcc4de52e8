//! A start that is refused or fails leaves nothing behind that looks like work, and what is dead is shown as dead.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use weald_testkit::TestEnv;

use weald_core::agent::Agent;

use crate::agents_dying::{agent, keeper, log, signal, status, supervisor, until};
use crate::trees_remove::repository;

/// Starts an agent that says that it is up, and sleeps.
fn started(env: &TestEnv, words: &[&str]) -> Agent {
    let work = ["work", "--detach", "--json"];
    let sleep = ["--", "sh", "-c", "echo up; sleep 600"];
    let answer = env.weald(&[&work[..], words, &sleep].concat());
    let id = answer.json()["agent"]["id"].as_str().unwrap().to_owned();
    let id = id.parse().unwrap();
    until("it is up", || log(env, &agent(env, id)).contains("up"));
    agent(env, id)
}

/// Nobody would take anything up, and nobody seems to be at work.
#[track_caller]
fn nothing_is_left(env: &TestEnv, after: &str) {
    let tasks = env.ok(&["task", "list"])["tasks"].clone();
    assert_eq!(tasks, serde_json::json!([]), "{after}");
    let sessions = env.ok(&["session", "list"])["sessions"].clone();
    assert_eq!(sessions, serde_json::json!([]), "{after}");
    let agents = env.ok(&["agent", "list", "--all"])["agents"].clone();
    assert_eq!(agents, serde_json::json!([]), "{after}");
    let board = env.ok(&[]);
    assert_eq!(board["needs"], serde_json::json!([]), "{after}");
}

#[test]
fn y29_a_refused_start_leaves_no_task_no_agent_and_no_session() {
    let unborn = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    fs::create_dir(unborn.repo()).unwrap();
    unborn.git(&["init", "-q", "-b", "main"]);
    let env = repository();
    fs::create_dir_all(env.root().join("app.weald/fix-it/mine")).unwrap();
    let dirty = repository();
    fs::write(dirty.repo().join("config.py"), "dirty\n").unwrap();
    for start in [&["work"][..], &["agent", "spawn"]] {
        for (env, set, command, code) in [
            (&unborn, "pool.size=0", "true", "no_commit"),
            (&env, "pool.size=0", "true", "path_occupied"),
            (
                &env,
                "pool.size=0",
                "no-such-program",
                "driver_not_installed",
            ),
            (&dirty, "tree.dirty_main=refuse", "true", "main_dirty"),
        ] {
            let words = [&["--json", "--set", set], start, &["Fix it", "--", command]].concat();
            let answer = env.weald(&words);
            assert_ne!(answer.code, 0, "{words:?}: {answer:#?}");
            assert_eq!(answer.error_code(), code, "{words:?}");
            nothing_is_left(env, &format!("{words:?}"));
        }
    }
}

/// A program whose loader is not there: only the kernel finds that out.
pub fn unloadable(path: &Path) {
    let mut bytes = fs::read("/bin/true").unwrap();
    let loader = b"/ld-";
    let at = bytes.windows(4).position(|found| found == loader).unwrap();
    bytes[at + 1] = b'x';
    fs::remove_file(path).ok();
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A script whose first line names a program that is not there is refused at once; what only the kernel can refuse leaves
/// a cancelled task, which says why and is nobody's.
#[test]
fn y29_a_program_that_can_not_be_run_leaves_no_task_to_anybody() {
    let env = repository();
    let program = |name: &str, text: &str| {
        let path = env.home().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let script = program("script", "#!/nonexistent/sh -e\n");
    let starts = [
        &["work"][..],
        &["work", "--detach", "--name", "finn"],
        &["agent", "spawn"],
    ];
    for start in starts {
        let answer = env.weald(&[start, &["Fix it", "--json", "--", &script]].concat());
        assert_eq!(answer.error_code(), "not_executable", "{answer:#?}");
        assert!(answer.stdout.contains("/nonexistent/sh"), "{answer:#?}");
        nothing_is_left(&env, "a script for nothing");
    }
    let nonsense = env.home().join("nonsense");
    unloadable(&nonsense);
    let nonsense = nonsense.to_str().unwrap();
    for (start, id) in starts.into_iter().zip(["1", "2", "3"]) {
        let answer = env.weald(&[start, &["Fix it", "--json", "--", nonsense]].concat());
        assert_eq!(answer.error_code(), "agent_not_started", "{answer:#?}");
        assert_eq!(status(&env, id), "cancelled");
        assert_eq!(env.ok(&["list"])["trees"], serde_json::json!([]));
    }
    let board = env.ok(&[]);
    for section in ["ready", "in_progress", "needs", "sessions", "agents"] {
        assert_eq!(board[section], serde_json::json!([]), "{section}");
    }
    // A task that was there before waits as it did.
    env.ok(&["task", "add", "Mine"]);
    for program in [&*script, nonsense] {
        env.weald(&["work", "4", "--", program]);
        assert_eq!(status(&env, "4"), "pending");
    }
    assert_eq!(env.ok(&[])["sessions"], serde_json::json!([]));
}

#[test]
fn y29_a_program_that_no_run_sees_and_a_place_that_cannot_be_made_are_refused_before_anything_is() {
    let env = repository();
    let folder = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let script = folder.path().join("agent.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    for start in [&["work"][..], &["agent", "spawn", "--name", "finn"]] {
        let answer = env.weald(&[&["--json"], start, &["Fix it", "--", script]].concat());
        assert_eq!(answer.error_code(), "driver_not_visible", "{answer:#?}");
        let hint = answer.json()["error"]["hint"].clone();
        assert!(hint.as_str().unwrap().contains("cp /tmp/"), "{hint}");
        nothing_is_left(&env, "a program in /tmp");
        let set = ["--json", "--set", "tree.path=/proc/nope/{name}"];
        let answer = env.weald(&[&set[..], start, &["Fix it", "--", "true"]].concat());
        assert_ne!(answer.code, 0, "{answer:#?}");
        nothing_is_left(&env, "a place in /proc");
    }
}

#[test]
fn y29_the_session_of_a_named_agent_ends_with_it() {
    let env = repository();
    for (name, command) in [
        ("anna", "echo 1 > one"),
        ("erna", "kill -9 $$"),
        ("otto", "exit 3"),
    ] {
        env.weald(&[
            "work", name, "--new", "--name", name, "--", "sh", "-c", command,
        ]);
        let sessions = env.weald(&["session", "list"]).stdout;
        assert!(!sessions.contains("alive"), "{name}: {sessions}");
    }
    let agent = started(&env, &["Fix it", "--name", "rita"]);
    let sessions = env.weald(&["session", "list"]).stdout;
    assert!(sessions.contains("alive"), "{sessions}");
    env.ok(&["agent", "stop", &agent.id.to_string()]);
    env.ok(&["agent", "wait", &agent.id.to_string()]);
    let sessions = env.weald(&["session", "list"]).stdout;
    assert!(!sessions.contains("alive"), "{sessions}");
    // Somebody who was there before stays.
    env.ok(&["session", "register", "paul"]);
    env.weald(&["work", "More", "--new", "--name", "paul", "--", "true"]);
    let sessions = env.weald(&["session", "list"]).stdout;
    assert!(sessions.contains("alive"), "{sessions}");
}

#[test]
fn y29_a_crashed_agent_is_shown_dead_at_once() {
    for name in [&[][..], &["--name", "alice"]] {
        let env = repository();
        let agent = started(&env, &[&["Fix it"], name].concat());
        signal(supervisor(&agent), Signal::KILL);
        until("its processes are gone", || {
            let is_there = |pid: u32| fs::metadata(format!("/proc/{pid}")).is_ok();
            !is_there(supervisor(&agent)) && !is_there(keeper(&agent))
        });
        let listed = env.weald(&["list"]).stdout;
        assert!(
            listed.contains("fix-it") && !listed.contains("running"),
            "{listed}"
        );
        let board = env.ok(&[]);
        assert_eq!(board["sessions"], serde_json::json!([]), "{name:?}");
        let tree = &board["trees"][0];
        assert_eq!(tree["name"], "fix-it", "{tree:#}");
        assert!(tree.get("runs").is_none(), "{tree:#}");
        let sessions = env.weald(&["session", "list"]).stdout;
        assert!(!sessions.contains("alive"), "{sessions}");
    }
}

#[test]
fn a_task_that_waits_for_a_missing_one_or_was_stopped_needs_you() {
    let env = repository();
    env.ok(&["task", "add", "Waits"]);
    let import = "{\"id\": \"7\", \"subject\": \"Waits\", \"blocked_by\": [\"99\"]}\n";
    let answer = env.weald_with_input(&["task", "import", "-"], import.as_bytes());
    assert_eq!(answer.code, 0, "{answer:#?}");
    let need = env.ok(&[])["needs"][0].clone();
    assert_eq!(need["about"], "task 7", "{need:#}");
    let what = need["what"].as_str().unwrap();
    assert!(what.contains("task 99, which does not exist"), "{what}");
    let command = need["command"].as_str().unwrap().to_owned();
    let words: Vec<_> = command.split(' ').skip(1).collect();
    env.ok(&words);
    assert_eq!(env.ok(&[])["needs"], serde_json::json!([]));
    let agent = started(&env, &["1"]);
    let id = agent.id.to_string();
    env.ok(&["agent", "stop", &id, "--release"]);
    env.ok(&["agent", "wait", &id]);
    let need = env.ok(&[])["needs"][0].clone();
    assert_eq!(need["command"], "weald resume 1", "{need:#}");
}
