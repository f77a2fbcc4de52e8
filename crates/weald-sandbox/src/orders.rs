//! Orders to everybody in a run: stop, go on, come to an end.
//!
//! An order goes down the lifeline and is carried out by the helper's reaper, which no process of the run can be
//! without: in a pid namespace the kernel gives the signal to all of them at once; elsewhere every descendant is looked
//! up, and orphans have come to the reaper. A byte comes back when it is done.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::launcher::Running;
use crate::sys;

/// How long the reaper has to carry out an order.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the helper says when a signal ended the command.
const SIGNALLED: u8 = b'k';

/// How often descendants are looked up again while new ones are found.
const PASSES: usize = 100;

/// What everybody in a run has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Stop, until the next order. Nobody can ignore it.
    Stop,
    /// Go on.
    Continue,
    /// End, if they would; stopped ones go on for that.
    Terminate,
}

impl Order {
    const ALL: [Self; 3] = [Self::Stop, Self::Continue, Self::Terminate];

    fn byte(self) -> u8 {
        match self {
            Self::Stop => b's',
            Self::Continue => b'c',
            Self::Terminate => b't',
        }
    }

    fn signals(self) -> &'static [libc::c_int] {
        match self {
            Self::Stop => &[libc::SIGSTOP],
            Self::Continue => &[libc::SIGCONT],
            Self::Terminate => &[libc::SIGTERM, libc::SIGCONT],
        }
    }
}

impl Running {
    /// Has everybody in the run obey, and returns when they were told.
    pub fn order(&mut self, order: Order) -> io::Result<()> {
        let lifeline = self.lifeline.as_mut();
        let lifeline = lifeline.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        lifeline.set_read_timeout(Some(PATIENCE))?;
        lifeline.write_all(&[order.byte()])?;
        let mut answer = [0];
        lifeline.read_exact(&mut answer)?;
        // The command ended before it was told.
        self.was_signalled |= answer[0] == SIGNALLED;
        Ok(())
    }

    /// Whether the helper said that a signal ended the command. Asked when the helper is gone.
    pub(crate) fn hear_of_a_signal(&mut self) -> bool {
        let mut said = [0; 16];
        if let Some(lifeline) = &mut self.lifeline
            && lifeline.set_nonblocking(true).is_ok()
            && let Ok(length) = lifeline.read(&mut said)
        {
            self.was_signalled |= said[..length].contains(&SIGNALLED);
        }
        self.was_signalled
    }

    /// Ends everything in the run: asked first, and after `patience` by force.
    pub fn end(&mut self, patience: Duration) -> io::Result<()> {
        if self.order(Order::Terminate).is_ok() {
            let _ = self.ended_within(Some(patience));
        }
        self.stop()
    }
}

/// Tells the launcher, if a signal ended the command; the exit code alone can't.
pub(crate) fn tell_of_a_signal(lifeline: &OwnedFd, status: libc::c_int) {
    if libc::WIFSIGNALED(status)
        && let Ok(lifeline) = lifeline.try_clone()
    {
        // With the launcher gone there is nobody to tell.
        let _ = File::from(lifeline).write_all(&[SIGNALLED]);
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
    pub(crate) fn obey(self, lifeline: &OwnedFd) -> Option<()> {
        let mut lifeline = File::from(lifeline.try_clone().ok()?);
        let mut byte = [0];
        lifeline.read_exact(&mut byte).ok()?;
        let order = Order::ALL
            .into_iter()
            .find(|order| order.byte() == byte[0])?;
        for signal in order.signals() {
            self.signal(*signal);
        }
        lifeline.write_all(&byte).ok()
    }

    fn signal(self, signal: libc::c_int) {
        match self {
            // Everybody but the first process itself. With nobody there it fails, which is right, too.
            Self::Namespace => drop(sys::kill(-1, signal)),
            Self::Descendants => signal_descendants(signal),
        }
    }
}

/// Parents before their children, again and again until nobody new is found: who is stopped has no more children.
fn signal_descendants(signal: libc::c_int) {
    let mut reached = Vec::new();
    for _ in 0..PASSES {
        let before = reached.len();
        let mut waiting = children_of(std::process::id() as libc::pid_t);
        while let Some(pid) = waiting.pop() {
            if !reached.contains(&pid) {
                let _ = sys::kill(pid, signal);
                reached.push(pid);
            }
            waiting.extend(children_of(pid));
        }
        if reached.len() == before {
            return;
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
