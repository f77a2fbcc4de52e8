//! What a person does with tasks, and what a group of commands prints alone.

use serde_json::Value;

use crate::env;

#[test]
fn u10_a_group_of_commands_alone_lists_what_there_is() {
    let env = env();
    env.ok(&["task", "add", "Fix the login"]);
    env.ok(&["new", "gone"]);
    env.ok(&["rm", "gone"]);
    env.ok(&["session", "register", "alice"]);
    for (group, command) in [
        ("task", "list"),
        ("trash", "list"),
        ("session", "list"),
        ("queue", "status"),
        ("vault", "status"),
        ("pool", "status"),
        ("msg", "inbox"),
        ("sandbox", "explain"),
    ] {
        let alone = env.weald(&[group]);
        let named = env.weald(&[group, command]);
        assert_eq!((alone.code, &alone.stdout), (0, &named.stdout), "{group}");
        let json: Value = env.ok(&[group]);
        assert_eq!(json["schema_version"], 1, "{group}");
    }
    assert!(env.weald(&["task"]).stdout.contains("Fix the login"));
    assert!(env.weald(&["trash"]).stdout.contains("gone"));
    assert!(env.weald(&["session"]).stdout.contains("alice"));
    env.refused(&["task", "nosuch"], 2, "usage");
}

#[test]
fn u10_a_person_completes_a_task_that_nobody_began() {
    let env = env();
    let add = |args: &[&str]| env.ok(&[&["task", "add"], args].concat())["task"]["id"].to_string();
    let (first, then) = (
        add(&["Call the landlord"]),
        add(&["Move out", "--after", "1"]),
    );
    let mut agent = env.weald_command(&["task", "done", &first, "--json"]);
    let refused = agent.env("CLAUDECODE", "1").output().unwrap();
    let refused: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(
        refused["error"]["code"], "illegal_move",
        "an agent claims it before"
    );
    let done = env.ok(&["task", "done", &first, "--report", "he agreed"]);
    assert_eq!(done["task"]["status"], "completed");
    assert_eq!(done["task"]["report"], "he agreed");
    assert_eq!(done["unblocked"][0].to_string(), then);
    env.refused(&["task", "done", &first], 1, "illegal_move");
    let claim = env.ok(&["task", "claim", &then, "--session", "alice"]);
    env.refused(&["task", "done", &then], 1, "token_required");
    let token = claim["lease"]["token"].to_string();
    env.ok(&["task", "done", &then, "--token", &token]);
}
