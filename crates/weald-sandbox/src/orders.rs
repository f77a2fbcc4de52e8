//! Orders to everybody in a run: stop, go on, come to an end.
//!
//! An order goes down the lifeline and is carried out by the helper's reaper, which no process of the run can be
//! without: in a pid namespace the kernel gives the signal to all of them at once; elsewhere every descendant is looked
//! up, and orphans have come to the reaper. A byte comes back when it is done.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::sys;

/// How long the reaper has to carry out an order.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the helper says when a signal ended the command.
const SIGNALLED: u8 = b'k';

/// What the helper says when processes could not be ended; their numbers follow.
const LEFT: u8 = b'l';

/// What the helper says when the command has stopped, as by Ctrl-Z.
pub(crate) const STOPPED: u8 = b'z';

/// How long descendants are looked up again while new ones are found.
const SEARCH: Duration = Duration::from_secs(1);

/// What everybody in a run has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Stop, until the next order. Nobody can ignore it but processes that trace each other.
    Stop,
    Continue,
    /// End, if they would; stopped ones go on for that.
    Terminate,
    /// Nothing: the launcher has heard that the command stopped, and wants to hear it the next time.
    Heard,
    /// The same, and continue: the shell continued the launcher. The command may have stopped again since, which was not
    /// reported; nobody would continue it.
    Resumed,
}

impl Order {
    const ALL: [Self; 5] = [
        Self::Stop,
        Self::Continue,
        Self::Terminate,
        Self::Heard,
        Self::Resumed,
    ];

    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Stop => b's',
            Self::Continue => b'c',
            Self::Terminate => b't',
            Self::Heard => b'h',
            Self::Resumed => b'r',
        }
    }

    fn signals(self) -> &'static [Signal] {
        match self {
            Self::Stop => &[Signal::STOP],
            Self::Continue | Self::Resumed => &[Signal::CONT],
            Self::Terminate => &[Signal::TERM, Signal::CONT],
            Self::Heard => &[],
        }
    }

    /// Sends it down the lifeline, and returns when everybody was reached; true if a signal had ended the command by then.
    pub(crate) fn send(self, lifeline: &mut UnixStream) -> io::Result<bool> {
        lifeline.set_read_timeout(Some(PATIENCE))?;
        lifeline.write_all(&[self.byte()])?;
        let mut answer = [STOPPED];
        while answer[0] == STOPPED {
            lifeline.read_exact(&mut answer)?;
        }
        Ok(answer[0] == SIGNALLED)
    }
}

/// What the helper said at its end.
pub(crate) struct LastWords {
    /// A signal ended the command.
    pub was_signalled: bool,
    /// The numbers of processes that could not be ended.
    left: Option<String>,
}

impl LastWords {
    /// To be asked for when the helper is gone.
    pub(crate) fn read(lifeline: &mut UnixStream) -> io::Result<Self> {
        let mut said = [0; 256];
        lifeline.set_nonblocking(true)?;
        let length = lifeline.read(&mut said).unwrap_or(0);
        let mut words = said[..length].splitn(2, |byte| *byte == LEFT);
        let before = words.next().unwrap_or_default();
        let left = words.next();
        Ok(Self {
            was_signalled: before.contains(&SIGNALLED),
            left: left.map(|pids| String::from_utf8_lossy(pids).into_owned()),
        })
    }

    pub(crate) fn nobody_is_left(&self) -> io::Result<()> {
        match &self.left {
            None => Ok(()),
            Some(pids) => Err(io::Error::other(format!(
                "the command ended, but processes that it started are still running and could not be ended: {pids}"
            ))),
        }
    }
}

/// Tells the launcher, if a signal ended the command; the exit code alone can't.
pub(crate) fn report_signal(lifeline: &OwnedFd, status: libc::c_int) {
    if libc::WIFSIGNALED(status)
        && let Ok(lifeline) = lifeline.try_clone()
    {
        // With the launcher gone there is nobody to report to.
        let _ = File::from(lifeline).write_all(&[SIGNALLED]);
    }
}

/// Tells the launcher who could not be ended, if anybody.
pub(crate) fn report_survivors(lifeline: &OwnedFd, pids: &[libc::pid_t]) {
    if let (Ok(lifeline), false) = (lifeline.try_clone(), pids.is_empty()) {
        let pids: Vec<_> = pids.iter().take(16).map(ToString::to_string).collect();
        let text = [&[LEFT], pids.join(" ").as_bytes()].concat();
        // With the launcher gone there is nobody to report to.
        let _ = File::from(lifeline).write_all(&text);
    }
}

/// Reports to the launcher that the command has stopped: once, until that was heard. A run whose launcher does not listen
/// can't fill the lifeline.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    is_reported: bool,
}

impl Stops {
    pub(crate) fn report(&mut self, lifeline: &OwnedFd) {
        if !self.is_reported
            && let Ok(lifeline) = lifeline.try_clone()
        {
            // The launcher may be gone.
            let _ = File::from(lifeline).write_all(&[STOPPED]);
            self.is_reported = true;
        }
    }

    pub(crate) fn heard(&mut self, order: Order) {
        self.is_reported &= !matches!(order, Order::Heard | Order::Resumed);
    }
}

/// Who is in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crowd {
    /// Everybody in the pid namespace that this process is the first of.
    Namespace,
    /// Whoever comes from this process.
    Descendants,
}

impl Crowd {
    /// Takes an order from the lifeline and has it carried out; `None` when the launcher is gone.
    pub(crate) fn obey(self, lifeline: &OwnedFd) -> Option<Order> {
        let mut lifeline = File::from(lifeline.try_clone().ok()?);
        let mut byte = [0];
        lifeline.read_exact(&mut byte).ok()?;
        let order = Order::ALL
            .into_iter()
            .find(|order| order.byte() == byte[0])?;
        for signal in order.signals() {
            self.signal(*signal);
        }
        lifeline.write_all(&byte).ok()?;
        Some(order)
    }

    fn signal(self, signal: Signal) {
        match self {
            // Everybody but the first process itself. With nobody there it fails, which is right, too.
            Self::Namespace => drop(sys::kill_everybody(signal)),
            Self::Descendants => drop(reach_descendants(|pid| drop(sys::kill(pid, signal)))),
        }
    }
}

/// Does something to everybody who comes from this process: parents before their children, again and again until nobody new
/// is found. Who is stopped by it has no more children.
pub(crate) fn reach_descendants(mut reach: impl FnMut(libc::pid_t)) -> Vec<libc::pid_t> {
    let deadline = Instant::now() + SEARCH;
    let mut reached = BTreeSet::new();
    loop {
        let before = reached.len();
        let mut waiting = children_of(std::process::id() as libc::pid_t);
        while let Some(pid) = waiting.pop() {
            if reached.insert(pid) {
                reach(pid);
            }
            if Instant::now() < deadline {
                waiting.extend(children_of(pid));
            }
        }
        if reached.len() == before || Instant::now() > deadline {
            return reached.into_iter().collect();
        }
    }
}

/// The children of every thread of a process.
fn children_of(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let lists = threads
        .flatten()
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let pids = list.split_ascii_whitespace().map(str::parse);
            pids.filter_map(Result::ok).collect::<Vec<_>>()
        })
        .collect()
}
