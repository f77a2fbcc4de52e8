//! Configuration: order, origins, whose word counts.

use std::fs;

use serde_json::{Value, json};

use crate::env;

fn value(shown: &Value, key: &str) -> (String, String) {
    let values = shown["config"]["values"].as_array().unwrap();
    let found = values.iter().find(|value| value["key"] == key).unwrap();
    let text = |field: &str| {
        found[field]
            .as_str()
            .map_or_else(|| found[field].to_string(), str::to_owned)
    };
    (text("value"), text("origin"))
}

#[test]
fn p14_each_layer_wins_over_the_one_before() {
    let env = env();
    let strategy = |args: &[&str]| {
        value(
            &env.ok(&[&["config", "show"], args].concat()),
            "landing.strategy",
        )
    };
    assert_eq!(strategy(&[]), ("squash".into(), "default".into()));
    env.ok(&["init", "--profile", "classroom"]);
    assert_eq!(strategy(&[]), ("merge".into(), "profile classroom".into()));
    fs::write(
        env.repo().join("weald.toml"),
        "landing.strategy = 'rebase'\n",
    )
    .unwrap();
    let shown = env.weald(&["config", "show"]);
    assert!(
        shown.stderr.contains("weald.toml here differs"),
        "{shown:?}"
    );
    assert_eq!(
        strategy(&[]).0,
        "merge",
        "a file in the checkout does not count"
    );
    env.git(&["add", "weald.toml"]);
    env.git(&["commit", "-q", "-m", "config"]);
    assert_eq!(
        strategy(&[]),
        ("rebase".into(), "weald.toml at main".into())
    );
    let user = env.home().join(".config/weald");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("config.toml"), "[landing]\nstrategy = 'ff'\n").unwrap();
    assert_eq!(strategy(&[]).0, "ff");
    env.ok(&["config", "set", "landing.strategy", "squash"]);
    let (found, origin) = strategy(&[]);
    assert!(
        found == "squash" && origin.ends_with("private/config.toml"),
        "{origin}"
    );
    let mut command = env.weald_command(&["config", "show", "--json"]);
    let output = command
        .env("WEALD_LANDING_STRATEGY", "merge")
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        value(&shown, "landing.strategy"),
        ("merge".into(), "$WEALD_LANDING_STRATEGY".into())
    );
    assert_eq!(
        strategy(&["--set", "landing.strategy=ff"]),
        ("ff".into(), "--set".into())
    );
    env.ok(&["config", "unset", "landing.strategy"]);
    assert_eq!(strategy(&[]).0, "ff");
}

#[test]
fn p14_the_targets_file_is_read_again_when_the_target_moves() {
    let env = env();
    env.ok(&["task", "add", "makes the cache"]);
    for (text, ttl) in [
        ("lease.ttl = '7m'", "7m"),
        ("lease.ttl = '8m'", "8m"),
        ("", "15m"),
    ] {
        fs::write(env.repo().join("weald.toml"), text).unwrap();
        env.git(&["add", "weald.toml"]);
        env.git(&["commit", "-q", "-m", "config"]);
        for _ in 0..2 {
            assert_eq!(value(&env.ok(&["config", "show"]), "lease.ttl").0, ttl);
        }
    }
}

#[test]
fn the_repository_cannot_loosen_and_own_mistakes_are_errors() {
    let env = env();
    fs::write(
        env.repo().join("weald.toml"),
        "policy.gate = 'none'\nnope = 1\n",
    )
    .unwrap();
    env.git(&["add", "weald.toml"]);
    env.git(&["commit", "-q", "-m", "config"]);
    let shown = env.ok(&["config", "show"]);
    assert_eq!(
        value(&shown, "policy.gate"),
        ("tests".into(), "default".into())
    );
    assert_eq!(shown["config"]["ignored"].as_array().unwrap().len(), 2);
    assert_eq!(shown["config"]["target"]["branch"], "main");
    for (key, bad) in [
        ("lease.ttl", "0s"),
        ("lease.ttl", "-1m"),
        ("name.max", "65"),
        ("tree.path", "{nope}"),
    ] {
        env.refused(&["config", "set", key, bad], 2, "invalid_value");
    }
    env.refused(&["config", "set", "stragety", "x"], 2, "unknown_key");
    env.refused(&["config", "show", "nosuch.key"], 2, "unknown_key");
    fs::create_dir_all(env.private()).unwrap();
    fs::write(env.private().join("config.toml"), "lease.ttl = 'soon'\n").unwrap();
    env.refused(&["task", "list"], 1, "config_invalid");
    env.ok(&["config", "set", "lease.ttl", "20m"]);
    env.ok(&["task", "list"]);
    fs::write(env.private().join("config.toml"), "lease.ttl = \n").unwrap();
    env.refused(&["task", "list"], 1, "config_syntax");
}

