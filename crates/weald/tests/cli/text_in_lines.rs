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

#[test]
fn y31_a_colour_ends_with_the_output_that_set_it_and_pipes_get_none() {
    let env = repository();
    set(&env, "setup.commands", "printf 'set up\\033[31m\\n' >&2");
    let script = "printf 'said \\033[2J\\033[31mred\\n'; echo x > config.py";
    let worked = env.weald(&["work", "Fix it", "--", "sh", "-c", script]);
    assert!(worked.stderr.contains("\nset up\n"), "{worked:#?}");
    for text in [&worked.stdout, &worked.stderr] {
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
    let pulse = env.weald(&["agent", "pulse", "a1"]).stdout;
    assert!(pulse.contains("said \u{fffd}[2Jred"), "{pulse:?}");
    // Where colours are wanted they stay, and end.
    let made = env.weald(&["--color=always", "new", "b"]).stderr;
    assert!(made.contains("\nset up\u{1b}[31m\n\u{1b}[0m"), "{made:?}");
}
