//! Sessions on the command line.

use crate::env;

#[test]
fn s1_the_registry_registers_beats_checks_lists_and_ends() {
    let env = env();
    env.refused(&["session", "check", "alice"], 4, "session_not_found");
    let registered = env.ok(&["session", "register", "alice"]);
    assert_eq!(registered["session"]["name"], "alice");
    assert_eq!(registered["session"]["liveness"], "alive");
    env.ok(&["task", "add", "t"]);
    let beaten = env.ok(&["session", "heartbeat", "alice", "--task", "1"]);
    assert_eq!(beaten["session"]["task"], 1);
    env.refused(&["session", "heartbeat", "nobody"], 4, "session_not_found");
    assert_eq!(env.weald(&["session", "is-active", "alice"]).code, 0);
    let listed = env.ok(&["session", "list"]);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    env.ok(&["session", "deregister", "alice"]);
    assert_eq!(env.weald(&["session", "check", "alice"]).code, 1);
    assert!(
        env.ok(&["session", "list"])["sessions"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        env.ok(&["session", "list", "--all"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn s1_a_session_dies_with_its_process() {
    let env = env();
    let mut process = env.command("sleep").arg("600").spawn().unwrap();
    let pid = process.id().to_string();
    env.ok(&["session", "register", "agent", "--pid", &pid]);
    assert_eq!(
        env.ok(&["session", "check", "agent"])["session"]["liveness"],
        "alive"
    );
    let me = std::process::id().to_string();
    env.refused(
        &["session", "register", "agent", "--pid", &me],
        5,
        "session_taken",
    );
    process.kill().unwrap();
    process.wait().unwrap();
    let answer = env.weald(&["session", "check", "agent", "--json"]);
    assert_eq!(
        (answer.code, answer.json()["session"]["liveness"].as_str()),
        (1, Some("dead"))
    );
    env.ok(&["session", "register", "agent", "--pid", &me]);
    env.refused(
        &["session", "register", "x", "--pid", "4000000"],
        4,
        "no_process",
    );
}

#[test]
fn s2_a_task_of_another_live_session_is_contested() {
    let env = env();
    env.ok(&["task", "add", "t"]);
    assert_eq!(
        env.weald(&["session", "check", "--task", "1", "--session", "bob"])
            .code,
        0
    );
    env.ok(&["session", "register", "alice"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    assert_eq!(
        env.weald(&["session", "check", "--task", "1", "--session", "alice"])
            .code,
        0
    );
    let refused = env.refused(
        &["session", "check", "--task", "1", "--session", "bob"],
        1,
        "task_contested",
    );
    assert_eq!(refused["error"]["details"]["contest"]["owner"], "alice");
    env.ok(&["session", "end", "alice"]);
    assert_eq!(
        env.weald(&["session", "check", "--task", "1", "--session", "bob"])
            .code,
        0
    );
}

#[test]
fn s3_identity_is_flag_then_variable_then_agent_then_ancestor_then_nobody() {
    let env = env();
    let owner = |args: &[&str], variables: &[(&str, &str)]| {
        env.ok(&["task", "add", "t"]);
        let mut command = env.weald_command(&[&["task", "claim", "--json"], args].concat());
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let warned = String::from_utf8_lossy(&output.stderr).contains("WEALD_SESSION");
        (
            answer["lease"]["session"].as_str().unwrap().to_owned(),
            warned,
        )
    };
    let all = [
        ("WEALD_SESSION", "variable"),
        ("CLAUDE_CODE_SESSION_ID", "abc-1"),
    ];
    assert_eq!(owner(&["--session", "flag"], &all), ("flag".into(), false));
    assert_eq!(owner(&[], &all), ("variable".into(), false));
    assert_eq!(owner(&[], &all[1..]), ("claude-abc-1".into(), false));
    let (nobody, warned) = owner(&[], &[]);
    assert!(nobody.starts_with("anon-") && warned, "{nobody}");
    // This test is the ancestor of every command it starts.
    env.ok(&[
        "session",
        "register",
        "shell",
        "--pid",
        &std::process::id().to_string(),
    ]);
    assert_eq!(owner(&[], &[]), ("shell".into(), false));
    let mut odd = env.weald_command(&["task", "claim", "--json"]);
    let output = odd.env("WEALD_SESSION", "../x").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn s4_notes_outlive_the_session_and_ending_releases() {
    let env = env();
    env.ok(&["task", "add", "t"]);
    env.ok(&["session", "register", "alice"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    env.refused(&["session", "note", "--session", "alice"], 4, "no_note");
    env.ok(&[
        "session",
        "note",
        "parser done, tests next",
        "--session",
        "alice",
    ]);
    let ended = env.ok(&["session", "end", "alice"]);
    assert_eq!(ended["released"], serde_json::json!([1]));
    assert_eq!(env.ok(&["task", "show", "1"])["task"]["status"], "pending");
    let note = env.weald(&["session", "note", "--session", "alice"]);
    assert_eq!(note.stdout, "parser done, tests next\n");
    env.ok(&["session", "register", "alice"]);
    assert_eq!(
        env.weald(&["session", "note", "--session", "alice"]).stdout,
        "parser done, tests next\n"
    );
}
