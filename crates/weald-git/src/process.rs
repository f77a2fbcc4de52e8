//! The builder and runner of git processes.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};

/// How long a git process may take by default.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// How long a git that took too long may take to clear up.
const GRACE: Duration = Duration::from_secs(2);

/// How much of standard error is kept for a message.
const KEPT_STDERR: usize = 4096;

/// Why a git process did not do what it was started for.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It could not be started.
    #[error("git can't be started: {source}")]
    NotStarted { source: io::Error },
    /// It ended with an error.
    #[error("`git {command}` failed: {stderr}")]
    Failed {
        command: String,
        /// Its exit code, if it had one.
        code: Option<i32>,
        /// The start of what it said.
        stderr: String,
    },
    /// It took too long and was killed.
    #[error("`git {command}` took longer than {}s and was stopped", .limit.as_secs())]
    TimedOut { command: String, limit: Duration },
    /// It answered something that is not its documented format.
    #[error("`git {command}` answered something unexpected: {answer:?}")]
    Unexpected {
        command: String,
        /// The start of its answer.
        answer: String,
    },
    /// It is too old.
    #[error("git {found} is too old: {who} needs {needed} or newer")]
    TooOld {
        found: String,
        /// What needs a newer one.
        who: &'static str,
        needed: String,
    },
}

impl GitError {
    pub(crate) fn unexpected(command: &str, answer: impl Into<String>) -> Self {
        Self::Unexpected {
            command: command.to_owned(),
            answer: answer.into(),
        }
    }

    /// Whether another process holds a lock that git needed, or was faster than it: worth another try.
    pub fn says_locked(&self) -> bool {
        let says_lock = |stderr: &str| stderr.contains(".lock");
        self.says_tables_are_held()
            || matches!(self, Self::Failed { stderr, .. } if says_lock(stderr))
    }

    /// The same of the one lock that all refs in tables share.
    pub(crate) fn says_tables_are_held(&self) -> bool {
        let words = ["cannot lock references", "data concurrently modified"];
        let says = |stderr: &str| words.iter().any(|words| stderr.contains(words));
        matches!(self, Self::Failed { stderr, .. } if says(stderr))
    }
}

/// What a git process answered.
#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    /// Its standard output, whole.
    pub stdout: Vec<u8>,
    /// The start of its standard error.
    pub stderr: String,
}

impl Output {
    /// What its command failed with.
    pub(crate) fn failure(self, command: &str) -> GitError {
        GitError::Failed {
            command: command.to_owned(),
            code: self.status.code(),
            stderr: self.stderr,
        }
    }

    /// Its standard output as text, without the last line's end.
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.stdout);
        text.trim_end().to_owned()
    }
}

/// One git command in the making.
pub struct Git {
    command: Command,
    name: String,
    input: Input,
    limit: Duration,
    settings: usize,
    bounds: Option<(u64, Duration)>,
    answer_limit: u64,
    is_aloud: bool,
}

/// What a git process reads.
enum Input {
    Nothing,
    Bytes(Vec<u8>),
    Stream(Box<dyn Read + Send>),
}

impl Git {
    /// A git command on the repository `git_dir`. It sees no configuration of the user or the system, runs no hook
    /// and no file-system monitor, and never asks anybody anything.
    pub fn new(git_dir: &Path, name: &str) -> Self {
        let mut git = Self::bare(name);
        git.command.arg("--git-dir").arg(git_dir);
        git.fixed_config(git_dir);
        git.command.arg(name);
        git
    }

    /// The same without weald's own settings, to read what the repository's say.
    pub fn with_own_config(git_dir: &Path, name: &str) -> Self {
        let mut git = Self::bare(name);
        git.command.arg("--git-dir").arg(git_dir).arg(name);
        git
    }

    /// A git command on no repository (`init`, `--version`), in `directory`.
    pub fn outside(directory: &Path, name: &str) -> Self {
        let mut git = Self::bare(name);
        git.command.current_dir(directory).arg(name);
        git
    }

