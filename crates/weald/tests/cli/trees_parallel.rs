//! Many creates at once: how long one takes, and that a spare is given to one tree only.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::env;
use crate::trees_create::{git_in, listed, path_of, tip};
use crate::trees_population::{SPARE, assert_same, by_git, commit_all, write};
use crate::trees_refuse::assert_healthy;

/// A small repository.
fn small() -> TestEnv {
    let env = env();
    for number in 0..50 {
        let name = format!("folder-{}/file-{number}", number % 7);
        write(&env, name, format!("text {number}\n"));
    }
    commit_all(&env);
    env
}

/// All at once; the answers in their order.
#[track_caller]
fn at_once(env: &TestEnv, names: &[String], args: &[&str]) -> Vec<Value> {
    let start = |name: &String| -> Child {
        let mut command = env.weald_command(&[&["new", name, "--json"], args].concat());
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().unwrap()
    };
    let started: Vec<_> = names.iter().map(start).collect();
    let end = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    started.into_iter().map(end).collect()
}

#[test]
fn k16_forty_parallel_creates_take_a_tenth_of_a_second_each() {
    let limit = Duration::from_millis(100);
    for pool in [&["--no-pool"][..], &["--set", "pool.size=2"]] {
        // Whatever else may have come in between: the best of a few counts.
        let best = (0..6).map(|_| forty(pool)).find(|each| *each <= limit);
        assert!(best.is_some(), "{pool:?}: more than {limit:?} a tree");
    }
}

/// Processor time in ticks: that of children which were waited for, and that of everybody on the machine.
fn ticks() -> (f64, f64) {
    let numbers = |text: &str| -> Vec<f64> {
        let words = text.split_ascii_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    let all = fs::read_to_string("/proc/stat").unwrap();
    // Behind the state, which is no number: user and system time of children are the 13th and 14th.
    let own = numbers(own.rsplit(") ").next().unwrap());
    let all = numbers(all.lines().next().unwrap());
    // Guests are in it already; the fourth and fifth are idle.
    (
        own[12..14].iter().sum(),
        all[..8].iter().sum::<f64>() - all[3] - all[4],
    )
}

/// How long one of forty took, or would have taken had nobody else used the processors meanwhile. Time in which all of
/// them waited and nobody worked counts in full.
fn forty(pool: &[&str]) -> Duration {
    let env = small();
    let names: Vec<_> = (0..40).map(|number| format!("t{number}")).collect();
    let (started, before) = (Instant::now(), ticks());
    at_once(&env, &names, pool);
    let (took, after) = (started.elapsed(), ticks());
    let others = (after.1 - before.1) - (after.0 - before.0);
    let cores = std::thread::available_parallelism().unwrap().get() as f64;
    let stolen = Duration::from_secs_f64(others.max(0.0) / 100.0 / cores);
    let each = took.saturating_sub(stolen) / 40;
    assert_eq!(listed(&env).len(), 40);
    env.ok(&["pool", "drain"]);
    each
}

#[test]
fn z6_sixty_four_parallel_creates_never_share_a_spare() {
    let env = small();
    let size = ["--set", "pool.size=3"];
    env.ok(&[&["pool", "fill"][..], &size].concat());
    let names: Vec<_> = (0..64).map(|number| format!("t{number}")).collect();
    let made = at_once(&env, &names, &size);
    let spares = made.iter().filter(|made| made["population"] == SPARE);
    assert!(spares.count() >= 3, "{made:#?}");
    let reference = by_git(&env, "by-git");
    let mut directories = BTreeSet::new();
    let mut files = BTreeSet::new();
    for (name, made) in names.iter().zip(&made) {
        let tree = path_of(made);
        let branch = git_in(&env, &tree, &["rev-parse", "--abbrev-ref", "HEAD"]);
        assert_eq!(branch, format!("wt/{name}"));
        assert_eq!(tip(&env, &branch), tip(&env, "main"));
        assert_same(&env, &tree, &reference, &[], name);
        directories.insert(tree.metadata().unwrap().ino());
        let file = tree.join("folder-0/file-0").metadata().unwrap();
        assert_eq!(file.nlink(), 1, "{name}");
        files.insert(file.ino());
    }
    assert_eq!((directories.len(), files.len()), (64, 64));
    assert_eq!(listed(&env).len(), 64);
    // Whoever still refills is waited for.
    env.ok(&["pool", "drain"]);
    assert_healthy(&env);
}
