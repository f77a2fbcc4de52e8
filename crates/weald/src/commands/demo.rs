//! `weald demo`: the main job in a throw-away repository, narrated.
//!
//! Every step is a real call of this very binary, in a home of its own, so the demo can't show what does not work.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use tempfile::TempDir;
use weald_app::{Environment, Failure, exit};
use weald_git::{Git, require_version};

use crate::context::Context;
use crate::ui::{ACCENT, DIM, HEADING, Out, paint};

/// How many agents race for one task.
const RACERS: usize = 8;

/// Show the main workflow in a throwaway repository
///
/// Needs only git and leaves nothing behind.
#[derive(Args)]
pub struct Demo {
    /// Keep the repository and print its path
    #[arg(long)]
    keep: bool,
}

impl Demo {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        require_version()?;
        let stage = Stage::build(&context.environment)?;
        let mut out = context.ui.out();
        stage.play(&mut out)?;
        if self.keep {
            let kept = stage.directory.keep();
            writeln!(out, "\nkept: cd {}", kept.join("app").display())?;
        }
        Ok(exit::DONE)
    }
}

struct Stage {
    directory: TempDir,
    weald: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Stage {
    fn build(environment: &Environment) -> Result<Self, Failure> {
        let directory = TempDir::with_prefix("weald-demo-")?;
        let passed = ["PATH", "TERM", "NO_COLOR", "TMPDIR"];
        let variables = passed
            .iter()
            .filter_map(|name| Some((*name, environment.get(name)?)))
            .collect();
        let stage = Self {
            directory,
            weald: std::env::current_exe()?,
            variables,
        };
        let repo = stage.repo();
        std::fs::create_dir_all(&repo)?;
        let own = "[user]\n\tname = demo\n\temail = demo@example.com\n";
        std::fs::write(stage.directory.path().join(".gitconfig"), own)?;
        Git::outside(&repo, "init")
            .args(["-q", "-b", "main"])
            .run()?;
        let identity = [
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_EMAIL",
        ];
        let commit = Git::outside(&repo, "commit").args(["-q", "--allow-empty", "-m", "first"]);
        identity
            .iter()
            .fold(commit, |commit, name| commit.env(name, "demo@example.com"))
            .run()?;
        Ok(stage)
    }

    fn repo(&self) -> PathBuf {
        self.directory.path().join("app")
    }

    fn play(&self, out: &mut Out) -> Result<(), Failure> {
        title(out, "A repository, and work to hand out")?;
        self.show(out, &["task", "add", "Design the API", "--priority", "P1"])?;
        self.show(out, &["task", "add", "Write the server", "--after", "1"])?;
        self.show(out, &["task", "add", "Write the client", "--after", "1"])?;
        self.show(out, &["task", "add", "Ship it", "--after", "2,3"])?;
        self.show_refusal(out, &["task", "dep", "1", "--add", "4"])?;
        say(
            out,
            "A dependency cycle is refused, and shown. Only the first task is ready:",
        )?;
        self.show(out, &["task", "ready"])?;

        title(out, "Eight agents want the same task at once")?;
        self.race(out)?;
        say(
            out,
            "A claim is a lease with a fencing token. An old or wrong token is refused:",
        )?;
        self.show_refusal(out, &["task", "done", "1", "--token", "7"])?;
        self.show(
            out,
            &[
                "task",
                "done",
                "1",
                "--token",
                "1",
                "--report",
                "three endpoints",
            ],
        )?;

        title(out, "An agent tries to leave its directory")?;
        self.escape(out)?;

        title(out, "Two worktrees and main, one file")?;
        if self.trees(out)? {
            title(out, "Both land, through a queue that tests what it lands")?;
            self.landing(out)?;
            title(out, "alice and bob take tasks by themselves")?;
            self.workers(out)?;
        }

        title(out, "Agents talk")?;
        self.show(out, &["session", "register", "bob"])?;
        self.show(
            out,
            &[
                "msg",
                "ask",
                "bob",
                "Which port?",
                "--task",
                "2",
                "--session",
                "alice",
            ],
        )?;
        self.show(out, &["msg", "reply", "1", "8080", "--session", "bob"])?;
        self.show(out, &["msg", "inbox", "--consume", "--session", "alice"])?;

        title(out, "Nothing happens unseen")?;
        self.show(out, &["events", "--limit", "12"])?;
        self.show(out, &[])?;
        Ok(())
    }

    /// What every agent tool allows, and what the kernel says here.
    fn escape(&self, out: &mut Out) -> Result<(), Failure> {
        let tree = self.directory.path().join("tree");
        std::fs::create_dir_all(&tree)?;
        let (tree, app) = (
            tree.display().to_string(),
            self.repo().display().to_string(),
        );
        let sandbox = [
            "sandbox", "exec", "--write", &tree, "--show", &app, "--", "sh", "-c",
        ];
        let attempt = format!(
            "echo mine > notes && echo ok; echo theirs > {app}/README; git -C {app} branch evil"
        );
        say(
            out,
            "It may write its own directory, and see the rest. The main checkout is an absolute path away:",
        )?;
        let succeeded = self.print(out, &[&sandbox[..], &[attempt.as_str()]].concat())?;
        let started = self.directory.path().join("tree/notes").exists();
        if succeeded || self.repo().join("README").exists() {
            return Err(unexpected(&["sandbox", "exec"]));
        }
        match started {
            true => say(
                out,
                "Nothing outside changed. `weald sandbox test` tries 160 more ways.",
            )?,
            false => say(
                out,
                "The sandbox is not available here, so nothing was started at all.",
            )?,
        }
        Ok(())
    }

    /// The same file in two trees and in main: three contents, and nothing of one in another.
    fn trees(&self, out: &mut Out) -> Result<bool, Failure> {
        std::fs::write(self.repo().join("config.py"), "DEBUG = 'main'\n")?;
        self.show(out, &["new", "server", "--task", "2"])?;
        self.show(out, &["new", "client", "--task", "3"])?;
        let write =
            |name: &str| format!("echo \"DEBUG = '{name}'\" > config.py && git add config.py");
        let held = ["server", "client"].iter().all(|name| {
            let args = ["run", name, "--", "sh", "-c", &write(name)];
            self.print(out, &args).unwrap_or(false)
        });
        if !held {
            say(out, "Runs need the sandbox, and it is not available here.")?;
            return Ok(false);
        }
        say(out, "The three of them:")?;
        let trees = self.directory.path().join("app.weald");
        for place in [self.repo(), trees.join("server"), trees.join("client")] {
            let text = std::fs::read_to_string(place.join("config.py"))?;
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            writeln!(out, "  {:<8} {}", name, text.trim_end())?;
        }
        self.show(out, &["status"])?;
        say(out, "Uncommitted work is never thrown away:")?;
        self.show_refusal(out, &["rm", "client"])?;
        self.show(out, &["rm", "client", "--discard"])?;
        self.show(out, &["restore", "client"])?;
        say(
            out,
            "A spare made in advance becomes a worktree in milliseconds, whatever the size of the repository:",
        )?;
        self.show(out, &["pool", "fill", "--count", "1"])?;
        self.show(out, &["new", "docs"])?;
        Ok(true)
    }

    /// Two trees that changed the same lines reach main one after the other; the second has to be brought together.
    fn landing(&self, out: &mut Out) -> Result<(), Failure> {
        let gate = ["config", "set", "gate.command", "grep DEBUG config.py"];
        self.show(out, &gate)?;
        say(
            out,
            "Which of them would clash, committed or not, before anyone lands:",
        )?;
        self.show(out, &["conflicts"])?;
        say(
            out,
            "A file of yours that is in the way is never overwritten:",
        )?;
        self.show_refusal(
            out,
            &["land", "server", "--commit", "-m", "server: settings"],
        )?;
        let mine = self.repo().join("config.py");
        std::fs::rename(&mine, mine.with_file_name("config.mine"))?;
        say(out, "(moved to config.mine)")?;
        self.show(out, &["land", "server"])?;
        say(
            out,
            "The other one changed the same lines. Nothing is touched, and it says what to do:",
        )?;
        self.show_refusal(
            out,
            &["land", "client", "--commit", "-m", "client: settings"],
        )?;
        self.show_refusal(out, &["sync", "client"])?;
        let resolve = "printf \"DEBUG = 'server'\\nVIEW = 'client'\\n\" > config.py && git commit -qam together";
        self.show(out, &["run", "client", "--", "sh", "-c", resolve])?;
        self.show(out, &["land", "client"])?;
        self.show(out, &["queue", "status", "--all"])?;
        let text = std::fs::read_to_string(&mine)?;
        say(out, "config.py in main, moved together with the branch:")?;
        for line in text.lines() {
            writeln!(out, "  {line}")?;
        }
        Ok(())
    }

    /// Two workers, two tasks, one file: each in a tree of its own, and main has both.
    fn workers(&self, out: &mut Out) -> Result<(), Failure> {
        let notes = self.repo().join("notes.txt");
        let lines: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&notes, lines)?;
        Git::outside(&self.repo(), "add")
            .args(["notes.txt"])
            .run()?;
        let identity = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"];
        let identity = identity
            .iter()
            .chain(&["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]);
        let commit = Git::outside(&self.repo(), "commit").args(["-q", "-m", "notes"]);
        identity
            .fold(commit, |commit, name| commit.env(name, "demo@example.com"))
            .run()?;
        self.show(out, &["task", "add", "Write the first line", "-p", "P0"])?;
        self.show(out, &["task", "add", "Write the last line", "-p", "P0"])?;
        let script = "case $WEALD_TASK_SUBJECT in *first*) n=1;; *) n=20;; esac; \
                      sed -i \"${n}s/.*/by $WEALD_SESSION in $WEALD_TREE/\" notes.txt";
        say(out, "Both at once, each with this command for an agent:")?;
        say(out, &format!("  {script}"))?;
        let mut workers = Vec::new();
        for name in ["alice", "bob"] {
            let shown = format!("weald worker --name {name} --max 1 -- sh -c …");
            writeln!(out, "{} {}", paint(DIM, "$"), paint(ACCENT, shown))?;
            let args = [
                "worker", "--name", name, "--max", "1", "--", "sh", "-c", script,
            ];
            let mut command = self.command(&args);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            workers.push(command.spawn()?);
        }
        for worker in workers {
            let output = worker.wait_with_output()?;
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                writeln!(out, "  {line}")?;
            }
            if !output.status.success() {
                return Err(unexpected(&["worker"]));
            }
        }
        say(out, "notes.txt in main, first and last line:")?;
        let text = std::fs::read_to_string(&notes)?;
        for line in text.lines().take(1).chain(text.lines().last()) {
            writeln!(out, "  {line}")?;
        }
        say(out, "Failed work is kept, and continues where it stopped:")?;
        let half = "test -e half || { echo begun > half; exit 1; }; echo done > whole";
        self.show_refusal(out, &["work", "Finish it", "--new", "--", "sh", "-c", half])?;
        self.show(out, &["resume", "7"])?;
        Ok(())
    }

    /// Starts all racers before looking at any, so that they really meet.
    fn race(&self, out: &mut Out) -> Result<(), Failure> {
        say(
            out,
            "$ weald task claim 1 --session agent-N    (8 processes at once)",
        )?;
        let mut racers = Vec::new();
        for number in 1..=RACERS {
            let name = format!("agent-{number}");
            let mut command = self.command(&["task", "claim", "1", "--session", &name]);
            racers.push((
                name,
                command
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()?,
            ));
        }
        for (name, racer) in racers {
            let output = racer.wait_with_output()?;
            match output.status.success() {
                true => writeln!(out, "  {name}: {}", paint(HEADING, "got it"))?,
                false => {
                    let said = String::from_utf8_lossy(&output.stderr);
                    let first = said
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .trim_start_matches("error: ");
                    writeln!(out, "  {name}: {}", paint(DIM, first))?;
                }
            }
        }
        Ok(())
    }

    /// Shows a command that has to work.
    fn show(&self, out: &mut Out, args: &[&str]) -> Result<(), Failure> {
        match self.print(out, args)? {
            true => Ok(()),
            false => Err(unexpected(args)),
        }
    }

    /// Shows a command that has to be refused.
    fn show_refusal(&self, out: &mut Out, args: &[&str]) -> Result<(), Failure> {
        match self.print(out, args)? {
            true => Err(unexpected(args)),
            false => Ok(()),
        }
    }

    /// Runs one command and prints it with everything it said; true if it succeeded.
    fn print(&self, out: &mut Out, args: &[&str]) -> Result<bool, Failure> {
        let quoted = |arg: &&str| match (arg.contains(' '), arg.contains('"')) {
            (false, false) => (*arg).to_owned(),
            (_, false) => format!("\"{arg}\""),
            (_, true) => format!("'{}'", arg.replace('\'', r"'\''")),
        };
        let line = args.iter().map(quoted).collect::<Vec<_>>().join(" ");
        writeln!(
            out,
            "{} {}",
            paint(DIM, "$"),
            paint(ACCENT, format!("weald {line}").trim_end())
        )?;
        // Both streams by one pipe: what was said first stands first.
        let (mut said, both) = io::pipe()?;
        let mut child = {
            let mut command = self.command(args);
            command.stdout(both.try_clone()?).stderr(both);
            command.spawn()?
        };
        let mut text = Vec::new();
        said.read_to_end(&mut text)?;
        let status = child.wait()?;
        for line in String::from_utf8_lossy(&text).lines() {
            writeln!(out, "  {line}")?;
        }
        Ok(status.success())
    }

    /// This binary, in the demo's home.
    fn command(&self, args: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the demo shows this binary as a user starts it"
        )]
        let mut command = Command::new(&self.weald);
        command
            .args(args)
            .current_dir(self.repo())
            .stdin(Stdio::null());
        // Only what a program needs to run and to draw: nothing of the caller's sessions or settings.
        command.env_clear().env("HOME", self.directory.path());
        // Nothing goes on in the background once the demo is over.
        command.env("WEALD_POOL_BACKGROUND", "false");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn unexpected(args: &[&str]) -> Failure {
    Failure::new(
        "demo_failed",
        exit::REFUSED,
        format!("`weald {}` did not do what the demo shows", args.join(" ")),
    )
}

fn title(out: &mut Out, text: &str) -> io::Result<()> {
    writeln!(out, "\n{}", paint(HEADING, format!("== {text}")))
}

fn say(out: &mut Out, text: &str) -> io::Result<()> {
    writeln!(out, "{}", paint(DIM, text))
}
