//! The outside: starts a run, waits for it, ends it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cgroup::Group;
use crate::ending::Ended;
use crate::error::SandboxError;
use crate::init::{self, INIT_ARGUMENT, Plan, Report};
use crate::policy::{Level, Policy, Revealed};
use crate::set_id::Reachable;
use crate::temporary::Temporary;
use crate::{availability, folders, home, interrupts, sockets, sys};

pub struct Invocation {
    /// This binary, or another one that calls [`crate::run_if_init`] first.
    pub helper: PathBuf,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    pub streams: [Stdio; 3],
    /// The one other thing that is open for it, as [`PASSED`].
    pub passed: Option<OwnedFd>,
}

/// `CLOSE_RANGE_CLOEXEC`: not now, but with the next exec.
pub(crate) const CLOSE_ON_EXEC: libc::c_uint = 4;

/// The number that a passed descriptor has inside.
pub const PASSED: RawFd = 3;

/// How many milliseconds a run has to end by itself before its helper is killed.
const GRACE: libc::c_int = 1_500;

/// How many milliseconds the kernel has to end what was killed.
const LAST_GRACE: libc::c_int = 10_000;

/// A run that goes on. Dropping it ends everything in it.
pub struct Running {
    child: Child,
    pub(crate) lifeline: Option<UnixStream>,
    /// `None` without a sandbox.
    level: Option<Level>,
    /// The helper said that a signal ended the command.
    pub(crate) was_signalled: bool,
    /// Its temporary files, where nothing private is in their place. They go when it has ended.
    _tmp: Option<Temporary>,
    /// What other users could reach of what it writes. Searched when it has ended.
    reachable: Option<Reachable>,
}

/// Starts a run. When this returns without an error the command has been executed, inside.
pub fn launch(policy: &Policy, invocation: Invocation) -> Result<Running, SandboxError> {
    let mut policy = resolved(policy)?;
    let tmp = match (policy.level, &policy.tmp) {
        (Level::Landlock, None) => Some(Temporary::new(&policy)?),
        _ => None,
    };
    if let Some(tmp) = &tmp {
        policy.tmp = Some(tmp.path().to_owned());
    }
    let environment = environment_of(&policy, &invocation)?;
    let reachable = Reachable::of(&policy);
    let mut running = start_or_explain(Some(&policy), environment, invocation)?;
    running._tmp = tmp;
    running.reachable = reachable;
    Ok(running)
}

/// Starts a command without any confinement, because somebody asked for exactly that. It is ended with all that came
/// from it.
pub fn launch_unconfined(invocation: Invocation) -> Result<Running, SandboxError> {
    let mut environment = invocation.environment.clone();
    environment.push(("WEALD_SANDBOX".into(), "off".into()));
    start_or_explain(None, environment, invocation)
}

fn start_or_explain(
    policy: Option<&Policy>,
    environment: Vec<(OsString, OsString)>,
    invocation: Invocation,
) -> Result<Running, SandboxError> {
    let (helper, command) = (invocation.helper.clone(), invocation.command.clone());
    start(policy, environment, invocation)
        .map_err(|error| availability::explain(error, policy, &helper, &command))
}

/// Why the helper did not get as far as the command.
pub(crate) enum StartError {
    /// A step of the helper failed.
    Step(Report),
    /// The helper itself could not be started.
    Launcher(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Launcher(error)
    }
}

