//! The sandbox: escapes, refusals, and the end of everything in it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weald_testkit::{Answer, TestEnv, full_scale, skipped};

use crate::env;

pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory with a copy of the binary in it.
pub fn own_home(name: &str) -> PathBuf {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home).unwrap();
    // The escape suite makes and removes hundreds of folders here. Marked so, ext4 spreads them; without a journal it
    // would otherwise pass by all that were removed, whenever it makes a file. Elsewhere it means nothing.
    let _ = Command::new("chattr").arg("+T").arg(&home).output();
    fs::copy(env!("CARGO_BIN_EXE_weald"), home.join("weald")).unwrap();
    home
}

/// The same for uid 1000; `None` (said aloud) where that can't be had.
pub fn ordinary_home(name: &str) -> Option<PathBuf> {
    let home = own_home(name);
    if is_root() {
        std::os::unix::fs::chown(&home, Some(1000), Some(1000)).unwrap();
    }
    let reachable = as_user(&mut Command::new(home.join("weald")))
        .arg("--version")
        .output();
    match reachable.is_ok_and(|output| output.status.success()) {
        true => Some(home),
        false => {
            skipped("uid 1000 can't reach the target directory");
            None
        }
    }
}

/// As uid 1000 if the test is root, else as whoever runs it.
pub fn as_user(command: &mut Command) -> &mut Command {
    match is_root() {
        true => command.uid(1000).gid(1000),
        false => command,
    }
}

fn escape_suite(command: &mut Command, level: &str) -> Value {
    command
        .args(["sandbox", "test", "--json", "--level", level])
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(answer["escaped"], serde_json::json!([]), "{answer}");
    assert!(answer["cases"].as_u64().unwrap() >= 100, "{answer}");
    answer
}

#[test]
fn x5_nothing_escapes_as_root() {
    if !is_root() {
        return skipped("this part of the escape suite needs root");
    }
    let mut command = Command::new(own_home("x5-root").join("weald"));
    let answer = escape_suite(&mut command, "full");
    assert_eq!(answer["other"]["exceptions"], serde_json::json!([]));
}

#[test]
fn x5_nothing_escapes_as_an_ordinary_user() {
    let Some(home) = ordinary_home("x5-user") else {
        return;
    };
    let mut command = Command::new(home.join("weald"));
    as_user(&mut command).env("HOME", &home).current_dir(&home);
    escape_suite(&mut command, "full");
}

