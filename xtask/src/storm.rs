//! The crash storm: one kill at every labelled step, then random ones; nothing may be lost.
//!
//! Prints its seed first. What goes wrong panics: the exit code is not 0, and the world stays on disk.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use weald_testkit::STEPS;
use weald_testkit::storm::{RandomKills, Tally, World, kill_at, kinds_of};

use crate::bench::say;

/// How large a storm.
#[derive(clap::Args)]
pub struct Options {
    /// How many random kills
    #[arg(long, default_value_t = 200)]
    kills: usize,
    /// What decides what is done when (default: any)
    #[arg(long)]
    seed: Option<u64>,
    /// End the random kills after so many minutes
    #[arg(long)]
    minutes: Option<u64>,
    /// Only steps whose label begins so
    #[arg(long, default_value = "", value_name = "LABEL")]
    only: String,
}

pub fn run(options: &Options) -> io::Result<()> {
    let any = || RandomState::new().hash_one("storm") % 1_000_000;
    let seed = options.seed.unwrap_or_else(any);
    say(&format!("seed {seed}"));
    let binary = build()?;
    let started = Instant::now();
    let labels = kill_at_every_step(&binary, &options.only);
    let took = started.elapsed().as_secs();
    say(&format!("{labels} labels in {took} s, nothing lost"));
    let storm = RandomKills {
        kills: options.kills,
        seed,
        workers: 4,
        deadline: options
            .minutes
            .map(|minutes| Instant::now() + Duration::from_secs(60 * minutes)),
    };
    let tally = match options.kills {
        0 => Tally::new(),
        _ => kill_at_random(&binary, storm),
    };
    print(&tally);
    let kills: usize = tally.values().map(|(_, killed)| killed).sum();
    let took = started.elapsed().as_secs();
    say(&format!(
        "storm: {kills} kills, {labels} labels, 0 lost (seed {seed}, {took} s)"
    ));
    Ok(())
}

/// Builds a release binary with labelled steps, beside the real one.
fn build() -> io::Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the storm builds what it kills")]
    let mut cargo = Command::new("cargo");
    let built = cargo
        .args(["build", "--profile", "storm", "-q", "-p", "weald"])
        .args(["--features", "failpoints"])
        .current_dir(crate::tidy::root())
        .status()?;
    let own = std::env::current_exe()?;
    match (built.success(), own.ancestors().nth(2)) {
        (true, Some(target)) => Ok(target.join("storm/weald")),
        _ => Err(io::Error::other("weald does not build")),
    }
}

/// One world for the steps of an operation; several operations at once.
fn kill_at_every_step(binary: &Path, only: &str) -> usize {
    let mut operations: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for label in STEPS.iter().filter(|label| label.starts_with(only)) {
        let operation = label.split('.').next().unwrap_or_default();
        operations.entry(operation).or_default().push(label);
    }
    let labels = operations.values().map(Vec::len).sum();
    let open = Mutex::new(operations);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let next = || open.lock().expect("the list").pop_first();
                while let Some((operation, labels)) = next() {
                    kill_operation(binary, operation, &labels);
                }
            });
        }
    });
    labels
}

fn kill_operation(binary: &Path, operation: &str, labels: &[&str]) {
    let world = World::new(binary);
    for (number, label) in labels.iter().enumerate() {
        for kind in kinds_of(label) {
            kill_at(&world, label, kind, &format!("{}{number}", &kind[..1]));
        }
    }
    say(&format!("  {operation}: {} steps", labels.len()));
}

fn kill_at_random(binary: &Path, storm: RandomKills) -> Tally {
    let world = World::new(binary);
    let mut told = 0;
    storm.run(&world, &mut |killed| {
        if killed / 20 > told / 20 {
            say(&format!("  {killed} random kills"));
        }
        told = killed;
    })
}

fn print(tally: &Tally) {
    if !tally.is_empty() {
        say(&format!("{:<16}{:>6}{:>8}", "operation", "done", "killed"));
    }
    for (what, (done, killed)) in tally {
        say(&format!("{what:<16}{done:>6}{killed:>8}"));
    }
}
