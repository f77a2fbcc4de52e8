//! The classroom story: two tasks, a worktree each, alice and bob as workers. Both claim by themselves, work in their own
//! directory on the same file, finish and land; main has both; nothing was touched twice.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::landing::show;
use crate::trees_remove::repository;

/// The one file that both edit, each at another place.
fn with_config() -> TestEnv {
    let env = repository();
    let lines: String = (1..=30).map(|line| format!("setting {line}\n")).collect();
    fs::write(env.repo().join("config.py"), lines).unwrap();
    env.git(&["add", "config.py"]);
    env.git(&["commit", "-qm", "config"]);
    env
}

/// What each of them does: says where it is, and edits its own line of the same file.
const SCRIPT: &str = "pwd > where-$WEALD_TASK; \
     case $WEALD_TASK in 1) sed -i '2s/.*/first/' config.py;; *) sed -i '29s/.*/second/' config.py;; esac; \
     git add config.py; git commit -qm \"$WEALD_TASK_SUBJECT by $WEALD_SESSION\"";

fn start(env: &TestEnv, name: &str) -> std::process::Child {
    let args = [
        "worker",
        "--name",
        name,
        "--max",
        "1",
        "--land",
        "--idle-timeout",
        "20s",
        "--json",
        "--",
        "sh",
        "-c",
        SCRIPT,
    ];
    let mut command = env.weald_command(&args);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn s6_classroom_two_workers_claim_work_on_one_file_and_land_both() {
    for profile in ["default", "classroom"] {
        let env = with_config();
        env.ok(&["init", "--profile", profile]);
        for (number, subject) in [(1, "the first setting"), (2, "the second setting")] {
            env.ok(&["task", "add", subject]);
            let id = number.to_string();
            env.ok(&["new", &format!("lane-{number}"), "--task", &id]);
        }
        let workers = ["alice", "bob"].map(|name| (name, start(&env, name)));
        let mut done: Vec<(String, Value)> = Vec::new();
        for (name, worker) in workers {
            let answer = Answer::of(worker.wait_with_output().unwrap());
            assert_eq!(answer.code, 0, "{name}: {answer:#?}");
            let line = answer.json();
            assert_eq!(line["outcome"], "done", "{name}: {answer:#?}");
            done.push((name.to_owned(), line["task"]["id"].clone()));
        }
        done.sort_by_key(|(_, task)| task.as_u64());
        assert_eq!(
            (&done[0].1, &done[1].1),
            (&json!(1), &json!(2)),
            "each one, once"
        );
        let config = show(&env, "config.py");
        let lines: Vec<_> = config.lines().collect();
        assert_eq!((lines[1], lines[28]), ("first", "second"));
        assert_eq!(
            lines
                .iter()
                .filter(|line| line.starts_with("setting"))
                .count(),
            28
        );
        assert_eq!(
            env.git(&["status", "--porcelain", "--untracked-files=no"]),
            ""
        );
        let lanes = match profile {
            "classroom" => env.repo().join(".worktrees"),
            _ => env.root().join("app.weald"),
        };
        for number in [1, 2] {
            let lane = lanes.canonicalize().unwrap().join(format!("lane-{number}"));
            let place = show(&env, &format!("where-{number}"));
            assert_eq!(place.trim(), lane.display().to_string());
        }
        let events = env.weald(&["events", "--limit", "200", "--json"]);
        let count = |kind: &str| {
            let kind = format!("\"dev.weald.{kind}\"");
            let lines = events.stdout.lines();
            lines.filter(|line| line.contains(&kind)).count()
        };
        assert_eq!(count("task.claimed"), 2);
        assert_eq!(count("landing.landed"), 2);
        assert_eq!(count("task.completed"), 2);
    }
}
