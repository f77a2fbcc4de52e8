//! What the sandbox costs: a start inside against a plain start, and file-heavy work inside against the same outside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weald_sandbox::{Ended, Invocation, Level, Policy, launch};

use super::{measure, median, ms, release_binary, say};

/// How often a start is measured, and how often a piece of work.
const STARTS: usize = 101;
const WORKS: usize = 7;

/// Files in the tree that work is done on.
const FILES: usize = 10_000;

/// Runs it all and prints the table.
pub fn run() -> io::Result<()> {
    let weald = release_binary()?;
    let lab = TempDir::with_prefix_in("weald-bench-", std::env::current_dir()?)?;
    let tree = lab.path().join("tree");
    fs::create_dir(&tree)?;
    starts(&weald, &tree)?;
    work(&weald, &tree)?;
    super::network::run(&weald, &tree)
}

fn starts(weald: &Path, tree: &Path) -> io::Result<()> {
    let bubblewrap = command("bwrap").arg("--version").output().is_ok();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); 5];
    for _ in 0..STARTS {
        times[0].push(measure(&mut command("/bin/true"))?.wall);
        times[1].push(inside(weald, tree, Level::Full, &["/bin/true"])?);
        times[2].push(inside(weald, tree, Level::Landlock, &["/bin/true"])?);
        let mut whole = command(weald);
        whole
            .args(["sandbox", "exec", "--write"])
            .arg(tree)
            .args(["--", "/bin/true"]);
        times[3].push(measure(&mut whole)?.wall);
        if bubblewrap {
            let mut other = command("bwrap");
            other.args([
                "--ro-bind",
                "/",
                "/",
                "--unshare-pid",
                "--unshare-ipc",
                "--proc",
                "/proc",
                "--dev",
                "/dev",
            ]);
            other
                .args(["--tmpfs", "/tmp", "--bind"])
                .arg(tree)
                .arg(tree)
                .args(["--", "/bin/true"]);
            times[4].push(measure(&mut other)?.wall);
        }
    }
    let plain = median(times[0].clone());
    say(&format!("a plain start of /bin/true: {:.2} ms", ms(plain)));
    for (name, times) in [
        ("level full", &times[1]),
        ("level landlock", &times[2]),
        ("the whole command `weald sandbox exec`", &times[3]),
        ("bubblewrap", &times[4]),
    ] {
        if times.is_empty() {
            say(&format!("  {name}: not installed here"));
            continue;
        }
        let more = ms(median(times.clone())) - ms(plain);
        let verdict = if name == "level full" {
            if more <= 5.0 {
                " (goal 5: met)"
            } else {
                " (goal 5: MISSED)"
            }
        } else {
            ""
        };
        say(&format!("  {name}: +{more:.2} ms{verdict}"));
    }
    Ok(())
}

fn work(weald: &Path, tree: &Path) -> io::Result<()> {
    let build = format!(
        "git init -q . && mkdir -p $(seq -f d%g 0 99) && for i in $(seq 0 {}); do echo $i > d$((i % 100))/f$i; done && \
         git add -A && git -c user.name=x -c user.email=x commit -qm x && git status -s",
        FILES - 1
    );
    run_outside(tree, &build)?;
    for (name, script) in [
        (
            "git status of 10,000 files, ten times",
            "for i in 1 2 3 4 5 6 7 8 9 10; do git status -s; done",
        ),
        (
            "writing 10,000 files",
            // Each time into a new directory: after a mass deletion some file systems create files many times slower.
            "d=$(mktemp -d w.XXXXXX); i=0; while [ $i -lt 10000 ]; do echo $i > $d/$i; i=$((i + 1)); done",
        ),
    ] {
        let (mut outside, mut within) = (Vec::new(), Vec::new());
        for _ in 0..WORKS {
            outside.push(run_outside(tree, script)?);
            within.push(inside(weald, tree, Level::Full, &["sh", "-c", script])?);
        }
        let (outside, within) = (median(outside), median(within));
        let times = within.as_secs_f64() / outside.as_secs_f64();
        let verdict = if times <= 1.10 { "met" } else { "MISSED" };
        say(&format!(
            "{name}: outside {:.0} ms, inside {:.0} ms: {times:.2}x (goal 1.10: {verdict})",
            ms(outside),
            ms(within)
        ));
    }
    Ok(())
}

fn run_outside(tree: &Path, script: &str) -> io::Result<Duration> {
    Ok(measure(command("sh").args(["-c", script]).current_dir(tree))?.wall)
}

/// Starts a command inside and waits for its end.
fn inside(weald: &Path, tree: &Path, level: Level, argv: &[&str]) -> io::Result<Duration> {
    let mut policy = Policy::new(tree);
    policy.level = level;
    #[expect(clippy::disallowed_methods, reason = "programs have to be found")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let invocation = Invocation {
        helper: weald.to_owned(),
        command: argv.iter().map(Into::into).collect(),
        directory: PathBuf::from(tree),
        environment: vec![("PATH".into(), path)],
        streams: [Stdio::null(), Stdio::null(), Stdio::null()],
    };
    let started = Instant::now();
    match launch(&policy, invocation)
        .map_err(io::Error::other)?
        .wait(None)?
    {
        Ended::Code(0) => Ok(started.elapsed()),
        ended => Err(io::Error::other(format!("{argv:?} ended with {ended:?}"))),
    }
}

fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark of processes starts processes"
    )]
    Command::new(program)
}
