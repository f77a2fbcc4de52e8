//! Landings that fail after their task was completed: it is open again, and whatever depends on it waits.

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing_moving::sh;
use crate::sources::Field;
use crate::trees_remove::repository;
use crate::work::status;

const THEIRS: &str = "echo theirs > f";

/// A completed task with unlanded work, and one that depends on it. Answers the name of the tree.
fn finished(env: &TestEnv) -> String {
    sh(
        env,
        &env.repo(),
        "echo base > f; git add f; git commit -q -m f",
    );
    env.ok(&["task", "add", "First"]);
    env.ok(&["task", "add", "Second", "--after", "1"]);
    let args = ["work", "1", "--no-land", "--", "sh", "-c", THEIRS];
    let tree = env.ok(&args)["tree"]["name"].as_str().unwrap().to_owned();
    assert_eq!(status(env, "1"), "completed");
    // Nobody tried to land it, so what depends on it may begin; the board says what is missing.
    assert_eq!(ready(env), [json!(2)]);
    let needs = needs(env);
    assert_eq!(
        needs,
        [("unlanded".to_owned(), format!("weald land {tree}"))]
    );
    tree
}

fn ready(env: &TestEnv) -> Vec<Value> {
    let tasks = env.ok(&["task", "ready"])["tasks"].clone();
    let tasks = tasks.as_array().unwrap().iter();
    tasks.map(|task| task["id"].clone()).collect()
}

