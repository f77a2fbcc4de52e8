//! The control plane against a bare process start and against one file a task.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::naive::Naive;
use super::{
    Cost, hooks, mcp, measure, measure_any, median, ms, release_binary, say, seed, workers,
};

/// The exit code of a claim that finds nothing.
const NOTHING_READY: i32 = 4;

/// What a shell asks for at a press of the tab key.
const COMPLETING: &str = "completing a task's id (large)";

/// How often each command is run.
const RUNS: usize = 41;

/// Runs it all and prints the table.
pub fn run(tasks: u64) -> io::Result<()> {
    let lab = Lab::new()?;
    lab.queries(tasks)?;
    lab.mcp_answers()?;
    lab.claims_in_process()?;
    lab.events_in_process()?;
    lab.claims_on_the_command_line()?;
    lab.hooks()
}

/// What is measured: its name, where, the words and how many milliseconds it may take.
type Row<'a> = (&'static str, &'a Path, Vec<&'a str>, f64);

fn rows<'a>(small: &'a Path, large: &'a Path, middle: &'a str) -> Vec<Row<'a>> {
    vec![
        (
            "weald --version (start alone)",
            small,
            vec!["--version"],
            10.0,
        ),
        (
            "task show 1 (10 tasks)",
            small,
            vec!["task", "show", "1", "--json"],
            10.0,
        ),
        (
            "task add (10 tasks)",
            small,
            vec!["task", "add", "x", "--json"],
            10.0,
        ),
        (
            "task ready --json (large)",
            large,
            vec!["task", "ready", "--json"],
            20.0,
        ),
        (
            "task show (large)",
            large,
            vec!["task", "show", middle, "--json"],
            20.0,
        ),
        (
            "events --limit 20 (large)",
            large,
            vec!["events", "--limit", "20", "--json"],
            20.0,
        ),
        (
            "task claim (large)",
            large,
            vec!["task", "claim", "--json", "--session", "x"],
            20.0,
        ),
        ("board (large)", large, vec!["--json"], 20.0),
        (
            COMPLETING,
            large,
            vec!["--", "weald", "task", "show", ""],
            20.0,
        ),
    ]
}

struct Lab {
    directory: TempDir,
    weald: PathBuf,
}

impl Lab {
    fn new() -> io::Result<Self> {
        Ok(Self {
            weald: release_binary()?,
            directory: TempDir::with_prefix("weald-bench-")?,
        })
    }

    fn repository(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.directory.path().join(name);
        let made = command("git")
            .args(["init", "-q", "-b", "main"])
            .arg(&path)
            .status()?;
        match made.success() {
            true => Ok(path),
            false => Err(io::Error::other("git init failed")),
        }
    }

    fn weald(&self, repository: &Path, args: &[&str]) -> Command {
        let mut command = command(&self.weald);
        command
            .args(args)
            .current_dir(repository)
            .env("HOME", self.directory.path());
        command
    }