#[test]
fn x5_level_landlock_lets_out_exactly_what_is_documented() {
    let Some(home) = ordinary_home("x5-landlock") else {
        return;
    };
    let mut command = Command::new(home.join("weald"));
    as_user(&mut command).env("HOME", &home).current_dir(&home);
    let answer = escape_suite(&mut command, "landlock");
    let mut exceptions: Vec<_> = answer["other"]["exceptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    exceptions.sort_unstable();
    let documented = [
        "chmod a file",
        "chmod a tree",
        "list the control plane",
        "list the homes",
        "list the runs",
        "overwrite a borrowed object",
        "reach another run by ..",
        "read another agent's home",
        "read another run's folder",
        "read the control plane",
        "see it",
        "set a file's flags",
        "set a file's time back",
        "set an extended attribute",
        "touch a file",
        "utimensat",
    ];
    assert_eq!(exceptions, documented);
}

/// A folder to be confined in.
pub fn tree(env: &TestEnv) -> String {
    let tree = env.root().join("tree");
    fs::create_dir_all(&tree).unwrap();
    tree.to_str().unwrap().to_owned()
}

/// Runs a script in a sandbox that writes `tree`.
#[track_caller]
pub fn confined(env: &TestEnv, tree: &str, flags: &[&str], script: &str) -> Answer {
    let args = [
        &["sandbox", "exec", "--write", tree],
        flags,
        &["--", "sh", "-c", script],
    ]
    .concat();
    env.weald(&args)
}

#[test]
fn a_run_passes_streams_and_codes_through() {
    let env = env();
    let tree = tree(&env);
    let answer = confined(&env, &tree, &[], "pwd; echo narration >&2; exit 7");
    assert_eq!(
        (answer.code, answer.stdout.trim(), answer.stderr.trim()),
        (7, tree.as_str(), "narration")
    );
    assert_eq!(confined(&env, &tree, &[], "kill -TERM $$").code, 128 + 15);
    assert_eq!(
        env.weald(&["sandbox", "exec", "--write", &tree, "--", "nosuch"])
            .code,
        127
    );
    assert_eq!(
        env.weald(&["sandbox", "exec", "--write", &tree, "--", "/etc/passwd"])
            .code,
        126
    );
    assert_eq!(
        env.weald(&["sandbox", "exec", "--write", "/nosuch", "--", "true"])
            .code,
        2
    );
    assert_eq!(
        env.weald(&["sandbox", "exec", "--write", "/", "--", "true"])
            .code,
        2
    );
    assert_eq!(
        confined(&env, &tree, &[], "env | grep -c ^GIT_")
            .stdout
            .trim(),
        "0"
    );
}

#[test]
fn x7_a_missing_layer_is_refused_and_never_replaced_by_less() {
    let env = env();
    let tree = tree(&env);
    for level in ["full", "landlock"] {
        for abi in ["0", "3", "5"] {
            let flags = ["--level", level, "--simulate-landlock-abi", abi];
            let answer = confined(&env, &tree, &flags, "touch started");
            assert_eq!(answer.code, 6, "{level} {abi}: {answer:?}");
            assert!(answer.stderr.contains("Landlock"), "{answer:?}");
        }
    }
    // A filter that refuses new namespaces: the sandbox itself is one.
    let weald = env!("CARGO_BIN_EXE_weald");
    let inner =
        |level: &str| format!("{weald} sandbox exec --level {level} --write . -- touch started");
    let folder = PathBuf::from(weald)
        .parent()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let shown = ["--show", folder.as_str()];
    let answer = confined(&env, &tree, &shown, &inner("full"));
    assert_eq!(answer.code, 6, "{answer:?}");
    assert!(
        answer.stderr.contains("user namespaces") && answer.stderr.contains("--level landlock"),
        "{answer:?}"
    );
    assert!(
        answer.stderr.contains("a filter of system calls denies"),
        "what denies it: {answer:?}"
    );
    assert!(
        !PathBuf::from(&tree).join("started").exists(),
        "nothing was started"
    );
    let json = env.weald(&[
        "sandbox",
        "exec",
        "--json",
        "--write",
        &tree,
        "--simulate-landlock-abi",
        "1",
        "--",
        "true",
    ]);
    assert_eq!(
        (json.code, json.error_code().as_str()),
        (6, "sandbox_unavailable")
    );
    // What was asked for explicitly still works there.
    assert_eq!(confined(&env, &tree, &shown, &inner("landlock")).code, 0);
    assert!(PathBuf::from(&tree).join("started").exists());
}

#[test]
fn x8_explain_tells_the_level_and_what_it_does_not_cover() {
    let env = env();
    let tree = tree(&env);
    let told = env.ok(&["sandbox", "explain", &tree]);
    assert_eq!(
        (&told["sandbox"]["level"], &told["sandbox"]["available"]),
        (&"full".into(), &true.into())
    );
    assert!(told["sandbox"]["not_covered"].as_array().unwrap().len() > 3);
    let masked = told["sandbox"]["masked"].to_string();
    assert!(masked.contains(".git/weald/private"), "{masked}");
}

/// A process tree that does what it can to survive.
pub const STUBBORN: &str = "\
    trap '' TERM INT HUP; \
    setsid sh -c \"trap '' TERM HUP; sleep MARK\" & \
    (setsid sleep MARK &) & \
    nohup sleep MARK >/dev/null 2>&1 & \
    sleep MARK & kill -STOP $!; \
    (sleep MARK & sleep MARK) & \
    sleep MARK";

pub fn survivors(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|word| word == mark.as_bytes())
        })
        .count()
}

pub fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn x10_a_timeout_leaves_no_survivor() {
    let env = env();
    let tree = tree(&env);
    let rounds = if full_scale() { 100 } else { 6 };
    for round in 0..rounds {
        let mark = format!("{}{round:04}", 700_000 + std::process::id());
        let level = if round % 2 == 0 { "full" } else { "landlock" };
        let started = Instant::now();
        let script = STUBBORN.replace("MARK", &mark);
        let answer = confined(
            &env,
            &tree,
            &["--timeout", "300ms", "--level", level],
            &script,
        );
        assert_eq!(answer.code, 124, "{answer:?}");
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{:?}",
            started.elapsed()
        );
        assert_eq!(survivors(&mark), 0, "level {level}");
    }
}

#[test]
fn x10_the_end_of_the_command_or_of_the_launcher_leaves_no_survivor() {
    let env = env();
    let tree = tree(&env);
    let mark = format!("{}", 710_000 + std::process::id());
    let script = format!("setsid sleep {mark} & sleep 0.1; exit 3");
    for level in ["full", "landlock"] {
        assert_eq!(confined(&env, &tree, &["--level", level], &script).code, 3);
        assert_eq!(
            survivors(&mark),
            0,
            "level {level}: what the command left behind ends with it"
        );
    }
    let rounds = if full_scale() { 100 } else { 5 };
    for round in 0..rounds {
        let mark = format!("{}{round:04}", 720_000 + std::process::id());
        let script = STUBBORN.replace("MARK", &mark);
        let mut launcher = env.weald_command(&[
            "sandbox", "exec", "--write", &tree, "--", "sh", "-c", &script,
        ]);
        let mut launcher = launcher.stderr(Stdio::null()).spawn().unwrap();
        wait_until("it starts", Duration::from_secs(20), || {
            survivors(&mark) >= 5
        });
        kill_process(Pid::from_child(&launcher), Signal::KILL).unwrap();
        launcher.wait().unwrap();
        wait_until(
            "everything ends with the launcher",
            Duration::from_secs(20),
            || survivors(&mark) == 0,
        );
    }
}
