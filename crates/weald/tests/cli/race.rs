//! Races: several agents on one task, each in its own tree; one is picked and lands, the others wait in the trash.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::show;
use crate::landing_gate::wait_until;
use crate::no_stray_records::unloadable;
use crate::phases::{begin, events};
use crate::trees_create::{branches, listed};
use crate::trees_remove::repository;

/// A repository with task 1.
fn field() -> TestEnv {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    env
}

fn race(env: &TestEnv, script: &str) -> Value {
    env.ok(&["race", "1", "-n", "2", "--", "sh", "-c", script])
}

fn task(env: &TestEnv) -> Value {
    env.ok(&["task", "show", "1"])["task"].clone()
}

#[test]
fn s16_two_entries_run_side_by_side_and_the_pick_lands() {
    let env = field();
    let script =
        "echo $WEALD_ROLE > who; test $WEALD_ROLE = race:a || echo more >> who; echo dirt > left";
    let told = race(&env, script);
    let entries = told["race"]["entries"].as_array().unwrap();
    let column = |name: &str| {
        entries
            .iter()
            .map(|one| one[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(column("tree"), [json!("fix-it-a"), json!("fix-it-b")]);
    assert_eq!(column("state"), [json!("done"), json!("done")]);
    assert_eq!(column("added"), [json!(2), json!(3)]);
    assert_eq!(column("files"), [json!(2), json!(2)]);
    assert_eq!(listed(&env), ["fix-it-a", "fix-it-b"]);
    let parked = task(&env);
    assert_eq!(
        (&parked["status"], &parked["lease"]),
        (&json!("in_progress"), &Value::Null)
    );
    env.refused(
        &["task", "claim", "1", "--session", "other"],
        5,
        "task_held",
    );
    env.refused(&["race", "pick", "1", "nobody"], 4, "no_entry");
    let picked = env.ok(&["race", "pick", "1", "b"]);
    assert_eq!(picked["landing"]["status"], "landed", "{picked}");
    assert_eq!(show(&env, "who"), "race:b\nmore\n");
    assert_eq!(show(&env, "left"), "dirt\n");
    assert_eq!(task(&env)["status"], "completed");
    assert!(listed(&env).is_empty());
    for name in ["a", "b", "fix-it-a"] {
        env.refused(&["race", "pick", "1", name], 1, "picked_already");
    }
    // The loser comes back as it was.
    let trash = env.ok(&["trash", "list"]);
    let loser = trash["trash"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "fix-it-a");
    env.ok(&["trash", "restore", &loser.unwrap()["id"].to_string()]);
    let who = fs::read_to_string(env.root().join("app.weald/fix-it-a/who")).unwrap();
    assert_eq!(who, "race:a\n");
    let again = env.ok(&["race", "show", "1"]);
    assert_eq!(again["race"]["entries"][1]["picked"], true);
}

#[test]
fn s16_a_pick_that_does_not_land_keeps_every_entry() {
    let env = field();
    race(&env, "echo $WEALD_ROLE > who");
    env.ok(&["config", "set", "gate.command", "false"]);
    env.ok(&["config", "set", "gate.retries", "0"]);
    let red = env.weald(&["race", "pick", "1", "a", "--json"]);
    assert_eq!(red.code, 1, "{red:#?}");
    assert_eq!(listed(&env), ["fix-it-a", "fix-it-b"]);
    env.ok(&["config", "set", "gate.command", "true"]);
    env.ok(&["race", "pick", "1", "b"]);
    assert_eq!(show(&env, "who"), "race:b\n");
}

#[test]
fn s16_an_entry_that_can_t_be_prepared_takes_the_other_away() {
    let env = field();
    env.git(&["branch", "wt/fix-it-b"]);
    let answer = env.weald(&["race", "1", "-n", "2", "--json", "--", "true"]);
    assert_ne!(answer.code, 0, "{answer:#?}");
    assert!(listed(&env).is_empty());
    assert!(!branches(&env).contains(&"wt/fix-it-a".to_owned()));
    let free = task(&env);
    assert_eq!(
        (&free["status"], &free["owner"]),
        (&json!("pending"), &Value::Null)
    );
    assert!(events(&env, "agent.spawned").is_empty());
    env.refused(
        &["race", "1", "--with", "nobody,command"],
        4,
        "driver_not_found",
    );
    env.refused(&["race", "show", "1"], 4, "no_race");
    // An agent that can't be started is the same.
    env.git(&["branch", "-D", "wt/fix-it-b"]);
    let tool = env.home().join("tool");
    unloadable(&tool);
    let missing = ["race", "1", "-n", "2", "--", tool.to_str().unwrap()];
    let answer = env.weald(&[&["--json"], &missing[..]].concat());
    assert_eq!(
        (answer.code, answer.error_code().as_str()),
        (1, "agent_not_started")
    );
    assert!(listed(&env).is_empty());
    assert_eq!(task(&env)["status"], "pending");
    let unknown = ["race", "1", "-n", "2", "--", "no-such-program"];
    env.refused(&unknown, 4, "driver_not_installed");
}

#[test]
fn s16_a_winner_needs_a_finish_and_a_running_loser_is_stopped() {
    let env = field();
    let script = "case $WEALD_ROLE in race:a) exit 3;; race:b) echo b > b;; *) echo x > started; exec sleep 987.25;; esac";
    let mut child = begin(&env, &["race", "1", "-n", "3", "--", "sh", "-c", script]);
    wait_until(|| {
        events(&env, "agent.exited").len() == 2
            && env.root().join("app.weald/fix-it-c/started").exists()
    });
    env.refused(&["race", "pick", "1", "a"], 1, "entry_not_done");
    env.refused(&["race", "pick", "1", "c"], 1, "entry_not_done");
    let picked = env.ok(&["race", "pick", "1", "fix-it-b"]);
    assert_eq!(picked["landing"]["status"], "landed", "{picked}");
    assert!(
        !crate::trees_work::is_running("987.25"),
        "the loser was stopped"
    );
    assert_eq!(listed(&env), [""; 0], "{picked}");
    child.wait().unwrap();
    assert_eq!(
        task(&env)["status"],
        "completed",
        "the race's own process takes nothing back"
    );
    let ended = crate::phases::ended(&env);
    assert!(
        ended
            .iter()
            .any(|agent| agent["end"]["outcome"] == "stopped")
    );
}

#[test]
fn s16_entries_outlive_the_process_that_started_them() {
    let env = field();
    let script = "echo $WEALD_ROLE > who; until test -e go; do sleep 0.05; done";
    let mut child = begin(&env, &["race", "1", "-n", "2", "--", "sh", "-c", script]);
    wait_until(|| events(&env, "agent.started").len() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let held = env.weald(&["work", "1", "--", "true"]);
    assert_eq!(held.code, 5, "they work on it: {held:#?}");
    for tree in ["fix-it-a", "fix-it-b"] {
        fs::write(env.root().join("app.weald").join(tree).join("go"), "").unwrap();
    }
    wait_until(|| task(&env)["lease"] == Value::Null);
    assert_eq!(task(&env)["status"], "in_progress", "it waits for a pick");
    env.ok(&["race", "pick", "1", "a"]);
    assert_eq!(show(&env, "who"), "race:a\n");
}

#[test]
fn s16_a_race_can_be_dropped() {
    let env = field();
    race(&env, "echo x > x");
    let dropped = env.ok(&["race", "drop", "1"]);
    assert_eq!(
        dropped["race"]["dropped"].as_array().unwrap().len(),
        2,
        "{dropped}"
    );
    assert!(listed(&env).is_empty());
    let free = task(&env);
    assert_eq!(
        (&free["status"], &free["owner"]),
        (&json!("pending"), &Value::Null)
    );
    assert_eq!(
        env.ok(&["trash", "list"])["trash"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    // And again: it is a new race.
    race(&env, "echo y > y");
    env.ok(&["race", "pick", "1", "a"]);
    assert_eq!(show(&env, "y"), "y\n");
}

#[test]
fn y17_a_pick_that_needs_an_approval_says_how_to_pick_again() {
    let env = field();
    race(&env, "echo x > .envrc; git add .envrc; git commit -qm x");
    let picked = env.weald(&["race", "pick", "1", "a"]);
    assert_ne!(picked.code, 0, "{picked:#?}");
    assert!(picked.stderr.contains("weald race pick 1 a"), "{picked:#?}");
    env.ok(&["approve", "fix-it-a", "--yes"]);
    env.ok(&["race", "pick", "1", "a"]);
    assert_eq!(show(&env, ".envrc"), "x\n");
}

#[test]
fn y19_an_entry_without_a_report_is_picked_with_one_and_the_race_ends() {
    for profile in ["refact", "classroom", "jean-claude"] {
        let env = repository();
        env.ok(&["init", "--profile", profile]);
        env.ok(&["task", "add", "Fix it"]);
        let raced = race(&env, "echo $WEALD_ROLE > who");
        let entries = raced["race"]["entries"].as_array().unwrap().clone();
        let board = env.weald(&[]).stdout;
        assert!(!board.contains("race-1 dead"), "{board}");
        let needs = "task 1 its race has ended\n    weald race show 1\n";
        assert!(board.contains(needs), "{board}");
        let tree = entries[0]["tree"].as_str().unwrap();
        let name = |entry: &Value| entry["tree"].as_str().unwrap().to_owned();
        if profile == "refact" {
            let refused = env.weald(&["race", "pick", "1", "a", "--json"]);
            let error = refused.json()["error"].clone();
            assert_eq!(error["code"], "not_ready_to_land", "{error}");
            assert_eq!(error["hint"], "weald race pick 1 a --report TEXT");
            assert_eq!(task(&env)["worktree"], Value::Null, "nothing was picked");
        }
        // Neither another agent nor a plain landing goes around the pick.
        env.refused(&["resume", "1"], 1, "race_undecided");
        let refused = env.refused(&["land", tree, "--report", "it runs"], 1, "race_undecided");
        let hint = "weald race pick 1 a --report \"it runs\"";
        assert_eq!(refused["error"]["hint"], hint, "{refused}");
        let picked = env.ok(&["race", "pick", "1", "a", "--report", "made who"]);
        assert_eq!(picked["landing"]["status"], "landed", "{profile} {picked}");
        assert_eq!(show(&env, "who"), "race:a\n");
        let task = task(&env);
        assert_eq!(task["status"], "completed", "{profile}");
        assert_eq!(task["report"], "made who", "{profile}");
        assert!(!listed(&env).contains(&name(&entries[1])), "{profile}");
        env.refused(&["race", "pick", "1", "b"], 1, "picked_already");
        env.refused(&["race", "drop", "1"], 1, "picked_already");
        assert_eq!(show(&env, "who"), "race:a\n");
    }
}

#[test]
fn y19_a_race_is_called_by_the_number_of_its_issue() {
    let env = repository();
    env.ok(&["config", "set", "source.from", "gh"]);
    env.ok(&["task", "add", "Race me", "--id", "gh-13"]);
    let args = ["race", "13", "-n", "2", "--", "sh", "-c", "echo x > x"];
    assert_eq!(env.weald(&args).code, 0);
    let shown = env.ok(&["race", "show", "13"]);
    assert_eq!(shown["race"]["entries"].as_array().unwrap().len(), 2);
    let picked = env.ok(&["race", "pick", "13", "a", "--report", "x"]);
    assert_eq!(picked["landing"]["status"], "landed", "{picked}");
}
