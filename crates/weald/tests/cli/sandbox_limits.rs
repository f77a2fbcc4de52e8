//! The end of a run that fights it, and limits of the system that are lower than those of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{STUBBORN, as_user, is_root, own_home, survivors, wait_until};
use weald_testkit::skipped;

/// A command of the binary in a home, as root or as an ordinary user.
fn at(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(home.join("weald"));
    if home.to_str().unwrap().ends_with("-user") {
        as_user(&mut command);
    }
    command.args(args).current_dir(home).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.env("HOME", home).stdin(Stdio::null());
    command
}

fn homes(name: &str) -> Vec<PathBuf> {
    let homes = crate::trees_levels::homes(name);
    for home in &homes {
        let mut made = Command::new("mkdir");
        if home.to_str().unwrap().ends_with("-user") {
            as_user(&mut made);
        }
        assert!(made.arg(home.join("tree")).status().unwrap().success());
    }
    homes
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// How many processes of the user there may be in a storm: it must not take those of the whole machine.
const MOST: u32 = 600;

/// Free, in a namespace that ends it, a storm outlives the command that began it. It may leave the shell no process to
/// count with.
fn assert_a_storm_has_teeth(home: &Path) {
    let script = "./weald __sandbox-attempt fork-storm; set -- /proc/[0-9]*; [ $# -gt 20 ]";
    let mut command = Command::new("prlimit");
    as_user(&mut command).arg(format!("--nproc={MOST}"));
    command.args(["unshare", "-Urpf", "--mount-proc", "--kill-child", "sh"]);
    let output = command.args(["-c", script]).current_dir(home).output();
    let output = output.unwrap();
    match text(&output).contains("unshare failed") {
        true => skipped("no namespace to show in that a storm outlives its command"),
        false => assert!(output.status.success(), "{}", text(&output)),
    }
}

/// Root has no limit of processes, so its storm is one that the kernel clears away as it goes: without a namespace.
#[test]
fn x29_a_fork_storm_ends_with_the_run_at_every_level() {
    for home in homes("x29") {
        let is_user = home.to_str().unwrap().ends_with("-user");
        let levels = match is_user {
            true => &["landlock", "full"][..],
            false => &["landlock"],
        };
        if is_user {
            assert_a_storm_has_teeth(&home);
        }
        let (own, most) = (home.join("weald"), format!("sandbox.processes={MOST}"));
        for level in levels {
            let mark = format!("{level}-storm-{}", std::process::id());
            let args = ["--set", &most, "sandbox", "exec", "--level", level];
            let storm = [own.to_str().unwrap(), "__sandbox-attempt", "fork-storm"];
            let began = Instant::now();
            let words = [&args[..], &["--write", "tree", "--"], &storm, &[&mark]].concat();
            let output = at(&home, &words).output().unwrap();
            let (left, took) = (survivors(&mark), began.elapsed());
            let told = text(&output);
            assert_eq!(left, 0, "{level} {home:?}: {told}");
            assert!(output.status.success(), "{level} {home:?}: {told}");
            assert!(took < Duration::from_secs(20), "{level}: {took:?}");
        }
        let _ = fs::remove_dir_all(&home);
    }
}

/// The reaper is killed, the launcher is not: a control group ends what is left.
#[test]
fn x29_a_killed_reaper_leaves_nobody_where_control_groups_can_be_made() {
    if !is_root()
        || !fs::read_to_string("/proc/mounts")
            .unwrap()
            .contains(" cgroup2 rw")
    {
        return skipped("no control group can be made here");
    }
    let home = own_home("x29-reaper-root");
    fs::create_dir(home.join("tree")).unwrap();
    let mark = format!("{}", 730_000 + std::process::id());
    let script = STUBBORN.replace("MARK", &mark);
    let args = [
        "sandbox", "exec", "--level", "landlock", "--write", "tree", "--", "sh", "-c",
    ];
    let mut launcher = at(&home, &[&args[..], &[&script]].concat());
    let mut launcher = launcher.stderr(Stdio::null()).spawn().unwrap();
    let limit = Duration::from_secs(20);
    wait_until("it starts", limit, || survivors(&mark) >= 5);
    let id = launcher.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let reaper = children.split_whitespace().next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(reaper).unwrap(), Signal::KILL).unwrap();
    launcher.wait().unwrap();
    assert_eq!(survivors(&mark), 0);
    let _ = fs::remove_dir_all(&home);
}

/// Hard limits below those of a run hold, and everything works.
#[test]
fn x27_lower_limits_of_the_system_are_respected() {
    let limits = [
        "--core=0:0",
        "--as=4000000000:4000000000",
        "--nproc=30000:30000",
        "--nofile=64:64",
        "--fsize=100000000:100000000",
        "--cpu=500:500",
    ];
    let settings = [
        "--set",
        "sandbox.memory=64G",
        "--set",
        "sandbox.processes=100000",
        "--set",
        "sandbox.file_size=900G",
        "--set",
        "sandbox.cpu_seconds=100000",
    ];
    let script = "ulimit -c; ulimit -H -v; ulimit -H -n; ulimit -H -f; ulimit -H -t";
    for home in homes("x27") {
        let run = |limits: &[&str], level: &str| {
            let args = ["sandbox", "exec", "--level", level, "--write", "tree", "--"];
            let inner = at(
                &home,
                &[&settings[..], &args, &["sh", "-c", script]].concat(),
            );
            let mut command = Command::new("prlimit");
            if home.to_str().unwrap().ends_with("-user") {
                as_user(&mut command);
            }
            command
                .args(limits)
                .arg(inner.get_program())
                .args(inner.get_args());
            command.current_dir(&home).env_clear().env("HOME", &home);
            command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
            command.stdin(Stdio::null()).output().unwrap()
        };
        for level in ["full", "landlock"] {
            let output = run(&limits[..1], level);
            assert!(output.status.success(), "{level}: {}", text(&output));
            let output = run(&limits, level);
            let wanted = ["0", "3906250", "64", "195312", "500"];
            let found = String::from_utf8_lossy(&output.stdout).into_owned();
            let found: Vec<_> = found.lines().collect();
            assert_eq!(found, wanted, "{level}: {}", text(&output));
        }
        let _ = fs::remove_dir_all(&home);
    }
}
