//! Test suites of real projects, outside and inside: the tests that pass must be the same ones. Each project is fetched from its
//! registry and built outside, once; only its tests run inside.

mod suites;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::inside::{Table, binary, command, lab};
use super::say;
use suites::{Report, SUITES, Suite};

/// What to run.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// This binary instead of a release build
    #[arg(long, value_name = "PATH")]
    weald: Option<PathBuf>,
    /// Only suites whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Keep the sources here, and use what is there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// With this setting inside
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// At this level
    #[arg(long, default_value = "full")]
    level: String,
}

/// How often each test passed: suites use a name more than once.
type Passes = BTreeMap<String, usize>;

/// One run of a suite.
struct Run {
    passes: Passes,
    time: Duration,
}

/// Runs every suite, and prints a table and the tests that differ.
pub fn run(options: &Options) -> io::Result<()> {
    let weald = binary(options.weald.as_deref())?;
    let lab = lab("weald-real-")?;
    let lab = match &options.keep {
        Some(path) => {
            fs::create_dir_all(path)?;
            path.canonicalize()?
        }
        None => lab.path().to_owned(),
    };
    let columns = [
        "passes outside",
        "passes inside",
        "only outside",
        "only inside",
        "seconds outside",
        "seconds inside",
        "ratio",
    ];
    let mut inner = vec![weald.into_os_string()];
    for setting in &options.set {
        inner.extend(["--set".into(), setting.into()]);
    }
    let exec = ["sandbox", "exec", "--level", &options.level, "--write", "."];
    inner.extend(exec.map(Into::into));
    inner.push("--".into());
    let mut table = Table::new("suite", &columns);
    let mut differing = Vec::new();
    for suite in SUITES {
        let is_wanted = |text: &String| suite.name.contains(text.as_str());
        if !options.only.as_ref().is_none_or(is_wanted) {
            continue;
        }
        let folder = lab.join(suite.name);
        if let Err(why) = prepare(suite, &folder) {
            say(&format!("SKIPPED: {}: {why}", suite.name));
            continue;
        }
        let mut outside = once(suite, &folder, None)?;
        let mut inside = once(suite, &folder, Some(&inner))?;
        let first = inside.passes.clone();
        // Suites have tests that are red now and then: what differs has two more tries in both places.
        for _ in 0..2 {
            if outside.passes == inside.passes {
                break;
            }
            outside.also(once(suite, &folder, None)?);
            inside.also(once(suite, &folder, Some(&inner))?);
        }
        let lost = missing(&outside.passes, &inside.passes);
        let gained = missing(&inside.passes, &outside.passes);
        for test in missing(&inside.passes, &first) {
            let name = suite.name;
            differing.push(format!(
                "{name} did not pass inside at the first try: {test}"
            ));
        }
        let ratio = inside.time.as_secs_f64() / outside.time.as_secs_f64();
        table.add(
            suite.name,
            vec![
                outside.passes.values().sum::<usize>().to_string(),
                inside.passes.values().sum::<usize>().to_string(),
                lost.len().to_string(),
                gained.len().to_string(),
                format!("{:.1}", outside.time.as_secs_f64()),
                format!("{:.1}", inside.time.as_secs_f64()),
                format!("{ratio:.2}"),
            ],
        );
        let name =
            |place: &str, test: &String| format!("{} passes only {place}: {test}", suite.name);
        differing.extend(lost.iter().map(|test| name("outside", test)));
        differing.extend(gained.iter().map(|test| name("inside", test)));
    }
    table.print();
    for line in differing {
        say(&line);
    }
    Ok(())
}

impl Run {
    /// What passed in any of several runs, in the time of the shortest.
    fn also(&mut self, other: Self) {
        self.time = self.time.min(other.time);
        for (test, count) in other.passes {
            let known = self.passes.entry(test).or_default();
            *known = count.max(*known);
        }
    }
}

/// The tests that pass more often in one run than in the other.
fn missing(these: &Passes, those: &Passes) -> Vec<String> {
    let is_missing = |(test, count): &(&String, &usize)| those.get(*test).unwrap_or(&0) < *count;
    these
        .iter()
        .filter(is_missing)
        .map(|(test, _)| test.clone())
        .collect()
}

/// Fetches and builds a suite, unless that is done.
fn prepare(suite: &Suite, folder: &Path) -> Result<(), String> {
    let done = folder.join(".prepared");
    if done.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    say(&format!("fetching and building {}", suite.name));
    let output = command("sh")
        .args(["-ec", suite.prepare])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return fs::write(done, "").map_err(|error| error.to_string());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(last.unwrap_or("it can't be built").to_owned())
}

/// Runs a suite here, or inside by this command.
fn once(suite: &Suite, folder: &Path, inside: Option<&[OsString]>) -> io::Result<Run> {
    let mut argv: Command = match inside {
        // A run has no capabilities, also when root starts it.
        None if rustix::process::geteuid().is_root() => {
            let mut argv = command("setpriv");
            argv.args(["--bounding-set=-all", "--inh-caps=-all", "sh"]);
            argv
        }
        None => command("sh"),
        Some(inner) => {
            let mut argv = command(&inner[0]);
            argv.args(&inner[1..]).arg("sh");
            argv
        }
    };
    argv.args(["-c", suite.run])
        .current_dir(folder)
        .stdin(Stdio::null());
    let started = Instant::now();
    let output = argv.output()?;
    let time = started.elapsed();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let place = if inside.is_some() {
        "inside"
    } else {
        "outside"
    };
    fs::write(folder.join(format!("last-{place}.txt")), &text)?;
    fs::write(folder.join(format!("last-{place}.err")), &output.stderr)?;
    Ok(Run {
        passes: passes(suite.report, &text),
        time,
    })
}

/// The tests that a report calls passed.
fn passes(report: Report, text: &str) -> Passes {
    let (mut found, mut program) = (Passes::new(), String::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            name.clone_into(&mut program);
            continue;
        }
        if let Some(test) = report.passed(line) {
            *found
                .entry(format!("{program} {test}").trim().to_owned())
                .or_default() += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::suites::Report;
    use super::{missing, passes};

    #[test]
    fn passes_are_read_from_every_kind_of_report() {
        let reports = [
            (
                Report::Libtest,
                "## a\ntest b::c ... ok\ntest d ... FAILED\ntest e ... ignored",
                "a b::c",
            ),
            (
                Report::Go,
                "## net\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n--- SKIP: TestC (0.00s)",
                "net TestA",
            ),
            (
                Report::Redis,
                "\u{1b}[32m[ok]: SET and GET (2 ms)\n[err]: other in tests/x.tcl",
                "SET and GET",
            ),
            (
                Report::Pytest,
                "PASSED tests/a.py::b\nFAILED tests/a.py::c - x",
                "tests/a.py::b",
            ),
            (
                Report::Unittest,
                "test_a (test.b.C.test_a) ... ok\ntest_d (test.b.C) ... skipped 'x'\ntest_e (t) ... FAIL",
                "test_a (test.b.C.test_a)",
            ),
        ];
        for (report, text, expected) in reports {
            let found = passes(report, text);
            assert_eq!(found.keys().collect::<Vec<_>>(), [expected], "{report:?}");
        }
    }

    #[test]
    fn a_test_that_passes_less_often_is_missing() {
        let twice = passes(Report::Pytest, "PASSED a\nPASSED a\nPASSED b");
        let once = passes(Report::Pytest, "PASSED a\nPASSED b");
        assert_eq!(missing(&twice, &once), ["a"]);
        assert!(missing(&once, &twice).is_empty());
    }
}
