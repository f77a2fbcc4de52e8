//! What an agent costs: memory and processor time of its supervisor while it does nothing, its start, and a whole task that
//! does nothing against the same with git alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{measure, median, ms, release_binary, say};

/// How many agents do nothing, and for how long they are looked at.
const AGENTS: usize = 20;
const WATCHED: Duration = Duration::from_secs(30);

/// How often a whole task is measured.
const ROUNDS: usize = 15;

/// Runs it all and prints what came out.
pub fn run() -> io::Result<()> {
    let weald = release_binary()?;
    let lab = TempDir::with_prefix("weald-bench-")?;
    let field = Field { weald, lab };
    field.prepare()?;
    field.idle()?;
    field.whole()
}

struct Field {
    weald: PathBuf,
    lab: TempDir,
}

impl Field {
    fn repository(&self) -> PathBuf {
        self.lab.path().join("app")
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "a benchmark of processes starts processes"
        )]
        let mut command = Command::new(program);
        command
            .env("HOME", self.lab.path().join("home"))
            .env("WEALD_POOL_SIZE", "0")
            .current_dir(self.repository());
        command
    }

    fn prepare(&self) -> io::Result<()> {
        fs::create_dir(self.lab.path().join("home"))?;
        fs::create_dir(self.repository())?;
        for args in [
            &["init", "-q", "-b", "main"][..],
            &["config", "user.name", "Bench"],
            &["config", "user.email", "bench@example.com"],
            &["commit", "-q", "--allow-empty", "-m", "first"],
        ] {
            measure(self.command("git").args(args))?;
        }
        Ok(())
    }

    fn idle(&self) -> io::Result<()> {
        let mut starts = Vec::new();
        for number in 0..AGENTS {
            let subject = format!("sleep {number}");
            let mut start = self.command(&self.weald);
            start.args(["work", "--new", &subject, "--detach", "--", "sleep", "600"]);
            starts.push(measure(&mut start)?.wall);
        }
        let supervisors = supervisors_in(&self.repository())?;
        // What happens at the start is over by then.
        thread::sleep(Duration::from_secs(3));
        let before: Vec<Duration> = supervisors.iter().map(|pid| cpu(*pid)).collect();
        let since = Instant::now();
        thread::sleep(WATCHED);
        let after = supervisors.iter().map(|pid| cpu(*pid)).zip(before);
        let share = |(after, before): (Duration, Duration)| {
            (after.saturating_sub(before)).as_secs_f64() / since.elapsed().as_secs_f64() * 100.0
        };
        let shares: Vec<f64> = after.map(share).collect();
        let worst = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let private = values(&supervisors, &["Private_Clean:", "Private_Dirty:"]);
        let shared = values(&supervisors, &["Pss:"]);
        supervisors.iter().for_each(|pid| {
            let number = Pid::from_raw(*pid as i32).expect("a number");
            let _ = kill_process(number, Signal::TERM);
        });
        say(&format!(
            "{} agents that sleep: started in {:.0} ms (median; command to supervisor at work)",
            supervisors.len(),
            ms(median(starts))
        ));
        let verdict = |is_met| if is_met { "met" } else { "MISSED" };
        say(&format!(
            "  a supervisor's private memory (USS): worst {:.1} MB (goal 10: {}), proportional (PSS): worst {:.1} MB",
            worst(&private),
            verdict(worst(&private) < 10.0),
            worst(&shared)
        ));
        say(&format!(
            "  a supervisor's processor time over {} s: worst {:.2} % of a core (goal 0.5: {})",
            WATCHED.as_secs(),
            worst(&shares),
            verdict(worst(&shares) < 0.5)
        ));
        while !supervisors_in(&self.repository())?.is_empty() {
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// A task whose command does nothing, against git's worktrees.
    fn whole(&self) -> io::Result<()> {
        let (mut ours, mut git) = (Vec::new(), Vec::new());
        let script = "git worktree add -q ../plain && true && git worktree remove ../plain && git branch -q -D plain";
        for number in 0..ROUNDS {
            let subject = format!("nothing {number}");
            let mut work = self.command(&self.weald);
            work.args(["work", "--new", &subject, "--", "true"]);
            ours.push(measure(&mut work)?.wall);
            git.push(measure(self.command("sh").args(["-ec", script]))?.wall);
        }
        let (ours, git) = (ms(median(ours)), ms(median(git)));
        say(&format!(
            "`weald work -- true`, all of it: {ours:.0} ms; git worktree add, true, remove: {git:.0} ms: {:.1}x",
            ours / git
        ));
        Ok(())
    }
}

/// The supervisors that work in a repository.
pub(super) fn supervisors_in(repository: &Path) -> io::Result<Vec<u32>> {
    let here = repository.canonicalize()?;
    let is_ours = |pid: &u32| {
        let place = Path::new("/proc").join(pid.to_string());
        let words = fs::read(place.join("cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        words.any(|word| word == b"supervise-agent")
            && fs::read_link(place.join("cwd")).is_ok_and(|cwd| cwd == here)
    };
    let entries = fs::read_dir("/proc")?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.filter(is_ours).collect())
}

/// Megabytes that the kernel counts under these names.
pub(super) fn values(pids: &[u32], names: &[&str]) -> Vec<f64> {
    let of = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let counted = text.lines().filter_map(|line| {
            let rest = names.iter().find_map(|name| line.strip_prefix(name))?;
            rest.trim().trim_end_matches(" kB").parse::<f64>().ok()
        });
        counted.sum::<f64>() / 1024.0
    };
    pids.iter().map(of).collect()
}

/// The processor time of all threads of a process.
fn cpu(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let of = |thread: fs::DirEntry| {
        let account = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        account.split(' ').next()?.parse::<u64>().ok()
    };
    let each = threads.into_iter().flatten().flatten().filter_map(of);
    Duration::from_nanos(each.sum())
}