pub(crate) fn start(
    policy: Option<&Policy>,
    environment: Vec<(OsString, OsString)>,
    invocation: Invocation,
) -> Result<Running, StartError> {
    let mut command = command_of(&invocation);
    let [stdin, stdout, stderr] = invocation.streams;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let (status, status_end) = pipe()?;
    let (lifeline, lifeline_end) = sys::socket_pair()?;
    let (listener, listener_end) = sys::socket_pair()?;
    let passes = invocation.passed.is_some();
    let text = Plan::new(policy, environment, passes).to_file()?;
    let mut handed = vec![
        (&text, init::POLICY),
        (&status_end, init::STATUS),
        (&lifeline_end, init::LIFELINE),
        (&listener_end, init::LISTENER),
    ];
    handed.extend(invocation.passed.as_ref().map(|fd| (fd, init::HANDED)));
    // Copies above the numbers they will have, so that none is overwritten before its turn.
    let mut moves = Vec::new();
    for (fd, number) in handed {
        moves.push((sys::duplicate_above(fd, init::LAST + 1)?, number));
    }
    let numbers: Vec<(RawFd, RawFd)> = moves
        .iter()
        .map(|(fd, number)| (fd.as_raw_fd(), *number))
        .collect();
    // SAFETY: the closure makes async-signal-safe calls only and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            numbers
                .iter()
                .try_for_each(|(from, to)| sys::duplicate_to(*from, *to))
        });
    }
    let child = command
        .spawn()
        .map_err(|error| of_start(&invocation.helper, &invocation.directory, &error))?;
    drop((
        moves,
        status_end,
        lifeline_end,
        listener_end,
        invocation.passed,
    ));
    let level = policy.map(|policy| policy.level);
    let running = Running {
        child,
        lifeline: Some(lifeline.into()),
        level,
        was_signalled: false,
        _tmp: None,
        reachable: None,
    };
    if let Some(policy) = policy.filter(|policy| policy.level == Level::Full)
        && let Ok(Some(questions)) = sys::receive_descriptor(&listener)
        && let Ok(Some(queries)) = sys::receive_descriptor(&listener)
        && let Ok(Some(connector)) = sys::receive_descriptor(&listener)
    {
        sockets::serve(questions, queries, connector, policy)?;
    }
    let mut report = String::new();
    File::from(status).read_to_string(&mut report)?;
    match report.is_empty() {
        true => Ok(running),
        false => Err(StartError::Step(Report::read(&report))),
    }
}