    fn bare(name: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place where git starts")]
        let mut command = Command::new("git");
        #[expect(
            clippy::disallowed_methods,
            reason = "git and its helpers have to be found"
        )]
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        command.env_clear().env("PATH", path);
        for (variable, value) in [
            ("HOME", "/nonexistent"),
            ("LC_MESSAGES", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            // What is shown is what lands: a run can replace objects in its repository, and in main's from a linked worktree.
            ("GIT_NO_REPLACE_OBJECTS", "1"),
        ] {
            command.env(variable, value);
        }
        Self {
            command,
            name: name.to_owned(),
            input: Input::Nothing,
            limit: TIME_LIMIT,
            settings: 0,
            bounds: None,
            answer_limit: u64::MAX,
            is_aloud: false,
        }
    }

    fn fixed_config(&mut self, git_dir: &Path) {
        let mut ours = OsString::from("safe.directory=");
        ours.push(git_dir);
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "core.fsync=all",
            "gc.auto=0",
            // Refs in tables have one lock; a newer git waits for it.
            "reftable.lockTimeout=5000",
        ] {
            self.command.arg("-c").arg(setting);
        }
        self.command.arg("-c").arg(ours);
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Gives it something to read.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(input.into());
        self
    }

    /// Gives it a stream to read.
    pub fn input_from(mut self, stream: impl Read + Send + 'static) -> Self {
        self.input = Input::Stream(Box::new(stream));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Passes on those of this process's own variables that `is_wanted` says.
    pub(crate) fn own_variables(mut self, is_wanted: impl Fn(&str) -> bool) -> Self {
        #[expect(clippy::disallowed_methods, reason = "passed on, not read")]
        let all = std::env::vars_os();
        let wanted = all.filter(|(name, _)| name.to_str().is_some_and(&is_wanted));
        self.command.envs(wanted);
        self
    }

    pub(crate) fn in_directory(mut self, path: &Path) -> Self {
        self.command.current_dir(path);
        self
    }

    /// The files it works on, and its current directory.
    pub fn work_tree(mut self, path: &Path) -> Self {
        self.command.env("GIT_WORK_TREE", path).current_dir(path);
        self
    }

    /// Another index than the repository's own.
    pub fn index_file(mut self, path: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", path);
        self
    }

    /// Sets a configuration key for this command alone.
    pub fn config(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        let number = self.settings;
        self.settings += 1;
        self.command
            .env(format!("GIT_CONFIG_KEY_{number}"), key)
            .env(format!("GIT_CONFIG_VALUE_{number}"), value)
            .env("GIT_CONFIG_COUNT", self.settings.to_string());
        self
    }

    /// Lets it read the user's own configuration, as their git would.
    pub fn with_user_config(mut self, home: Option<&Path>) -> Self {
        self.command.env_remove("GIT_CONFIG_GLOBAL");
        if let Some(home) = home {
            self.command.env("HOME", home);
        }
        self
    }

    /// Passes on this process's own environment, but for git's variables. For git inside a sandbox, so that hooks see what
    /// every command sees there.
    pub fn with_own_environment(self) -> Self {
        let mut git = self.own_variables(|name| !name.starts_with("GIT_"));
        for ours in ["GIT_OPTIONAL_LOCKS", "GIT_NO_LAZY_FETCH"] {
            git.command.env_remove(ours);
        }
        git
    }

    /// Also writes what it says on standard error to this process's own, as it comes.
    pub fn aloud(mut self) -> Self {
        self.is_aloud = true;
        self
    }

    /// Bounds its memory and processor time: for work on what somebody else made.
    pub fn bounded(mut self, memory: u64, cpu: Duration) -> Self {
        self.bounds = Some((memory, cpu));
        self
    }

    /// Reads no more of its answer than this; a git that says more fails.
    pub(crate) fn answer_limit(mut self, bytes: u64) -> Self {
        self.answer_limit = bytes;
        self
    }

    /// Changes the time limit.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it; anything but success is an error.
    pub fn run(self) -> Result<Vec<u8>, GitError> {
        let name = self.name.clone();
        let output = self.output()?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(output.failure(&name)),
        }
    }

    /// Runs it and answers its output as text; anything but success is an error.
    pub fn text(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.run()?).into_owned())
    }

    /// Runs it and lets the caller judge the exit code.
    pub fn output(self) -> Result<Output, GitError> {
        self.output_to(Stdio::piped())
    }

    /// Runs it with its standard output going straight to `stdout`.
    pub fn output_to(mut self, stdout: impl Into<Stdio>) -> Result<Output, GitError> {
        self.command.stdout(stdout);
        let mut child = self.spawn()?;
        let readers = self.readers(&mut child);
        self.finish(child, readers)
    }

    /// Starts it with its output as what `next` reads, and runs both; anything but success of both is an error.
    pub fn pipe_into(mut self, next: Self) -> Result<Vec<u8>, GitError> {
        let (reader, writer) = io::pipe().map_err(|source| GitError::NotStarted { source })?;
        self.command.stdout(writer);
        let mut child = self.spawn()?;
        // The command still holds the pipe's end; without this the reader would never see its end.
        self.command.stdout(Stdio::null());
        let readers = self.readers(&mut child);
        let received = next.input_from(reader).run();
        let name = self.name.clone();
        let output = self.finish(child, readers)?;
        match output.status.success() {
            true => received,
            false => Err(output.failure(&name)),
        }
    }

    /// Starts it for a conversation: the caller writes, reads and waits.
    pub(crate) fn start(mut self) -> Result<Child, GitError> {
        self.command.stdout(Stdio::piped());
        self.spawn()
    }

    fn spawn(&mut self) -> Result<Child, GitError> {
        self.command.stdin(Stdio::piped()).stderr(Stdio::piped());
        // An own process group, so that a time-out also ends what git started.
        self.command.process_group(0);
        let child = self
            .command
            .spawn()
            .map_err(|source| GitError::NotStarted { source })?;
        if let (Some((memory, cpu)), Some(pid)) = (self.bounds, pid_of(&child)) {
            for (resource, value) in [(Resource::As, memory), (Resource::Cpu, cpu.as_secs())] {
                let limit = Rlimit {
                    current: Some(value),
                    maximum: Some(value),
                };
                // One that has ended already needs no bounds.
                let _ = prlimit(Some(pid), resource, limit);
            }
        }
        Ok(child)
    }

    fn readers(&mut self, child: &mut Child) -> Readers {
        let input = std::mem::replace(&mut self.input, Input::Nothing);
        Readers::start(child, input, (self.is_aloud, self.answer_limit))
    }

    fn finish(self, mut child: Child, readers: Readers) -> Result<Output, GitError> {
        match readers.finish(self.limit) {
            Some((stdout, stderr)) => {
                let status = child
                    .wait()
                    .map_err(|source| GitError::NotStarted { source })?;
                Ok(Output {
                    status,
                    stdout,
                    stderr,
                })
            }
            None => {
                stop(&mut child);
                Err(GitError::TimedOut {
                    command: self.name,
                    limit: self.limit,
                })
            }
        }
    }
}

