//! The rivals: how git, worktrunk and weald are told to make, show and remove a tree.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use super::ground::Ground;
use super::repository;
use crate::bench::ms;

/// A tree that was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// What it is called.
    pub name: String,
    pub path: PathBuf,
    /// Milliseconds of the whole command.
    pub wall: f64,
}

pub struct Tools {
    pub weald: PathBuf,
    /// worktrunk's, where there is one.
    pub peer: Option<PathBuf>,
    /// Everything is in here.
    pub lab: TempDir,
}

/// One repository on one ground, and everybody's trees of it.
pub struct Field<'a> {
    pub ground: &'a Ground,
    pub repository: PathBuf,
    tools: &'a Tools,
    made: Cell<usize>,
}

impl<'a> Field<'a> {
    /// A new repository with so many files.
    pub fn new(tools: &'a Tools, ground: &'a Ground, files: usize) -> io::Result<Self> {
        let name = format!("app{files}");
        Ok(Self {
            repository: repository::make(ground.path(), &name, files)?,
            ground,
            tools,
            made: Cell::new(0),
        })
    }

    /// How many trees were made so far.
    pub fn trees(&self) -> usize {
        self.made.get()
    }

    /// git in the main checkout.
    pub fn git(&self, args: &[&str]) -> Command {
        let mut command = git(self.ground.path(), &self.repository);
        command.args(args);
        command
    }

    /// weald in the main checkout.
    pub fn weald(&self, args: &[&str]) -> Command {
        let mut command = hermetic(self.ground.path(), &self.repository, &self.tools.weald);
        command.args(args);
        command
    }

    /// worktrunk in the main checkout.
    pub fn peer(&self, args: &[&str]) -> Option<Command> {
        let peer = self.tools.peer.as_ref()?;
        let mut command = hermetic(self.ground.path(), &self.repository, peer);
        command.args(args);
        Some(command)
    }

    /// What git is told to make a tree.
    pub fn git_new(&self) -> (Command, Made) {
        let name = self.next("git");
        let path = self.repository.with_file_name(&name);
        let mut command = self.git(&["worktree", "add", "-q", "-b", &name]);
        command.arg(&path).arg("main");
        let made = Made {
            name,
            path,
            wall: 0.0,
        };
        (command, made)
    }

    /// A tree by `git worktree add`.
    pub fn git_create(&self) -> io::Result<Made> {
        let (mut command, made) = self.git_new();
        let wall = self.timed(&mut command)?.0;
        Ok(Made { wall, ..made })
    }

    /// A tree by worktrunk.
    pub fn peer_create(&self) -> io::Result<Option<Made>> {
        let name = self.next("peer");
        let args = ["switch", "--create", &name, "--no-hooks", "--no-cd", "-y"];
        let Some(mut command) = self.peer(&args) else {
            return Ok(None);
        };
        let wall = self.timed(&mut command)?.0;
        let repository = self.repository.file_name().unwrap_or_default();
        let folder = format!("{}.{name}", repository.display());
        let path = self.repository.with_file_name(folder);
        Ok(Some(Made { name, path, wall }))
    }

    /// What weald is told to make a tree; anything but a checkout takes what the pool has.
    pub fn weald_new(&self, population: &str) -> (Command, String) {
        let name = self.next("weald");
        let mut command = self.weald(&["new", &name, "--json"]);
        if population == "checkout" {
            command.arg("--no-pool");
        }
        (command, name)
    }

    /// A tree by weald. It is an error if it was populated in another way.
    pub fn weald_create(&self, population: &str) -> io::Result<Made> {
        let (mut command, name) = self.weald_new(population);
        let (wall, answer) = self.timed(&mut command)?;
        let answer: Value = serde_json::from_str(&answer)?;
        let known = answer["population"].as_str().unwrap_or_default();
        match known == population {
            true => Ok(Made {
                name,
                path: answer["tree"]["path"].as_str().unwrap_or_default().into(),
                wall,
            }),
            false => Err(io::Error::other(format!(
                "it was made by {known}, not by {population}"
            ))),
        }
    }

    /// Puts so many spares into the pool, and a donor.
    pub fn fill(&self, count: usize) -> io::Result<()> {
        run(&mut self.weald(&["pool", "fill", "--count", &count.to_string()]))
    }

    /// Milliseconds of a look by whoever works in a tree.
    pub fn status_in(&self, made: &Made) -> io::Result<f64> {
        let mut status = git(self.ground.path(), &made.path);
        Ok(self.timed(status.args(["status", "--porcelain"]))?.0)
    }

    /// Milliseconds and answer of a command that must succeed; what was written before is on disk first.
    pub fn timed(&self, command: &mut Command) -> io::Result<(f64, String)> {
        self.ground.settle()?;
        let started = Instant::now();
        let output = command.output()?;
        let wall = ms(started.elapsed());
        succeeded(command, &output)?;
        Ok((wall, String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    fn next(&self, whose: &str) -> String {
        self.made.set(self.made.get() + 1);
        format!("{whose}-{}", self.made.get())
    }
}

/// A program, not started yet.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark of processes starts processes"
    )]
    Command::new(program)
}

/// A program that sees nothing of the caller's settings.
fn hermetic(home: &Path, directory: &Path, program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "programs have to be found")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = command(program);
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // A refill in the background would be measured with whatever comes next.
        .env("WEALD_POOL_BACKGROUND", "false")
        .current_dir(directory);
    command
}

/// git in a directory.
pub fn git(home: &Path, directory: &Path) -> Command {
    hermetic(home, directory, "git")
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    succeeded(command, &output)
}

fn succeeded(command: &Command, output: &std::process::Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let program = command.get_program().display();
    let args: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    Err(io::Error::other(format!(
        "`{program} {}` failed: {}",
        args.join(" "),
        said.lines().take(3).collect::<Vec<_>>().join("; ")
    )))
}