    /// Start-up and queries, each against a bare process and the naive design, interleaved.
    fn queries(&self, tasks: u64) -> io::Result<()> {
        let (small, large) = (self.repository("small")?, self.repository("large")?);
        seed::fill_ready(&private(&small), 10).map_err(io::Error::other)?;
        let started = Instant::now();
        seed::fill(&private(&large), tasks).map_err(io::Error::other)?;
        say(&format!(
            "made {tasks} tasks and {} events in {:.1}s",
            tasks * 10,
            started.elapsed().as_secs_f64()
        ));
        let naive = Naive::new(&self.directory.path().join("naive"));
        naive.fill(tasks)?;

        let middle = (tasks / 2).to_string();
        let rows = rows(&small, &large, &middle);
        let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); rows.len()];
        let mut bare = Vec::new();
        for _ in 0..RUNS {
            bare.push(measure(&mut command("/bin/true"))?);
            for ((what, repository, args, _), costs) in rows.iter().zip(&mut costs) {
                let mut command = self.weald(repository, args);
                if *what == COMPLETING {
                    command.env("COMPLETE", "fish");
                }
                costs.push(measure(&mut command)?);
            }
        }
        let started = Instant::now();
        naive.ready()?;
        let naive_ready = started.elapsed();
        print_costs(&rows, &costs, &bare);
        let ready = median(costs[3].iter().map(|cost| cost.wall).collect());
        say(&format!(
            "`task ready` against reading one file a task ({:.0} ms): {:.0}x",
            ms(naive_ready),
            naive_ready.as_secs_f64() / ready.as_secs_f64()
        ));
        Ok(())
    }

    /// How long a client of `weald mcp` waits, from the start of the server.
    fn mcp_answers(&self) -> io::Result<()> {
        let repository = self.repository("mcp")?;
        seed::fill_ready(&private(&repository), 10).map_err(io::Error::other)?;
        let mut waits = vec![Vec::new(); mcp::REQUESTS.len()];
        for _ in 0..RUNS {
            let answers = mcp::answers(&mut self.weald(&repository, &["mcp"]))?;
            for (waits, wait) in waits.iter_mut().zip(answers) {
                waits.push(wait);
            }
        }
        for (((name, goal, _), waits), number) in mcp::REQUESTS.iter().zip(waits).zip(1..) {
            let wait = ms(median(waits));
            let verdict = if wait < *goal { "met" } else { "MISSED" };
            say(&format!(
                "weald mcp, answer {number} ({name}): {wait:.2} ms after the start (goal {goal}: {verdict})"
            ));
        }
        Ok(())
    }

    fn hooks(&self) -> io::Result<()> {
        let repository = self.repository("hooks")?;
        let make = |args: &[&str]| self.weald(&repository, args);
        hooks::run(self.directory.path(), &repository, &self.weald, make)
    }

    fn claims_in_process(&self) -> io::Result<()> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..3 {
            let naive = self.directory.path().join(format!("naive-claims-{round}"));
            Naive::new(&naive).fill(500)?;
            theirs.push(workers::rate(&naive, "naive", 8, 500)? as u64);
            let weald = self.directory.path().join(format!("claims-{round}"));
            seed::fill_ready(&weald, 10_000).map_err(io::Error::other)?;
            ours.push(workers::rate(&weald, "weald", 8, 10_000)? as u64);
        }
        print_rate("claims a second, 8 processes", median(ours), median(theirs));
        Ok(())
    }

    fn events_in_process(&self) -> io::Result<()> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..3 {
            let naive = self.directory.path().join(format!("naive-events-{round}"));
            Naive::new(&naive).fill(100)?;
            theirs.push(workers::rate(&naive, "naive-events", 8, workers::events_of(8))? as u64);
            let weald = self.directory.path().join(format!("events-{round}"));
            seed::fill_ready(&weald, 100).map_err(io::Error::other)?;
            ours.push(workers::rate(&weald, "weald-events", 8, workers::events_of(8))? as u64);
        }
        print_rate("events a second, 8 processes", median(ours), median(theirs));
        Ok(())
    }

    /// 64 processes at a time claim 1,000 tasks; each call is a process of its own. Beside it 64 processes at a time of
    /// programs that do next to nothing, because with more processes than cores a start alone takes that long.
    fn claims_on_the_command_line(&self) -> io::Result<()> {
        for (what, pause) in [
            ("without a pause", Duration::ZERO),
            ("200 ms of work between", Duration::from_millis(200)),
        ] {
            let repository = self.repository(&format!("claims-{}", pause.as_millis()))?;
            seed::fill_ready(&private(&repository), 1_000).map_err(io::Error::other)?;
            let (bare, _) = storm(pause, |_| command("/bin/true"));
            let (git, _) = storm(pause, |_| {
                let mut git = command("git");
                git.args(["rev-parse", "--git-dir"])
                    .current_dir(&repository);
                git
            });
            let (costs, nothing_left) = storm(pause, |worker| {
                let session = format!("worker-{worker}");
                self.weald(
                    &repository,
                    &["task", "claim", "--json", "--session", &session],
                )
            });
            let wall = |costs: &[Cost]| median(costs.iter().map(|cost| cost.wall).collect());
            let worst = costs.iter().map(|cost| cost.wall).max().unwrap_or_default();
            let verdict = |met: bool| if met { "met" } else { "MISSED" };
            say(&format!(
                "64 processes claim 1,000 tasks on the command line, {what}:"
            ));
            say(&format!(
                "  claimed {}, found nothing left {nothing_left} (1000 and 24 are right)",
                costs.len()
            ));
            say(&format!(
                "  a call: median {:.1} ms (goal 10: {}), worst {:.0} ms (goal 1000: {}), {:.1} ms of processor time",
                ms(wall(&costs)),
                verdict(ms(wall(&costs)) < 10.0),
                ms(worst),
                verdict(ms(worst) < 1000.0),
                ms(median(costs.iter().map(|cost| cost.cpu).collect())),
            ));
            let times = wall(&costs).as_secs_f64() / wall(&bare).as_secs_f64();
            say(&format!(
                "  /bin/true in its place: median {:.1} ms, so {times:.1}x a bare start; git rev-parse: {:.1} ms",
                ms(wall(&bare)),
                ms(wall(&git))
            ));
        }
        Ok(())
    }
}

