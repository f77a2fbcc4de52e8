//! Creations that are interrupted: a signal takes them back on the spot, and after a kill the next command that needs the
//! name finishes them or takes them back.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use weald_testkit::{Answer, TestEnv, full_scale};

use crate::trees_crash::settle;
use crate::trees_create::listed;
use crate::trees_meanwhile::stands_still;
use crate::trees_remove::{KINDS, repository};

/// Where a creation is killed: before anything, with files, registered, with a branch, renamed but not recorded.
const MOMENTS: [&str; 6] = [
    "create.announced",
    "create.populated",
    "create.registered",
    "create.branched",
    "create.renamed",
    "create.recorded",
];

/// Runs a command that kills itself at a step.
#[track_caller]
fn killed_at(env: &TestEnv, step: &str, args: &[&str]) {
    let mut command = env.weald_command(args);
    command.env("WEALD_STEP", format!("kill:{step}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    assert!(!command.status().unwrap().success(), "{step}");
    settle(env);
}

/// The tree is whole: git knows it, a run works in it, and `doctor` finds nothing.
#[track_caller]
fn assert_whole(env: &TestEnv, what: &str) {
    assert_eq!(listed(env), ["x"], "{what}");
    let run = env.weald(&["run", "x", "--", "git", "status", "--porcelain"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{what}: {run:#?}");
    assert_sound(env, what);
}

#[track_caller]
fn assert_sound(env: &TestEnv, what: &str) {
    let doctor = env.weald(&["doctor", "--json"]);
    assert_eq!(doctor.code, 0, "{what}: {doctor:#?}");
    assert!(!doctor.stdout.contains("unfinished"), "{what}: {doctor:#?}");
}

#[test]
fn y4_the_next_command_finishes_or_removes_a_creation_that_was_killed() {
    for kind in KINDS {
        for step in MOMENTS {
            for next in ["new", "ensure", "rm"] {
                let what = format!("{next} after a kill at {step}, {kind}");
                let env = repository();
                killed_at(&env, step, &["new", "x", "--kind", kind]);
                let args = match next {
                    "rm" => vec!["rm", "x", "--json"],
                    next => vec![next, "x", "--kind", kind, "--json"],
                };
                let answer = env.weald(&args);
                // One that is on record already is there; that is no news of the kill.
                if (step, next) == ("create.recorded", "new") {
                    assert_eq!(answer.error_code(), "tree_exists", "{what}: {answer:#?}");
                    env.ok(&["ensure", "x"]);
                } else {
                    assert_eq!(answer.code, 0, "{what}: {answer:#?}");
                }
                match next {
                    "rm" => {
                        assert_eq!(listed(&env), [""; 0], "{what}");
                        env.ok(&["new", "x", "--on-branch-exists", "recreate"]);
                        assert_sound(&env, &what);
                    }
                    _ => assert_whole(&env, &what),
                }
                if !full_scale() && kind == "linked" && next == "ensure" {
                    break;
                }
            }
        }
    }
}

#[test]
fn y4_work_goes_on_after_a_creation_that_was_killed() {
    for step in ["create.populated", "create.branched", "create.renamed"] {
        let env = repository();
        env.ok(&["task", "add", "Do it"]);
        let work = ["work", "1", "--json", "--", "sh", "-c", "echo x > x"];
        killed_at(&env, step, &work);
        let answer = env.weald(&work);
        assert_eq!(answer.code, 0, "{step}: {answer:#?}");
        assert_eq!(env.git(&["show", "main:x"]), "x\n");
        assert_eq!(listed(&env), [""; 0], "{step}");
        assert_sound(&env, step);
    }
}

/// A repository whose checkout takes long enough to be interrupted.
fn large() -> TestEnv {
    let env = repository();
    let count = if full_scale() { 20_000 } else { 4_000 };
    for folder in 0..count / 100 {
        let path = env.repo().join(format!("d{folder}"));
        fs::create_dir(&path).unwrap();
        for file in 0..100 {
            fs::write(path.join(format!("f{file}")), format!("{folder} {file}\n")).unwrap();
        }
    }
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "many"]);
    env
}

/// Starts a command in a session of its own on a pseudo-terminal, as a shell in a terminal would.
fn on_terminal(env: &TestEnv, args: &[&str]) -> Command {
    let words: Vec<_> = args.iter().map(|word| format!("'{word}'")).collect();
    let weald = env.weald_command(&[]);
    let line = format!(
        "exec '{}' {}",
        weald.get_program().display(),
        words.join(" ")
    );
    let mut command = env.command("script");
    command.args(["-qefc", &line, "/dev/null"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.stderr(Stdio::null());
    command
}

fn ended_within(child: &mut Child, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Whatever moment a signal comes at, what was begun is gone, or the tree is there; and `new` works again.
#[test]
fn y4_a_signal_takes_the_creation_back_on_the_spot() {
    use std::io::Write;
    let env = large();
    for (round, delay) in [30, 90, 150, 250, 400].into_iter().enumerate() {
        let what = format!("round {round}, {delay} ms");
        let is_typed = round % 2 == 0;
        let mut command = match is_typed {
            true => on_terminal(&env, &["new", "x", "--no-pool"]),
            false => env.weald_command(&["new", "x", "--no-pool", "--json"]),
        };
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        match is_typed {
            true => drop(child.stdin.as_mut().unwrap().write_all(b"\x03")),
            false => {
                let pid = Pid::from_raw(child.id() as i32).unwrap();
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        assert!(ended_within(&mut child, Duration::from_secs(30)), "{what}");
        settle(&env);
        let trees = env.ok(&["list"])["trees"].clone();
        let status: Vec<_> = trees
            .as_array()
            .unwrap()
            .iter()
            .map(|tree| &tree["status"])
            .collect();
        assert!(
            status.is_empty() || status == [&json!("active")],
            "{what}: {trees:#}"
        );
        if status.is_empty() {
            assert!(!env.root().join("app.weald/x").exists(), "{what}");
            assert_eq!(env.git(&["branch", "--list", "wt/x"]), "", "{what}");
            env.ok(&["new", "x"]);
        }
        assert_whole(&env, &what);
        env.ok(&["rm", "x"]);
    }
}

/// The signal comes in the middle, not somewhere around it.
#[test]
fn y4_a_signal_in_the_middle_of_a_creation_takes_it_back() {
    for (kind, step, signal) in [
        ("sealed", "create.announced", Signal::TERM),
        ("sealed", "create.populated", Signal::INT),
        ("linked", "create.populated", Signal::TERM),
    ] {
        let what = format!("{kind}, {step}");
        let env = repository();
        let mut command = env.weald_command(&["new", "x", "--no-pool", "--kind", kind]);
        command.env("WEALD_STEP", format!("stop:{step}"));
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.unwrap();
        stands_still(&child);
        kill_process(Pid::from_child(&child), signal).unwrap();
        kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
        let answer = Answer::of(child.wait_with_output().unwrap());
        let code = 128 + signal.as_raw();
        assert_eq!(answer.code, code, "{what}: {answer:#?}");
        assert_eq!(listed(&env), [""; 0], "{what}");
        assert!(!env.root().join("app.weald/x").exists(), "{what}");
        assert_eq!(env.git(&["branch", "--list", "wt/x"]), "", "{what}");
        assert_sound(&env, &what);
        env.ok(&["new", "x"]);
    }
}

/// A set-up command ends with its `new`; the tree is there, and the answer says how to go on.
#[test]
fn y4_a_signal_ends_a_set_up_command_and_says_what_is_left() {
    let env = repository();
    env.ok(&[
        "config",
        "set",
        "setup.commands",
        "touch begun; sleep 986.75",
    ]);
    let mut command = env.weald_command(&["new", "x"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = env.root().join("app.weald/x/begun");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !begun.exists() {
        assert!(Instant::now() < deadline, "{:?}", child.try_wait());
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    assert!(ended_within(&mut child, Duration::from_secs(30)));
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, 130, "{answer:#?}");
    assert!(answer.stderr.contains("weald setup x"), "{answer:#?}");
    settle(&env);
    assert_eq!(listed(&env), ["x"]);
    env.ok(&["config", "set", "setup.commands", "true"]);
    env.ok(&["setup", "x"]);
    env.ok(&["rm", "x", "--discard"]);
}
