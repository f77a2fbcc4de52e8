//! Whose command a gate runs, and who approved it.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing_gate::{land, log_of, runs, set, toml_of, tree_with};
use crate::trees_remove::{commit, grow, repository};
use crate::trees_setup::commit_all;

/// Trust lists what it approves.
fn trusted(env: &TestEnv) -> Value {
    env.ok(&["trust", "--list"])["trust"]["landing"].clone()
}

#[test]
fn m24_a_command_of_the_repository_needs_an_approval() {
    let env = repository();
    let propose = |text: &str| {
        fs::write(env.repo().join("weald.toml"), text).unwrap();
        commit_all(&env);
    };
    propose(&toml_of("gate", "command", "echo theirs"));
    tree_with(&env, "a", "a.txt", "a\n");
    let refused = |code: &str| {
        let before = env.git(&["rev-parse", "main"]);
        let landing = land(&env, "a");
        assert_eq!(landing["outcome"], "refused", "{landing:#}");
        assert_eq!(landing["reason"]["code"], code, "{landing:#}");
        assert_eq!(landing["reason"]["hint"], "weald trust");
        assert_eq!(env.git(&["rev-parse", "main"]), before);
        assert_eq!(runs(&env), 0);
    };
    refused("not_trusted");
    let listed = json!([{
        "from": "weald.toml gate.command", "commands": ["echo theirs"], "approved": false
    }]);
    assert_eq!(trusted(&env), listed);
    let told = env.weald(&["trust"]).stdout;
    assert!(told.contains("  echo theirs"), "{told}");
    assert_eq!(trusted(&env)[0]["approved"], true);
    propose(&toml_of("gate", "command", "echo theirs; true"));
    refused("not_trusted");
    env.ok(&["trust", "--revoke"]);
    // What checks afterwards is asked for before.
    propose(&toml_of("landing", "check", "echo theirs"));
    refused("not_trusted");
    // An approval as a set-up command is none as a gate.
    propose("[setup]\ncommands = ['echo theirs']\n");
    env.ok(&["trust"]);
    propose(&toml_of("gate", "command", "echo theirs"));
    refused("not_trusted");
    env.ok(&["trust"]);
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    assert_eq!(landing["gate"]["command"], "echo theirs");
    // One's own needs none, and wins.
    propose(&toml_of("gate", "command", "echo others"));
    set(&env, "gate.command", "echo mine");
    tree_with(&env, "b", "b.txt", "b\n");
    assert_eq!(land(&env, "b")["gate"]["command"], "echo mine");
    assert_eq!(trusted(&env), json!([]));
}

#[test]
fn m24_what_a_tree_or_the_result_says_in_weald_toml_does_not_count() {
    let env = repository();
    fs::write(
        env.repo().join("weald.toml"),
        toml_of("gate", "command", "echo targets; exit 5"),
    )
    .unwrap();
    commit_all(&env);
    env.ok(&["trust"]);
    let tree = grow(&env, "a", "sealed");
    let loose = format!(
        "{}env = ['X']\n[policy]\ngate = 'none'\n",
        toml_of("gate", "command", "echo loosened")
    );
    commit(&env, &tree, "weald.toml", &loose);
    env.ok(&["approve", "a", "--yes"]);
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "red", "{landing:#}");
    let log = log_of(&landing);
    assert!(log.contains("\ntargets\n"), "{log}");
    assert!(!log.contains("loosened"), "{log}");
    // Nor from inside.
    let seen = env.home().join("weald");
    fs::copy(env!("CARGO_BIN_EXE_weald"), &seen).unwrap();
    let inside = env.weald(&["run", "a", "--", seen.to_str().unwrap(), "trust", "--json"]);
    assert_eq!(inside.error_code(), "not_allowed_inside", "{inside:#?}");
}