/// 64 threads run 16 commands each; answers what the successful ones cost and how many found nothing.
fn storm(pause: Duration, make: impl Fn(usize) -> Command + Sync) -> (Vec<Cost>, usize) {
    let costs: Mutex<(Vec<Cost>, usize)> = Mutex::default();
    thread::scope(|scope| {
        for worker in 0..64 {
            let (costs, make) = (&costs, &make);
            scope.spawn(move || {
                // Agents that work don't all finish at the same moment.
                thread::sleep(pause * worker as u32 / 64);
                for _ in 0..16 {
                    thread::sleep(pause);
                    let measured = measure_any(&mut make(worker)).expect("it starts");
                    let mut costs = costs.lock().expect("no panic");
                    match measured.code {
                        0 => costs.0.push(measured),
                        NOTHING_READY => costs.1 += 1,
                        code => panic!("a claim failed with {code}"),
                    }
                }
            });
        }
    });
    costs.into_inner().expect("no panic")
}

fn print_costs(rows: &[(&str, &Path, Vec<&str>, f64)], costs: &[Vec<Cost>], bare: &[Cost]) {
    let wall = |costs: &[Cost]| median(costs.iter().map(|cost| cost.wall).collect());
    let cpu = |costs: &[Cost]| median(costs.iter().map(|cost| cost.cpu).collect());
    let bare: (Duration, Duration) = (wall(bare), cpu(bare));
    say(&format!(
        "{:<32} {:>8} {:>8} {:>10} {:>7}",
        "", "wall ms", "cpu ms", "x a start", "goal"
    ));
    say(&format!(
        "{:<32} {:>8.2} {:>8.2} {:>10} {:>7}",
        "/bin/true (a bare start)",
        ms(bare.0),
        ms(bare.1),
        "1.0",
        ""
    ));
    for ((name, _, _, goal), costs) in rows.iter().zip(costs) {
        let (wall, cpu) = (wall(costs), cpu(costs));
        let verdict = if ms(cpu) < *goal { "met" } else { "MISSED" };
        let times = wall.as_secs_f64() / bare.0.as_secs_f64();
        say(&format!(
            "{name:<32} {:>8.2} {:>8.2} {times:>10.1} {verdict:>7}",
            ms(wall),
            ms(cpu)
        ));
    }
}

fn print_rate(what: &str, ours: u64, theirs: u64) {
    let times = ours as f64 / theirs as f64;
    let verdict = if times >= 10.0 { "met" } else { "MISSED" };
    say(&format!(
        "{what}: {ours}, one file a task {theirs}: {times:.1}x (goal 10x: {verdict})"
    ));
}

fn private(repository: &Path) -> PathBuf {
    repository.join(".git/weald/private")
}

fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark of processes starts processes"
    )]
    Command::new(program)
}