fn needs(env: &TestEnv) -> Vec<(String, String)> {
    let board = env.ok(&[]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let needs = board["needs"].as_array().unwrap().iter();
    needs
        .map(|need| (text(&need["kind"]), text(&need["command"])))
        .collect()
}

#[test]
fn y10_a_conflict_reopens_a_completed_task_and_its_dependants_wait() {
    for profile in ["default", "refact", "classroom", "two-plane"] {
        let env = repository();
        if profile != "default" {
            env.ok(&["init", "--profile", profile]);
        }
        let tree = finished(&env);
        sh(&env, &env.repo(), "echo ours > f; git commit -q -a -m ours");
        let failed = env.weald(&["land", &tree, "--report", "done", "--json"]);
        assert_eq!(failed.code, 3, "{profile}: {failed:#?}");
        assert_eq!(status(&env, "1"), "needs_merge", "{profile}");
        assert_eq!(ready(&env), [json!(null); 0], "{profile}");
        let sync = format!("weald sync {tree}");
        assert_eq!(needs(&env), [("needs_merge".to_owned(), sync)], "{profile}");
        assert_eq!(env.weald(&["sync", &tree]).code, 3, "{profile}");
        let merge = "echo both > f; git commit -q -a -m both";
        assert_eq!(env.weald(&["run", &tree, "--", "sh", "-c", merge]).code, 0);
        env.ok(&["land", &tree, "--report", "done"]);
        assert_eq!(status(&env, "1"), "completed", "{profile}");
        assert_eq!(ready(&env), [json!(2)], "{profile}");
        assert_eq!(needs(&env), [], "{profile}");
        assert_eq!(env.git(&["show", "main:f"]), "both\n", "{profile}");
    }
}

#[test]
fn y10_a_red_gate_parks_a_completed_task_until_it_lands() {
    let env = repository();
    let tree = finished(&env);
    env.ok(&["config", "set", "gate.retries", "0"]);
    env.ok(&["config", "set", "gate.command", "false"]);
    assert_eq!(env.weald(&["land", &tree]).code, 1);
    let task = env.ok(&["task", "show", "1"])["task"].clone();
    assert_eq!(task["status"], "in_progress");
    let parked = task["parked"].as_str().unwrap();
    assert!(parked.contains("tests failed"), "{task:#}");
    assert_eq!(ready(&env), [json!(null); 0]);
    assert_eq!(
        needs(&env),
        [("parked".to_owned(), "weald resume 1".to_owned())]
    );
    env.ok(&["config", "set", "gate.command", "true"]);
    env.ok(&["land", &tree]);
    assert_eq!(
        (status(&env, "1"), ready(&env)),
        (json!("completed"), vec![json!(2)])
    );
    assert_eq!(needs(&env), []);
    // What somebody merged by hand is on main, too.
    let args = ["work", "2", "--no-land", "--", "sh", "-c", "echo x > x"];
    let branch = env.ok(&args)["tree"]["branch"].as_str().unwrap().to_owned();
    assert_eq!(needs(&env).len(), 1);
    env.git(&["merge", "-q", &branch]);
    assert_eq!(needs(&env), []);
}

#[test]
fn y10_an_agent_that_goes_on_does_not_complete_what_did_not_land() {
    for cause in ["conflict", "red"] {
        let env = repository();
        env.ok(&["init", "--profile", "refact"]);
        env.ok(&["config", "set", "gate.retries", "0"]);
        let tree = finished(&env);
        match cause {
            "red" => drop(env.ok(&["config", "set", "gate.command", "false"])),
            _ => sh(&env, &env.repo(), "echo ours > f; git commit -q -a -m ours"),
        }
        assert_ne!(env.weald(&["land", &tree, "--report", "done"]).code, 0);
        for script in ["true", "echo more > more"] {
            let again = env.weald(&["resume", "1", "--", "sh", "-c", script]);
            assert_eq!(again.code, 0, "{cause}: {again:#?}");
            assert!(
                again.stdout.contains("main does not have its work yet"),
                "{again:#?}"
            );
            assert_eq!(status(&env, "1"), "in_progress", "{cause}");
            assert_eq!(ready(&env), [json!(null); 0], "{cause}");
            let land = format!("weald land {tree}");
            assert_eq!(needs(&env), [("parked".to_owned(), land)], "{cause}");
        }
        match cause {
            "red" => drop(env.ok(&["config", "set", "gate.command", "true"])),
            _ => {
                assert_eq!(env.weald(&["sync", &tree]).code, 3);
                let merge = [
                    "resume",
                    "1",
                    "--",
                    "sh",
                    "-c",
                    "echo both > f; git commit -qam both",
                ];
                assert_eq!(env.weald(&merge).code, 0);
                assert_eq!(ready(&env), [json!(null); 0]);
            }
        }
        env.ok(&["land", &tree, "--report", "done"]);
        assert_eq!(
            (status(&env, "1"), ready(&env)),
            (json!("completed"), vec![json!(2)])
        );
        assert_eq!(
            (needs(&env).len(), env.git(&["show", "main:more"])),
            (0, "more\n".to_owned())
        );
    }
}

#[test]
fn y10_what_waits_to_land_again_is_completed_once_main_has_it() {
    // Somebody merges it by hand, and the landing that it waits for finds nothing to do.
    let env = repository();
    env.ok(&["config", "set", "gate.retries", "0"]);
    env.ok(&["config", "set", "gate.command", "false"]);
    let tree = finished(&env);
    assert_eq!(env.weald(&["land", &tree]).code, 1);
    let again = ["resume", "1", "--no-land", "--", "true"];
    assert_eq!((env.weald(&again).code, ready(&env)), (0, vec![]));
    env.git(&["merge", "-q", &format!("wt/{tree}")]);
    env.ok(&["land", &tree]);
    assert_eq!(
        (status(&env, "1"), ready(&env)),
        (json!("completed"), vec![json!(2)])
    );
    // Whoever takes main's side has nothing left to land: main has all of it.
    let env = repository();
    env.ok(&["config", "set", "work.land", "false"]);
    let tree = finished(&env);
    sh(&env, &env.repo(), "echo ours > f; git commit -q -a -m ours");
    assert_eq!(env.weald(&["land", &tree]).code, 3);
    assert_eq!(env.weald(&["sync", &tree]).code, 3);
    let theirs = "git checkout -q main -- f; git commit -qam theirs";
    let again = env.weald(&["resume", "1", "--", "sh", "-c", theirs]);
    assert_eq!(
        (again.code, status(&env, "1")),
        (0, json!("completed")),
        "{again:#?}"
    );
    assert_eq!(ready(&env), [json!(2)]);
}

const GH: &str =
    r#"case "$*" in "issue view"*) echo '{"number":13,"title":"Theirs","state":"OPEN"}';; esac"#;

#[test]
fn y10_a_tracker_is_closed_when_main_has_the_work() {
    let work = ["work", "13", "--", "sh", "-c", THEIRS];
    let field = Field::new("source.from = 'gh'");
    field.program("gh", GH);
    let no_land = ["work", "13", "--no-land", "--", "sh", "-c", THEIRS];
    let tree = field.ok(&no_land)["tree"]["name"].clone();
    assert!(field.told().iter().all(|line| line.contains("issue view")));
    field.ok(&["land", tree.as_str().unwrap()]);
    let told = field.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("issue close 13 --comment weald: landed on main"),
        "{told:?}"
    );
    // Where nothing lands by itself the task's end is the end; a landing that fails later opens it again.
    let field = Field::new("source.from = 'gh'\nwork.land = false");
    field.program("gh", GH);
    sh(
        &field.env,
        &field.env.repo(),
        "echo base > f; git add f; git commit -q -m f",
    );
    let tree = field.ok(&work)["tree"]["name"].clone();
    let tree = tree.as_str().unwrap();
    assert_eq!(
        field.told().last().unwrap(),
        "gh issue close 13 --comment weald: completed"
    );
    sh(
        &field.env,
        &field.env.repo(),
        "echo ours > f; git commit -q -a -m ours",
    );
    assert_eq!(field.weald(&["land", tree]).code, 3);
    assert_eq!(field.told(), ["gh issue reopen 13"]);
    assert_eq!(field.weald(&["sync", tree]).code, 3);
    let merge = "echo both > f; git commit -q -a -m both";
    assert_eq!(
        field
            .env
            .weald(&["run", tree, "--", "sh", "-c", merge])
            .code,
        0
    );
    field.ok(&["land", tree]);
    let told = field.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("issue close 13"), "{told:?}");
}
