//! What a gate remembers, where its files come from, and how several run at once.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing_gate::{land, land_with, log_of, runs, set, toml_of, tree_with, wait_until};
use crate::trees_remove::repository;
use crate::trees_setup::commit_all;
use crate::trees_work::is_running;

/// Lands the same change as before on the same target, from another tree.
fn again(env: &TestEnv, start: &str, name: &str, variables: &[(&str, &str)]) -> Value {
    env.git(&["reset", "-q", "--hard", start]);
    tree_with(env, name, "a.txt", "a\n");
    let landing = land_with(env, name, variables);
    env.git(&["reset", "-q", "--hard", start]);
    landing
}

#[test]
fn gate_remembers_green_by_everything_that_decided_it() {
    let env = repository();
    set(&env, "gate.command", "test -f a.txt");
    let start = env.git(&["rev-parse", "main"]).trim().to_owned();
    let mut number = 0;
    let mut check = |variables: &[(&str, &str)], is_cached: bool, why: &str| {
        number += 1;
        let before = runs(&env);
        let landing = again(&env, &start, &format!("t{number}"), variables);
        assert_eq!(landing["outcome"], "landed", "{why}: {landing:#}");
        assert_eq!(landing["gate"]["cached"] == true, is_cached, "{why}");
        assert_eq!(runs(&env) - before, usize::from(!is_cached), "{why}");
    };
    check(&[], false, "the first time");
    check(&[], true, "the same again");
    check(
        &[("TERM", "other"), ("ANY", "1")],
        true,
        "what it can't see",
    );
    check(&[("LANG", "C")], false, "what it can see");
    check(
        &[("WEALD_GATE_ENV", "X"), ("X", "1")],
        false,
        "a named variable",
    );
    check(
        &[("WEALD_GATE_ENV", "X"), ("X", "1")],
        true,
        "the same value",
    );
    check(
        &[("WEALD_GATE_ENV", "X"), ("X", "2")],
        false,
        "another value",
    );
    check(
        &[("WEALD_GATE_COMMAND", "test -e a.txt")],
        false,
        "a command",
    );
    check(&[("WEALD_SANDBOX_NETWORK", "off")], false, "no network");
    check(&[("WEALD_SETUP_COMMANDS", "true")], false, "a set-up");
    check(&[], true, "the first one is still known");
    for spoilt in ["", "{}", "garbage"] {
        for entry in fs::read_dir(env.private().join("receipts")).unwrap() {
            fs::write(entry.unwrap().path(), spoilt).unwrap();
        }
        check(&[], false, "no receipt");
        check(&[], true, "a new one");
    }
    // One that speaks of something else.
    for field in ["key", "tree", "command"] {
        for entry in fs::read_dir(env.private().join("receipts")).unwrap() {
            let path = entry.unwrap().path();
            let mut receipt: Value =
                serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap_or(json!({}));
            receipt[field] = json!("other");
            fs::write(&path, receipt.to_string()).unwrap();
        }
        check(&[], false, field);
    }
}

#[test]
fn gate_never_remembers_red() {
    let env = repository();
    set(&env, "gate.command", "exit 1");
    set(&env, "gate.retries", "0");
    tree_with(&env, "a", "a.txt", "a\n");
    for expected in 1..=3 {
        assert_eq!(land(&env, "a")["outcome"], "red");
        assert_eq!(runs(&env), expected);
    }
    assert!(!env.private().join("receipts").exists());
}