#[test]
fn setting_a_key_keeps_the_rest_of_the_file() {
    let env = env();
    let file = env.private().join("config.toml");
    fs::create_dir_all(env.private()).unwrap();
    fs::write(&file, "# mine\n[lease] # short\nttl = '1m'\n").unwrap();
    env.ok(&["config", "set", "landing.strategy", "ff"]);
    env.ok(&["config", "set", "tree.share_paths", "target, node_modules"]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("# mine\n[lease] # short\nttl = '1m'\n"),
        "{text}"
    );
    let shown = env.ok(&["config", "show", "tree.share_paths"]);
    assert_eq!(
        shown["config"]["values"][0]["value"],
        json!(["target", "node_modules"])
    );
}

#[test]
fn init_writes_the_private_file_or_the_shared_one() {
    let env = env();
    env.refused(&["init", "--profile", "nosuch"], 2, "invalid_value");
    let made = env.ok(&["init", "--profile", "two-plane", "--shared"]);
    assert_eq!(made["init"]["shared"], true);
    assert_eq!(
        fs::read_to_string(env.repo().join("weald.toml")).unwrap(),
        "profile = \"two-plane\"\n"
    );
    assert_eq!(
        value(&env.ok(&["config", "show"]), "name.max").0,
        "64",
        "not on the target yet"
    );
    env.git(&["add", "weald.toml"]);
    env.git(&["commit", "-q", "-m", "config"]);
    assert_eq!(
        value(&env.ok(&["config", "show"]), "name.max"),
        ("40".into(), "profile two-plane".into())
    );
    assert_eq!(
        env.ok(&["init"])["init"]["profile"],
        "two-plane",
        "what holds is kept"
    );
    env.ok(&["init", "--profile", "default"]);
    env.ok(&["init"]);
    assert_eq!(
        value(&env.ok(&["config", "show"]), "name.max").0,
        "64",
        "one's own word counts more"
    );
}

#[test]
fn config_of_others_is_bounded_and_never_waited_for() {
    let env = env();
    let file = env.repo().join("weald.toml");
    assert!(env.command("mkfifo").arg(&file).status().unwrap().success());
    env.ok(&["task", "list"]);
    fs::remove_file(&file).unwrap();
    for text in [
        "policy.gate = ".to_owned(),
        "#".repeat(300 * 1024),
        "lease.ttl = '384307168202282325d'".to_owned(),
    ] {
        fs::write(&file, &text).unwrap();
        env.git(&["add", "weald.toml"]);
        env.git(&["commit", "-q", "-m", "odd"]);
        let gate = value(&env.ok(&["config", "show"]), "policy.gate").0;
        assert_eq!(
            gate,
            if text.starts_with("lease") {
                "tests"
            } else {
                "human"
            },
            "unreadable is strict"
        );
    }
    let answer = env.weald(&["task", "claim", "--json", "--ttl", "384307168202282325d"]);
    assert_eq!(
        (answer.code, answer.error_code().as_str()),
        (2, "invalid_value")
    );
}

#[test]
fn config_comes_from_the_target_and_not_from_a_worktree() {
    let env = env();
    env.git(&["branch", "-m", "main", "trunk"]);
    let linked = env.root().join("x");
    env.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "wt/x",
        linked.to_str().unwrap(),
    ]);
    fs::write(linked.join("weald.toml"), "landing.strategy = 'ff'\n").unwrap();
    let linked = linked.to_str().unwrap();
    env.git(&["-C", linked, "add", "weald.toml"]);
    env.git(&["-C", linked, "commit", "-q", "-m", "mine"]);
    let shown = env.ok(&["-C", linked, "config", "show"]);
    assert_eq!(value(&shown, "landing.strategy").0, "squash");
    assert_eq!(shown["config"]["target"]["branch"], "trunk");
}

#[test]
fn parallel_settings_are_all_kept_and_the_folder_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let env = env();
    let keys = [
        "lease.ttl",
        "session.stale_after",
        "clean.min_age",
        "clean.stale_after",
    ];
    let started: Vec<_> = keys
        .iter()
        .map(|key| {
            env.weald_command(&["config", "set", key, "9m"])
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
    let shown = env.ok(&["config", "show"]);
    for key in keys {
        assert_eq!(value(&shown, key).0, "9m", "{key}");
    }
    let mode = fs::metadata(env.private()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_message_that_names_something_unknown_is_refused() {
    let env = env();
    let wrong = ["config", "set", "landing.message", "{subjekt}"];
    let refused = env.refused(&wrong, 2, "invalid_value");
    assert!(refused.to_string().contains("{subject}"), "{refused:#}");
    env.ok(&["config", "set", "landing.message", "{name}: {subject}"]);
}
