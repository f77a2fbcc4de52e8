//! What the user does at the very moment in which the target moves: write a file, check the target out, take the lock away.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::Value;
use weald_testkit::TestEnv;

use crate::landing_moving::{nothing_left, sh};
use crate::trees_remove::{grow, repository};

/// A landing that stands still at a step until it is told to go on.
pub struct Stopped(Child);

impl Stopped {
    pub fn at(env: &TestEnv, step: &str) -> Self {
        let mut command = env.weald_command(&["land", "t", "--json"]);
        let child = command
            .env("WEALD_STEP", format!("stop:{step}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{step} was not reached");
        Self(child)
    }

    /// Lets it go on; answers its exit code, its first landing, and what it told.
    pub fn go_on(self) -> (i32, Value, String) {
        let pid = Pid::from_child(&self.0);
        let ended = thread::spawn(|| self.0.wait_with_output());
        // One that begins again comes by the same step, and stops again.
        while !ended.is_finished() {
            let _ = kill_process(pid, Signal::CONT);
            thread::sleep(Duration::from_millis(5));
        }
        let output = ended.join().unwrap().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code().unwrap_or(-1);
        (
            code,
            answer["landings"][0].clone(),
            told + &answer.to_string(),
        )
    }
}

fn prepared() -> TestEnv {
    let env = repository();
    sh(
        &env,
        &env.repo(),
        "for f in a b gone; do echo 1 >$f; done; git add -A; git commit -q -m base",
    );
    let tree = grow(&env, "t", "sealed");
    sh(
        &env,
        &tree,
        "echo 2 >a; echo 2 >b; git rm -q gone; echo 2 >new; git add -A; git commit -q -m change",
    );
    env
}

fn read(env: &TestEnv, file: &str) -> String {
    fs::read_to_string(env.repo().join(file)).unwrap_or_default()
}

#[test]
fn m7_what_is_written_after_the_check_is_not_overwritten() {
    let writes = [
        ("echo mine >a", "a"),
        ("echo 9 >b.new; mv b.new b", "b"),
        ("echo mine >gone", "gone"),
        ("echo mine >new", "new"),
        ("rm b", "b"),
        // The same length, and the time is put back: the inode's own time tells.
        (
            "touch -r a stamp; printf '7\\n' >a; touch -r stamp a; rm stamp",
            "a",
        ),
    ];
    for (write, path) in writes {
        for step in ["land.checked", "land.planned"] {
            let env = prepared();
            let stopped = Stopped::at(&env, step);
            sh(&env, &env.repo(), write);
            let mine = read(&env, path);
            let (code, landing, told) = stopped.go_on();
            assert_eq!(code, 1, "{write} at {step}: {told}");
            assert_eq!(
                landing["reason"]["code"], "target_dirty",
                "{write} at {step}"
            );
            assert_eq!(landing["reason"]["paths"][0], path, "{write} at {step}");
            assert_eq!(read(&env, path), mine, "{write} at {step}");
            for (file, text) in [("a", "1\n"), ("b", "1\n"), ("gone", "1\n"), ("new", "")] {
                assert!(file == path || read(&env, file) == text, "{write}: {file}");
            }
            assert_eq!(env.git(&["diff", "--cached", "--name-only"]), "");
            nothing_left(&env);
        }
    }
}

#[test]
fn m7_a_program_that_writes_on_after_the_swap_loses_nothing() {
    let env = prepared();
    let mut open = OpenOptions::new()
        .append(true)
        .open(env.repo().join("a"))
        .unwrap();
    let stopped = Stopped::at(&env, "land.swapped");
    open.write_all(b"late\n").unwrap();
    let (code, landing, told) = stopped.go_on();
    assert_eq!(code, 0, "{told}");
    assert_eq!(read(&env, "a"), "2\n");
    let rescued = env.private().join("rescued/landing-1/0-a");
    assert_eq!(fs::read_to_string(&rescued).unwrap(), "1\nlate\n");
    let kept = &landing["kept_changes"][0];
    assert_eq!(kept["name"], rescued.to_str().unwrap(), "{landing:#}");
    // The board names the folder until somebody deletes it.
    let about_it = || {
        env.ok(&[])["needs"]
            .to_string()
            .contains("rescued/landing-1")
    };
    assert!(about_it());
    fs::remove_dir_all(env.private().join("rescued/landing-1")).unwrap();
    assert!(!about_it());
}

#[test]
fn m7_a_lock_that_somebody_took_away_takes_the_landing_back() {
    let env = prepared();
    let stopped = Stopped::at(&env, "land.swapped");
    fs::remove_file(env.repo().join(".git/index.lock")).unwrap();
    let (code, landing, told) = stopped.go_on();
    assert_eq!(code, 5, "{told}");
    assert_eq!(landing["reason"]["code"], "target_busy", "{told}");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(read(&env, "a"), "1\n");
    nothing_left(&env);
}

#[test]
fn m12_a_target_that_is_checked_out_while_it_moves_is_moved_with_it() {
    for step in [
        "land.prepared",
        "land.ref_prepared",
        "land.looked",
        "land.ref_committed",
    ] {
        let env = prepared();
        sh(
            &env,
            &env.repo(),
            "git switch -q -c dev; echo mine >untracked",
        );
        let stopped = Stopped::at(&env, step);
        // A git that read the old tip writes HEAD last.
        sh(&env, &env.repo(), "git symbolic-ref HEAD refs/heads/main");
        let (code, _, told) = stopped.go_on();
        assert_eq!(code, 0, "{step}: {told}");
        assert_eq!(env.git(&["show", "main:a"]), "2\n", "{step}");
        assert_eq!(
            env.git(&["status", "--porcelain"]),
            "?? untracked\n",
            "{step}: {told}"
        );
        assert_eq!(read(&env, "a"), "2\n", "{step}");
        nothing_left(&env);
    }
}