#[test]
fn gate_tree_from_a_spare_or_the_donor_is_exactly_the_result() {
    let env = repository();
    for number in 0..300 {
        let folder = env.repo().join(format!("src/{}", number % 7));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("f{number}")), format!("{number}\n")).unwrap();
    }
    commit_all(&env);
    let all = "git ls-files -s | git hash-object --stdin | sed s/^/index:/; \
        git status --porcelain --ignored | sed s/^/status:/; cat src/0/f7 | sed s/^/f7:/; ls src/0 | wc -l | sed s/^/count:/";
    set(&env, "gate.command", all);
    let pool = [("WEALD_POOL_SIZE", "1"), ("WEALD_POOL_BACKGROUND", "false")];
    let pooled = |args: &[&str]| {
        let mut command = env.weald_command(&[args, &["--json"]].concat());
        let output = command.envs(pool).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let spares = || {
        let entries = fs::read_dir(env.repo().join(".git/weald/pool")).unwrap();
        let entries = entries.map(|entry| entry.unwrap().path());
        let spares = entries.filter(|path| path.to_string_lossy().contains("/spare-"));
        spares.collect::<Vec<_>>()
    };
    let check = |name: &str, log: &str| {
        assert!(!log.contains("\nstatus:"), "{name}: {log}");
        assert!(log.contains("\nf7:7\n"), "{name}: {log}");
        assert!(log.contains("\ncount:43\n"), "{name}: {log}");
        env.git(&["reset", "-q", "--hard", "main"]);
    };
    let evil = |tree: &std::path::Path, what: &str| match what {
        "changed" => fs::write(tree.join("src/0/f7"), "EVIL\n").unwrap(),
        "added" => fs::write(tree.join("src/0/evil"), "EVIL\n").unwrap(),
        "ignored" => fs::write(tree.join("src/0/evil.log"), "EVIL\n").unwrap(),
        "gone" => fs::remove_file(tree.join("src/0/f7")).unwrap(),
        _ => {}
    };
    for what in ["as it is", "changed", "added", "ignored", "gone"] {
        let name = what.replace(' ', "-");
        tree_with(&env, &name, &format!("{name}.txt"), "a\n");
        assert_eq!(pooled(&["pool", "fill"])["pool"]["ready"], 1);
        evil(&spares()[0].join("tree"), what);
        let landing = land_with(&env, &name, &pool);
        assert_eq!(landing["outcome"], "landed", "{what}: {landing:#}");
        assert_eq!(spares().len(), 0, "{what}: the spare was taken");
        check(what, &log_of(&landing));
        // The same from the donor, which stays what it is: each has to notice by itself.
        let donor = format!("{name}-donor");
        tree_with(&env, &donor, &format!("{donor}.txt"), "a\n");
        evil(&env.repo().join(".git/weald/pool/donor/tree"), what);
        let landing = land_with(&env, &donor, &pool);
        assert_eq!(landing["outcome"], "landed", "{what}: {landing:#}");
        check(what, &log_of(&landing));
        pooled(&["pool", "drain"]);
    }
}

#[test]
fn gate_runs_several_at_once_each_on_top_of_those_ahead() {
    let env = repository();
    set(&env, "landing.parallel", "3");
    set(&env, "gate.command", "ls *.txt | sed s/^/has:/");
    for name in ["a", "b", "c"] {
        tree_with(&env, name, &format!("{name}.txt"), "x\n");
    }
    let answer = env.ok(&["land", "a", "b", "c"]);
    let landings = answer["landings"].as_array().unwrap();
    let held = ["has:a.txt\n", "has:b.txt\n", "has:c.txt\n"];
    for (place, landing) in landings.iter().enumerate() {
        assert_eq!(landing["outcome"], "landed", "{landing:#}");
        let log = log_of(landing);
        for (other, line) in held.iter().enumerate() {
            assert_eq!(log.contains(line), other <= place, "{place}: {log}");
        }
    }
    assert!(!env.root().join("app.weald/.gate").exists());
}

#[test]
fn gate_of_a_landing_that_was_dropped_is_called_off() {
    let env = repository();
    let length = "9417.5";
    set(
        &env,
        "gate.command",
        &format!("setsid sleep {length} & sleep {length}"),
    );
    tree_with(&env, "a", "a.txt", "a\n");
    let mut child = env.weald_command(&["land", "a"]).spawn().unwrap();
    wait_until(|| is_running(length));
    env.ok(&["queue", "drop", "1"]);
    child.wait().unwrap();
    assert!(!is_running(length), "a sleep is left");
    assert!(!env.root().join("app.weald/.gate").exists());
    let log = fs::read_to_string(env.private().join("landings/1-1.log")).unwrap();
    assert!(log.contains("ended:     called off"), "{log}");
}

#[test]
fn m17_the_check_runs_on_what_landed_and_is_not_remembered() {
    let env = repository();
    let check = "git rev-parse HEAD | sed s/^/head:/; env | grep ^WEALD_ | sed s/^/env:/; ls | sed s/^/file:/";
    set(&env, "landing.check", check);
    tree_with(&env, "a", "a.txt", "a\n");
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    let log = env
        .private()
        .join(format!("landings/{}-check-1.log", landing["id"]));
    let log = fs::read_to_string(log).unwrap();
    let tip = env.git(&["rev-parse", "main"]);
    assert!(log.contains(&format!("\nhead:{tip}")), "{log}");
    assert!(log.contains("\nfile:a.txt\n") && log.contains("\nenv:WEALD_CHECK=1\n"));
    assert!(!log.contains("WEALD_GATE="), "{log}");
    assert!(!env.private().join("receipts").exists());
}

#[test]
fn m17_a_red_check_is_tried_again_as_a_gate_is() {
    let env = repository();
    fs::write(
        env.repo().join("weald.toml"),
        toml_of("landing", "check", "echo checked; exit 1"),
    )
    .unwrap();
    commit_all(&env);
    env.ok(&["trust"]);
    tree_with(&env, "a", "a.txt", "a\n");
    env.weald(&["land", "a"]);
    let landings = env.private().join("landings");
    for name in ["1-check-1.log", "1-check-2.log"] {
        let log = fs::read_to_string(landings.join(name)).unwrap();
        assert!(log.contains("\nchecked\n"), "{log}");
    }
}
