//! How many processes and visits to worktrees a command takes, and how long: `rm`, `land` and `work` beside the same with
//! git alone, and a call of `weald mcp`. strace counts; the times are taken without it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{mcp, measure, median, ms, release_binary, say};

/// How often each command is timed.
const ROUNDS: usize = 9;

/// Files of the repository.
const FILES: usize = 1_000;

/// How a visit starts.
const VISIT: &str = "execve(\"/proc/self/exe\", [\"/proc/self/exe\", \"__weald-inside\"";

/// How many calls a server is asked for.
const CALLS: u32 = 1_000;

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// This binary instead of a release build
    #[arg(long, value_name = "PATH")]
    weald: Option<PathBuf>,
}

/// What is measured: before each round, the command, and after it.
struct Case {
    name: &'static str,
    before: &'static str,
    command: &'static str,
    after: &'static str,
}

const BRANCH: &str = "git worktree add -q ../w -b w main; echo $(date +%N) > ../w/new; git -C ../w add -A; git -C ../w commit -qm new";
const WORKTREE: &str = "$WEALD new w >/dev/null 2>&1; echo $(date +%N) > ../app.weald/w/new; git -C ../app.weald/w add -A; git -C ../app.weald/w commit -qm new";

const CASES: [Case; 8] = [
    Case {
        name: "git worktree remove",
        before: "git worktree add -q ../w -b w main",
        command: "git worktree remove ../w",
        after: "git branch -qD w",
    },
    Case {
        name: "weald rm",
        before: "$WEALD new w >/dev/null 2>&1",
        command: "$WEALD rm w",
        after: "true",
    },
    Case {
        name: "git merge --no-ff",
        before: BRANCH,
        command: "git merge -q --no-ff -m merged w",
        after: "git worktree remove ../w; git branch -qD w",
    },
    Case {
        name: "weald land",
        before: WORKTREE,
        command: "$WEALD land w",
        after: "true",
    },
    Case {
        name: "git: worktree, true, remove",
        before: "true",
        command: "sh -c 'git worktree add -q ../w -b w main; true; git worktree remove ../w; git branch -qD w'",
        after: "true",
    },
    Case {
        name: "weald work -- true",
        before: "true",
        command: "$WEALD work --new nothing -- true",
        after: "true",
    },
    Case {
        name: "weald work, one line landed",
        before: "true",
        command: "$WEALD work --new something -- sh -c 'date +%N > line'",
        after: "true",
    },
    Case {
        name: "weald list",
        before: "true",
        command: "$WEALD list",
        after: "true",
    },
];

struct Field {
    weald: PathBuf,
    lab: TempDir,
}

/// Counts and times everything.
pub fn run(options: &Options) -> io::Result<()> {
    let weald = match &options.weald {
        Some(path) => path.canonicalize()?,
        None => release_binary()?,
    };
    let field = Field {
        weald,
        lab: TempDir::with_prefix("weald-bench-")?,
    };
    field.prepare()?;
    say(&format!(
        "{:<30} {:>9} {:>9} {:>9} {:>9}",
        format!("{FILES} files"),
        "processes",
        "programs",
        "visits",
        "ms"
    ));
    for case in &CASES {
        let Counts {
            processes,
            programs,
            visits,
        } = field.count(case)?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            field.sh(case.before)?;
            times.push(measure(&mut field.shell(&format!("exec {}", case.command)))?.wall);
            field.sh(case.after)?;
        }
        say(&format!(
            "{:<30} {processes:>9} {programs:>9} {visits:>9} {:>9.1}",
            case.name,
            ms(median(times))
        ));
    }
    field.calls()
}

