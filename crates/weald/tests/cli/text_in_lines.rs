//! What hooks and tests say is shown as it was: in its lines, without their colours, and without anything that a terminal obeys.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::landing_gate::{set, tree_with};
use crate::mcp_client::McpClient;
use crate::trees_remove::repository;

#[test]
fn y31_several_lines_of_a_hook_are_shown_as_lines_everywhere() {
    let env = repository();
    let file = env.repo().join(".git/hooks/pre-commit");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let script = "printf '\\033[31mline one\\033[0m\\n\\tline two\\r\\nline three\\n' >&2; exit 1";
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let work = ["work", "Fix it", "--", "sh", "-c", "echo x > config.py"];
    let worked = env.weald(&work);
    assert_eq!(worked.code, 1, "{worked:#?}");
    let lines = "line one\n    \tline two\n    line three\n";
    assert!(worked.stdout.contains(lines), "{}", worked.stdout);
    let pulse = env.weald(&["agent", "pulse", "a1"]).stdout;
    assert!(
        pulse.contains(&lines.replace("    ", &" ".repeat(15))),
        "{pulse}"
    );
    let landed = env.weald(&["land", "fix-it", "--commit", "-m", "x"]).stdout;
    assert!(landed.contains(lines), "{landed}");
    assert!(
        landed.contains("the pre-commit hook in fix-it failed"),
        "{landed}"
    );
    for args in [
        &["resume", "1", "--dry-run"][..],
        &["rescue", "1"],
        &["agent", "list", "--all"],
        &["events"],
        &["queue", "status", "--all"],
        &[],
    ] {
        let told = env.weald(args);
        let said = format!("{}{}", told.stdout, told.stderr);
        assert!(!said.contains('\u{fffd}'), "{args:?}: {said}");
        assert!(!said.contains('\u{1b}'), "{args:?}: {said}");
    }
    let all = [&worked.stdout, &worked.stderr, &pulse, &landed];
    assert!(
        all.iter()
            .all(|text| !text.contains(['\u{fffd}', '\u{1b}'])),
        "{all:?}"
    );
    // Tests of a landing, for an agent.
    fs::remove_file(&file).unwrap();
    set(&env, "gate.command", "printf 'one\\ntwo\\n'; exit 1");
    tree_with(&env, "other", "file", "1\n");
    let mut client = McpClient::open(&env);
    let red = client.call("land", json!({"name": "other"}));
    assert_eq!(red["landings"][0]["outcome"], "red", "{red:#}");
    assert!(!red.to_string().contains('\u{fffd}'), "{red:#}");
    let id = red["landings"][0]["id"].to_string();
    let log = env.weald(&["queue", "log", &id]).stdout;
    assert!(log.contains("one\ntwo\n"), "{log}");
}