/// Threads that feed and drain a child, so that neither side waits for the other for ever.
struct Readers(mpsc::Receiver<(Vec<u8>, String)>);

impl Readers {
    fn start(child: &mut Child, input: Input, (is_aloud, limit): (bool, u64)) -> Self {
        let mut stdin = child.stdin.take().expect("piped");
        let stderr = child.stderr.take().expect("piped");
        // A git that ends early closes the pipe; its exit code says more than the broken pipe.
        match input {
            Input::Nothing => drop(stdin),
            Input::Bytes(bytes) => drop(thread::spawn(move || stdin.write_all(&bytes))),
            Input::Stream(mut stream) => {
                drop(thread::spawn(move || io::copy(&mut stream, &mut stdin)));
            }
        }
        let errors = thread::spawn(move || match is_aloud {
            true => drain(Aloud(stderr)),
            false => drain(stderr),
        });
        let stdout = child.stdout.take();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut answer = Vec::new();
            if let Some(stdout) = stdout {
                let _ = stdout.take(limit).read_to_end(&mut answer);
            }
            let _ = sender.send((answer, errors.join().unwrap_or_default()));
        });
        Self(receiver)
    }

    fn finish(self, limit: Duration) -> Option<(Vec<u8>, String)> {
        self.0.recv_timeout(limit).ok()
    }
}

/// A stream that is passed on to this process's standard error while it is read.
struct Aloud<R>(R);

impl<R: Read> Read for Aloud<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        // With stderr closed nobody reads it.
        let _ = io::stderr().write_all(&buffer[..count]);
        Ok(count)
    }
}

/// Reads to the end, keeps the start.
pub(crate) fn drain(mut from: impl Read) -> String {
    let mut kept = Vec::new();
    let _ = from
        .by_ref()
        .take(KEPT_STDERR as u64)
        .read_to_end(&mut kept);
    let _ = io::copy(&mut from, &mut io::sink());
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// Ends a git and what it started. A git that is asked to end takes its lock files away.
pub(crate) fn stop(child: &mut Child) {
    let Some(group) = pid_of(child) else {
        return;
    };
    let _ = kill_process_group(group, Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(Duration::from_millis(5));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

#[cfg(test)]
mod tests;
