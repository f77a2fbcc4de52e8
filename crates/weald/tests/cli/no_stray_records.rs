//! A start that is refused or fails leaves nothing behind that looks like work, and what is dead is shown as dead.

use std::fs;
use std::os::unix::fs::PermissionsExt;

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

#[test]
fn y29_an_agent_that_could_not_start_leaves_its_new_task_to_nobody() {
    let env = repository();
    let program = env.root().join("program");
    fs::write(&program, "#!/nonexistent/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    let answer = env.weald(&["work", "Fix it", "--json", "--", program]);
    assert_eq!(answer.error_code(), "agent_not_started", "{answer:#?}");
    assert_eq!(status(&env, "1"), "cancelled");
    assert_eq!(env.ok(&["list"])["trees"], serde_json::json!([]));
    let board = env.ok(&[]);
    for section in ["ready", "in_progress", "needs", "sessions", "agents"] {
        assert_eq!(board[section], serde_json::json!([]), "{section}");
    }
    // A task that was there before waits as it did.
    env.ok(&["task", "add", "Mine"]);
    env.weald(&["work", "2", "--", program]);
    assert_eq!(status(&env, "2"), "pending");
    assert_eq!(env.ok(&[])["sessions"], serde_json::json!([]));
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
