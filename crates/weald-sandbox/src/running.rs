//! A run: the helper is started, waited for, given orders, ended.

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
use crate::gateway::{Doors, Gateway, Refusals};
use crate::handover::{self, INIT_ARGUMENT, Plan, Report};
use crate::orders::{LastWords, Order, STOPPED};
use crate::policy::{Level, Network, Policy};
use crate::set_id::Reachable;
use crate::sys::{self, CLOSE_ON_EXEC};
use crate::temporary::Temporary;
use crate::terminal::TerminalSize;
use crate::{broker_socket, interrupts, sockets};

pub struct Invocation {
    /// This binary, or another one that calls [`crate::run_if_init`] first.
    pub helper: PathBuf,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    pub streams: [Stdio; 3],
}

/// How many milliseconds a run has to end by itself before its helper is killed.
const GRACE: libc::c_int = 1_500;

/// How many milliseconds the kernel has to end what was killed.
const LAST_GRACE: libc::c_int = 10_000;

/// A run that goes on. Dropping it ends everything in it.
pub struct Running {
    child: Child,
    lifeline: UnixStream,
    /// `None` without a sandbox.
    level: Option<Level>,
    /// The helper said that a signal ended the command.
    was_signalled: bool,
    /// The master of the terminal that the command was given, until somebody takes it.
    pub(crate) terminal: Option<OwnedFd>,
    /// Its temporary files, where nothing private is in their place. They go when it has ended.
    pub(crate) tmp: Option<Temporary>,
    /// What other users could reach of what it writes. Searched when it has ended.
    pub(crate) reachable: Option<Reachable>,
    refusals: Refusals,
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
    terminal: Option<TerminalSize>,
) -> Result<Running, StartError> {
    let mut command = command_of(&invocation);
    let [stdin, stdout, stderr] = invocation.streams;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let (status, status_end) = pipe()?;
    let (lifeline, lifeline_end) = sys::socket_pair()?;
    let (listener, listener_end) = sys::socket_pair()?;
    let text = Plan::new(policy, environment, terminal).to_file()?;
    let handed = [
        (&text, handover::POLICY),
        (&status_end, handover::STATUS),
        (&lifeline_end, handover::LIFELINE),
        (&listener_end, handover::LISTENER),
    ];
    // Copies above the numbers they will have, so that none is overwritten before its turn.
    let mut moves = Vec::new();
    for (fd, number) in handed {
        moves.push((sys::duplicate_above(fd, handover::LAST + 1)?, number));
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
    drop((moves, status_end, lifeline_end, listener_end));
    let level = policy.map(|policy| policy.level);
    let mut running = Running {
        child,
        lifeline: lifeline.into(),
        level,
        was_signalled: false,
        terminal: None,
        tmp: None,
        reachable: None,
        refusals: Refusals::default(),
    };
    if terminal.is_some() {
        // Without one the report says why.
        running.terminal = sys::receive_descriptor(&listener)?;
    }
    if let Some(policy) = policy.filter(|policy| policy.level == Level::Full)
        && let Ok(Some(questions)) = sys::receive_descriptor(&listener)
        && let Ok(Some(queries)) = sys::receive_descriptor(&listener)
        && let Ok(Some(connector)) = sys::receive_descriptor(&listener)
    {
        let doors = match policy.network {
            Network::Allow => Doors::receive(&listener)?,
            Network::On | Network::Off => None,
        };
        let gateway = doors.map(|doors| Gateway::start(policy, doors, running.refusals.clone()));
        sockets::serve(questions, queries, connector, gateway.transpose()?, policy)?;
    }
    if let Some(broker) = policy.and_then(|policy| policy.broker.as_deref())
        && let Ok(Some(questions)) = sys::receive_descriptor(&listener)
    {
        broker_socket::serve(questions, broker)?;
    }
    let mut report = String::new();
    File::from(status).read_to_string(&mut report)?;
    match report.is_empty() {
        true => Ok(running),
        false => Err(StartError::Step(Report::read(&report))),
    }
}

/// From here on nothing that this process has open comes along to what it starts, but the three streams. For a process that starts
/// something that outlives it: a lock or a pipe of the caller's would stay open as long.
pub fn keep_descriptors() -> io::Result<()> {
    sys::close_from(3, CLOSE_ON_EXEC)
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

    /// What it wanted to reach and was not listed; the list grows while the run goes on.
    pub fn refusals(&self) -> Refusals {
        self.refusals.clone()
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
            // A command may end with such a code by itself, so the code proves nothing.
            Some(code) if code > 128 && self.was_signalled => Ended::Signal(code - 128),
            Some(code) => Ended::Code(code),
            None => Ended::Signal(status.signal().unwrap_or(0)),
        }))
    }

    /// The same for a run in the foreground of a terminal: a Ctrl-C is for the command, and this process waits on. When the
    /// command stops, as by Ctrl-Z, this process does, too, until the shell continues both; the time goes on meanwhile.
    pub fn wait_through_interrupts(mut self, limit: Option<Duration>) -> io::Result<Ended> {
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            sys::set_signal(signal, libc::SIG_IGN);
        }
        leave_stops_to_the_command();
        let deadline = limit.map(|limit| Instant::now() + limit);
        while self.waits_for_the_next_stop(deadline)? {
            // Without a terminal there is no shell that could continue this process.
            let order = match has_terminal() {
                true => {
                    sys::suspend_group();
                    Order::Resumed
                }
                false => Order::Heard,
            };
            // It may have ended meanwhile.
            let _ = self.order(order);
        }
        self.wait(deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())))
    }

    /// Whether the command has stopped itself, as by Ctrl-Z, since this was asked last. Also true after [`Order::Stop`].
    pub fn take_stop(&mut self) -> io::Result<bool> {
        let stopped = sys::take_byte(&self.lifeline, STOPPED);
        if stopped {
            self.order(Order::Heard)?;
        }
        Ok(stopped)
    }

    /// Waits until the command has stopped: true; false if there is something else to say about it.
    fn waits_for_the_next_stop(&self, deadline: Option<Instant>) -> io::Result<bool> {
        let process = sys::open_process(self.child.id() as libc::pid_t)?;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            let wait = left.map_or(60_000, |left| left.as_millis().min(60_000));
            let ready = sys::poll(
                &[process.as_fd(), self.lifeline.as_fd()],
                wait as libc::c_int + 1,
            )?;
            // The answer to an order may come late; anything else is the last word of the helper.
            let late = [Order::Heard, Order::Resumed];
            if ready[1]
                && !late
                    .iter()
                    .any(|order| sys::take_byte(&self.lifeline, order.byte()))
            {
                return Ok(sys::take_byte(&self.lifeline, STOPPED));
            }
            if ready[0] {
                return Ok(false);
            }
        }
    }

    /// Has everybody in the run obey, and returns when they were reached.
    pub fn order(&mut self, order: Order) -> io::Result<()> {
        // The command may have ended before the order came.
        self.was_signalled |= order.send(&mut self.lifeline)?;
        Ok(())
    }

    /// Ends everything in the run: asked first, and after `patience` by force.
    pub fn end(&mut self, patience: Duration) -> io::Result<()> {
        if self.order(Order::Terminate).is_ok() {
            let _ = self.ended_within(Some(patience));
        }
        self.stop()
    }

    /// Ends everything in the run, and waits until it is gone.
    pub fn stop(&mut self) -> io::Result<()> {
        // The first process inside (or the reaper) notices, and takes everything with it.
        let _ = self.lifeline.shutdown(Shutdown::Write);
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
        let words = LastWords::read(&mut self.lifeline)?;
        self.was_signalled |= words.was_signalled;
        words.nobody_is_left()?;
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

/// From here on a Ctrl-Z stops the command, and this process when it hears of that. To be called before the command is
/// started: one that stops at once would else stop both, and once continued this process would hear of it and stop again.
pub fn leave_stops_to_the_command() {
    for signal in sys::JOB_CONTROL {
        sys::set_signal(signal, libc::SIG_IGN);
    }
}

/// Whether this process has a controlling terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
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