/// From here on nothing that this process has open comes along to what it starts, but the three streams. For whoever starts
/// something that outlives it: a lock or a pipe of the caller's would stay open as long.
pub fn keep_descriptors() -> io::Result<()> {
    sys::close_from(PASSED, CLOSE_ON_EXEC)
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The number of the process whose end is the end of everything in the run: the first one of its namespace. Without
    /// a namespace it is the helper, or the command itself.
    pub fn keeper(&self) -> u32 {
        let id = self.child.id();
        let children = format!("/proc/{id}/task/{id}/children");
        let first = || std::fs::read_to_string(children).ok()?.trim().parse().ok();
        let is_full = self.level == Some(Level::Full);
        is_full.then(first).flatten().unwrap_or(id)
    }

    /// The streams that were asked for as pipes.
    pub fn streams(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (
            self.child.stdin.take(),
            self.child.stdout.take(),
            self.child.stderr.take(),
        )
    }

    /// Waits for the end; after `limit` everything is ended.
    pub fn wait(mut self, limit: Option<Duration>) -> io::Result<Ended> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if let Some(ended) = self.ended_within(left)? {
                return Ok(ended);
            }
            if left.is_some_and(|left| left.is_zero()) {
                self.stop()?;
                return Ok(Ended::TimedOut);
            }
        }
    }

    /// Waits for the end, at most `patience` (or a minute); `None` while it goes on.
    pub fn ended_within(&mut self, patience: Option<Duration>) -> io::Result<Option<Ended>> {
        use std::os::unix::process::ExitStatusExt;
        sys::be_prompt();
        let process = sys::open_process(self.child.id() as libc::pid_t)?;
        let wait = patience.map_or(60_000, |patience| patience.as_millis().min(60_000));
        if !sys::poll(&[process.as_fd()], wait as libc::c_int + 1)?[0] {
            return Ok(None);
        }
        let status = self.child.wait()?;
        self.is_over()?;
        Ok(Some(match status.code() {
            // A command may end with such a code by itself, so the code does not tell.
            Some(code) if code > 128 && self.was_signalled => Ended::Signal(code - 128),
            Some(code) => Ended::Code(code),
            None => Ended::Signal(status.signal().unwrap_or(0)),
        }))
    }

    /// The same for a run in the foreground of a terminal: a Ctrl-C is for the command, and this process waits on.
    pub fn wait_through_interrupts(self, limit: Option<Duration>) -> io::Result<Ended> {
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            sys::set_signal(signal, libc::SIG_IGN);
        }
        self.wait(limit)
    }

    /// Ends everything in the run, and waits until it is gone.
    pub fn stop(&mut self) -> io::Result<()> {
        // The first process inside (or the reaper) notices, and takes everything with it.
        if let Some(lifeline) = &self.lifeline {
            let _ = lifeline.shutdown(Shutdown::Write);
        }
        // The helper ends after the last process inside. If that takes too long, its end is theirs, by the kernel.
        let process = sys::open_process(self.child.id() as libc::pid_t);
        let ended = process
            .is_ok_and(|process| sys::poll(&[process.as_fd()], GRACE).is_ok_and(|ready| ready[0]));
        if !ended && self.level == Some(Level::Full) {
            let first = sys::open_process(self.keeper() as libc::pid_t);
            let _ = self.child.kill();
            if let Ok(first) = first {
                // Its end comes after that of all others in its namespace.
                let _ = sys::poll(&[first.as_fd()], LAST_GRACE);
            }
        }
        self.child.wait()?;
        self.is_over()
    }

    /// Errors if somebody outlived the helper, or left something that others could run with this user's rights.
    fn is_over(&mut self) -> io::Result<()> {
        let ended = self.nobody_is_left();
        let stripped = self.reachable.take().map_or(Ok(()), Reachable::strip);
        ended.and(stripped)
    }

    /// A helper that was killed leaves it to this process to end the rest.
    fn nobody_is_left(&mut self) -> io::Result<()> {
        self.hear_last_words()?;
        let group = match self.level {
            Some(Level::Full) => None,
            _ => Group::left_by(self.child.id()),
        };
        match group {
            Some(group) => {
                group.kill()?;
                let text = "the command ended, but processes that it started could not be ended";
                group.remove().then_some(()).ok_or(io::Error::other(text))
            }
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Directories that are never the writable one: they belong to the system.
const SYSTEM: [&str; 14] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/proc", "/root", "/run", "/sbin", "/sys",
    "/tmp", "/usr", "/var",
];

/// The same policy with every path as the kernel names it, so that a link can't lead elsewhere later. What can't be meant
/// is refused.
fn resolved(policy: &Policy) -> Result<Policy, SandboxError> {
    let resolve = |path: &PathBuf| {
        path.canonicalize()
            .map_err(|source| SandboxError::Directory {
                path: path.clone(),
                source,
            })
    };
    let mut policy = policy.clone();
    policy.home = policy
        .home
        .as_ref()
        .and_then(|home| home.canonicalize().ok());
    let given = policy.write.clone();
    policy.write = policy.write.iter().map(resolve).collect::<Result<_, _>>()?;
    policy.show = policy.show.iter().map(resolve).collect::<Result<_, _>>()?;
    policy.sockets = policy
        .sockets
        .iter()
        .map(resolve)
        .collect::<Result<_, _>>()?;
    policy.devices = crate::devices::usable(&policy.devices)?;
    resolve_revealed(&mut policy)?;
    for (given, path) in given.iter().zip(&policy.write) {
        let elsewhere = |other: &&PathBuf| *other != path && given.starts_with(other);
        if given.is_symlink() || policy.write.iter().any(|other| elsewhere(&other)) {
            return refused(
                given,
                "it is a link, or lies in another writable directory: a run could lead it elsewhere",
            );
        }
    }
    refuse_what_is_not_meant(&policy)?;
    // A path that is not there yet stays as it is, but from the caller's directory, not from the run's.
    let absolute = |path: &PathBuf| path.canonicalize().or_else(|_| std::path::absolute(path));
    policy.mask = policy.mask.iter().map(absolute).collect::<Result<_, _>>()?;
    home::resolve(&mut policy);
    if let Some(path) = policy.mask.iter().find(|mask| {
        policy
            .reveal
            .iter()
            .any(|revealed| mask.starts_with(&revealed.path))
    }) {
        return refused(
            path,
            "it is masked, and lies in a directory that is revealed",
        );
    }
    Ok(policy)
}

pub(crate) fn refused<T>(path: &Path, why: &str) -> Result<T, SandboxError> {
    Err(SandboxError::Directory {
        path: path.to_owned(),
        source: io::Error::other(why.to_owned()),
    })
}

/// Refuses directories that can't be meant, and sockets that a run could replace.
fn refuse_what_is_not_meant(policy: &Policy) -> Result<(), SandboxError> {
    for path in &policy.write {
        let holds_home = policy
            .home
            .as_ref()
            .is_some_and(|home| home.starts_with(path));
        if path.parent().is_none()
            || !path.is_dir()
            || SYSTEM.iter().any(|system| Path::new(system) == path)
        {
            return refused(path, "only a directory of your own can be the writable one");
        }
        if holds_home {
            return refused(
                path,
                "it holds your home, with the settings that agents and shells load",
            );
        }
    }
    let is_written = |path: &Path| {
        let seen = |it: &&Revealed| path.starts_with(&it.path);
        match policy.reveal.iter().find(seen) {
            Some(revealed) => revealed.writable,
            None => policy
                .write
                .iter()
                .any(|directory| path.starts_with(directory)),
        }
    };
    if let Some(path) = policy.sockets.iter().find(|path| is_written(path)) {
        return refused(
            path,
            "a listed socket can't lie in a writable directory: it could be replaced",
        );
    }
    Ok(())
}

/// What is revealed is a directory where it seems to be, and nothing else that is written lies in it.
fn resolve_revealed(policy: &mut Policy) -> Result<(), SandboxError> {
    for revealed in &mut policy.reveal {
        let refused = |source| SandboxError::Directory {
            path: revealed.path.clone(),
            source,
        };
        let path = revealed.path.canonicalize().map_err(refused)?;
        let holds_written = policy.write.iter().any(|write| write.starts_with(&path));
        if revealed.path.is_symlink() || !path.is_dir() || holds_written {
            return Err(refused(io::Error::other(
                "only a directory that is no link, and holds nothing writable, can be revealed",
            )));
        }
        revealed.path = path;
    }
    Ok(())
}

fn command_of(invocation: &Invocation) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "the sandbox launcher starts processes"
    )]
    let mut command = Command::new(&invocation.helper);
    command
        .arg(INIT_ARGUMENT)
        .arg("--")
        .args(&invocation.command);
    // The helper is not confined yet: nothing of the command's environment (LD_PRELOAD …) may steer it.
    command.current_dir(&invocation.directory).env_clear();
    if interrupts::are_caught() {
        command.process_group(0);
    }
    command
}

/// What says where temporary files go. Claude Code would make a folder in /tmp, which is not to be written at level landlock.
const TEMPORARY: [&str; 2] = ["TMPDIR", "CLAUDE_CODE_TMPDIR"];

/// The command's environment: what the caller gave, and where things are inside.
fn environment_of(
    policy: &Policy,
    invocation: &Invocation,
) -> io::Result<Vec<(OsString, OsString)>> {
    let mut all = invocation.environment.clone();
    all.extend(folders::prepare(policy)?);
    all.push(("WEALD_SANDBOX".into(), policy.level.as_str().into()));
    let tmp = match (policy.level, &policy.tmp) {
        (Level::Landlock, tmp) => tmp.as_deref(),
        (Level::Full, _) => Some(Path::new("/tmp")),
    };
    let named = tmp.map(|tmp| TEMPORARY.map(|name| (name.into(), tmp.into())));
    all.extend(named.into_iter().flatten());
    Ok(all)
}

/// Which of the two it was the system does not say.
fn of_start(helper: &Path, directory: &Path, error: &io::Error) -> io::Error {
    let (helper, directory) = (helper.display(), directory.display());
    let text = format!("{helper} can't be started in {directory}: {error}");
    io::Error::new(error.kind(), text)
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}