impl Field {
    fn shell(&self, script: &str) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "a benchmark of processes starts processes"
        )]
        let mut command = Command::new("sh");
        command
            .args(["-ec", script])
            .env("HOME", self.lab.path().join("home"))
            .env("WEALD", &self.weald)
            .env("WEALD_POOL_SIZE", "0")
            .env("WEALD_WORK_ON_EMPTY", "complete")
            .current_dir(self.lab.path().join("app"));
        command
    }

    fn sh(&self, script: &str) -> io::Result<()> {
        measure(&mut self.shell(script)).map(|_| ())
    }

    fn prepare(&self) -> io::Result<()> {
        fs::create_dir(self.lab.path().join("home"))?;
        fs::create_dir(self.lab.path().join("app"))?;
        self.sh(&format!(
            "git init -q -b main; git config user.name Bench; git config user.email bench@example.com
             git config maintenance.auto false; for n in $(seq {FILES}); do echo $n > f$n; done
             git add -A; git commit -qm first; $WEALD list"
        ))
    }

    /// What a command starts. What goes on in the background counts, too.
    fn count(&self, case: &Case) -> io::Result<Counts> {
        self.sh(case.before)?;
        let list = self.lab.path().join("calls");
        let traced = format!(
            "exec strace -f -qq -e signal=none -e trace=clone,clone3,fork,vfork,execve -o '{}' {}",
            list.display(),
            case.command
        );
        self.sh(&traced)?;
        self.sh(case.after)?;
        Ok(counted(&fs::read_to_string(list)?))
    }

    /// How long a call of a server takes that needs the store alone, and how long the command of its own takes.
    fn calls(&self) -> io::Result<()> {
        let mut command = self.shell("exec $WEALD mcp");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.stderr(Stdio::null()).spawn()?;
        let mut stdin = server.stdin.take().expect("piped");
        let mut stdout = BufReader::new(server.stdout.take().expect("piped"));
        let mut line = String::new();
        let mut times = Vec::new();
        let (_, _, hello) = mcp::REQUESTS[0];
        for number in 0..=CALLS {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"task_list","arguments":{{}}}}}}"#,
                number + 1
            );
            let request = if number == 0 { hello } else { call.as_str() };
            let begun = Instant::now();
            stdin.write_all(format!("{request}\n").as_bytes())?;
            line.clear();
            stdout.read_line(&mut line)?;
            times.push(begun.elapsed());
        }
        drop(stdin);
        server.wait()?;
        let all: Duration = times.iter().sum();
        let alone = measure(&mut self.shell("exec $WEALD task list --json"))?.wall;
        say(&format!(
            "{CALLS} calls of task_list over MCP: {:.2} ms each (median), {:.0} ms in all; `weald task list`: {:.2} ms",
            ms(median(times)),
            ms(all),
            ms(alone)
        ));
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Counts {
    /// The command itself included.
    processes: usize,
    /// How many of them become another program.
    programs: usize,
    /// How many of these look or work in a worktree for weald.
    visits: usize,
}

/// Counts in what strace wrote.
fn counted(text: &str) -> Counts {
    let (mut processes, mut programs, mut visits) = (1, 0, 0);
    // Whether the call that a process has begun makes a thread: the line with its end does not say so.
    let mut begun: BTreeMap<&str, bool> = BTreeMap::new();
    for line in text.lines() {
        let Some((pid, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        if call.starts_with("execve(") || call.starts_with("<... execve") {
            programs += usize::from(call.ends_with("= 0"));
            visits += usize::from(call.starts_with(VISIT));
            continue;
        }
        let is_thread = match call.starts_with("<...") {
            true => begun.remove(pid).unwrap_or(false),
            false => call.contains("CLONE_THREAD"),
        };
        if call.ends_with("<unfinished ...>") {
            begun.insert(pid, is_thread);
            continue;
        }
        let answer = call.rsplit("= ").next().unwrap_or_default();
        let number = answer.split(' ').next().unwrap_or_default();
        let is_new = number.parse::<u32>().is_ok_and(|number| number > 0);
        processes += usize::from(is_new && !is_thread);
    }
    Counts {
        processes,
        programs,
        visits,
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, counted};

    #[test]
    fn threads_are_no_processes_and_unfinished_calls_count_once() {
        let text = "10 execve(\"/bin/sh\", [], 0x7f /* 3 vars */) = 0
10 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0}, 88) = 11
10 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID <unfinished ...>
11 clone3({flags=CLONE_THREAD} <unfinished ...>
10 <... clone resumed>, child_tidptr=0x7f) = 12
11 <... clone3 resumed> => {parent_tid=[13]}, 88) = 13
12 execve(\"/usr/bin/git\", [], 0x7f) = -1 ENOENT (No such file or directory)
12 execve(\"/bin/git\", [], 0x7f <unfinished ...>
12 <... execve resumed>) = 0
12 vfork() = 14
12 execve(\"/proc/self/exe\", [\"/proc/self/exe\", \"__weald-inside\"], 0x7f <unfinished ...>
12 <... execve resumed>) = 0
";
        let expected = Counts {
            processes: 3,
            programs: 3,
            visits: 1,
        };
        assert_eq!(counted(text), expected);
    }
}
