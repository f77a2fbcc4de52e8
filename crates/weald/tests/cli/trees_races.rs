//! Several processes at one tree at once, and what one of them must not take from another.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::trees_remove::{grow, repository};

fn start(env: &TestEnv, args: &[&str]) -> Child {
    let mut command = env.weald_command(&[args, &["--json"]].concat());
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Exit code and answer of each.
fn ends(children: Vec<Child>) -> Vec<(i32, Value)> {
    let end = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let answer = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code().unwrap_or(-1), answer)
    };
    children.into_iter().map(end).collect()
}

#[test]
fn d9_of_four_removals_at_once_one_wins_and_nothing_is_half_done() {
    for kind in ["sealed", "linked"] {
        let env = repository();
        let path = grow(&env, "a", kind);
        let children = (0..4).map(|_| start(&env, &["rm", "a"])).collect();
        let ended = ends(children);
        let won: Vec<_> = ended.iter().filter(|(code, _)| *code == 0).collect();
        assert_eq!(won.len(), 1, "{kind}: {ended:#?}");
        assert_eq!(won[0].1["outcome"], "trashed");
        assert!(
            ended.iter().all(|(code, _)| [0, 4, 5].contains(code)),
            "{ended:#?}"
        );
        assert!(!path.exists());
        env.ok(&["trash", "restore", "a"]);
        assert!(path.join(".git").exists());
        assert_eq!(env.ok(&["doctor"])["findings"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn d15_a_run_and_a_removal_exclude_each_other() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    for _ in 0..6 {
        let run = start(
            &env,
            &[
                "run",
                "a",
                "--",
                "sh",
                "-c",
                "sleep 0.3; test -d \"$WEALD_TREE_PATH\"",
            ],
        );
        let removal = ends(vec![start(&env, &["rm", "a"])]);
        let run = ends(vec![run]);
        match removal[0].0 {
            // The removal came first: the run was refused, or ended before.
            0 => {
                assert!(run[0].0 == 125 || run[0].0 == 0, "{run:#?}");
                env.ok(&["trash", "restore", "a"]);
            }
            _ => assert_eq!(run[0].0, 0, "the tree stayed: {removal:#?}"),
        }
        assert!(path.is_dir());
    }
}

#[test]
fn k11_eight_processes_make_a_vanished_tree_again_once() {
    for kind in ["sealed", "linked"] {
        let env = repository();
        let path = grow(&env, "a", kind);
        fs::remove_dir_all(&path).unwrap();
        let children = (0..8).map(|_| start(&env, &["ensure", "a"])).collect();
        let ended = ends(children);
        assert!(
            ended.iter().all(|(code, _)| *code == 0),
            "{kind}: {ended:#?}"
        );
        let made = ended
            .iter()
            .filter(|(_, answer)| answer["outcome"] == "recreated");
        assert_eq!(made.count(), 1, "{kind}: {ended:#?}");
        assert!(path.join("config.py").is_file());
        assert_eq!(env.ok(&["status", "a"])["tree"]["dirty"], false);
    }
}

#[test]
fn z4_snapshots_at_once_get_numbers_of_their_own() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    let children = (0..6)
        .map(|number| {
            fs::write(path.join("file"), number.to_string()).unwrap();
            start(&env, &["snapshot", "create", "a"])
        })
        .collect();
    let ended = ends(children);
    assert!(ended.iter().all(|(code, _)| *code == 0), "{ended:#?}");
    let listed = env.ok(&["snapshot", "list", "a"]);
    assert_eq!(listed["snapshots"].as_array().unwrap().len(), 6);
}

#[test]
fn w2_nothing_is_written_into_a_tree_while_something_runs_in_it() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    env.ok(&["snapshot", "create", "a"]);
    let mut run = start(
        &env,
        &["run", "a", "--", "sh", "-c", "touch started; sleep 60"],
    );
    let deadline = Instant::now() + Duration::from_secs(20);
    while !path.join("started").exists() {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(5));
    }
    env.refused(&["snapshot", "restore", "a"], 5, "tree_running");
    env.refused(&["sync", "a"], 5, "tree_running");
    env.refused(
        &["rm", "a", "--discard", "--force", "--force"],
        5,
        "tree_running",
    );
    run.kill().unwrap();
    run.wait().unwrap();
}
