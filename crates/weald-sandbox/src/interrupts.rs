//! Ctrl-C and SIGTERM, caught by a process that has something to put in order first.
//!
//! While they are caught, what is launched has a process group of its own: a Ctrl-C at the terminal is for this process.
//! A second one ends it at once, unless it comes with the first: `timeout` and the like signal a process and its group.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

use rustix::process::{Signal, getpid, kill_process, set_parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};

use crate::sys;

const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

/// What comes so many milliseconds after the first signal is no second one.
const TOGETHER: i64 = 250;

static CATCHING: AtomicBool = AtomicBool::new(false);
static CAUGHT: AtomicI32 = AtomicI32::new(0);
/// When that was, in milliseconds since the machine started.
static SINCE: AtomicI64 = AtomicI64::new(0);

/// From here on the first signal is only noted. One that was ignored before stays ignored.
pub fn catch_interrupts() {
    CATCHING.store(true, Ordering::Release);
    for signal in SIGNALS {
        sys::catch_signal(signal, note);
    }
}

/// The signal that asked this process to end, if one did.
pub fn interrupted() -> Option<u8> {
    u8::try_from(CAUGHT.load(Ordering::Acquire))
        .ok()
        .filter(|signal| *signal > 0)
}

/// While this lives, a Ctrl-C at the terminal is for the program in front, such as a pager, and this process waits on.
pub struct InterruptsIgnored([(libc::c_int, libc::sighandler_t); 2]);

impl InterruptsIgnored {
    /// To be called once that program has started, because it would ignore them, too.
    pub fn start() -> Self {
        Self([libc::SIGINT, libc::SIGQUIT].map(|signal| (signal, sys::ignore_signal(signal))))
    }
}

impl Drop for InterruptsIgnored {
    fn drop(&mut self) {
        for (signal, before) in self.0 {
            sys::restore_signal(signal, before);
        }
    }
}

/// What asks an operation to end early: a signal to this process, or the caller. Clones are asked together.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Source);

#[derive(Debug, Clone, Default)]
enum Source {
    #[default]
    Signals,
    Caller(Arc<AtomicBool>),
}

impl Cancel {
    /// Asked by a signal to this process.
    pub const BY_SIGNAL: Self = Self(Source::Signals);

    /// Asked by [`Cancel::ask`] and by no signal: other calls may be at work in this process.
    pub fn by_caller() -> Self {
        Self(Source::Caller(Arc::default()))
    }

    /// Asks for the end. Where signals do that, nothing happens.
    pub fn ask(&self) {
        if let Source::Caller(asked) = &self.0 {
            asked.store(true, Ordering::Release);
        }
    }

    /// The signal that asks for the end, once one does; a caller asks as SIGTERM would.
    pub fn asked(&self) -> Option<u8> {
        match &self.0 {
            Source::Signals => interrupted(),
            Source::Caller(asked) => asked.load(Ordering::Acquire).then_some(libc::SIGTERM as u8),
        }
    }

    /// From here on a signal no longer ends this process: the operation looks for it, and puts things in order first.
    pub fn catch(&self) {
        if let Source::Signals = self.0 {
            catch_interrupts();
        }
    }

    /// From here on signals do to this process what they do to any other again, also those that were for its command.
    pub fn heed(&self) {
        if let Source::Signals = self.0 {
            CATCHING.store(false, Ordering::Release);
            for signal in SIGNALS
                .iter()
                .chain(&[libc::SIGQUIT])
                .chain(&sys::JOB_CONTROL)
            {
                sys::set_signal(*signal, libc::SIG_DFL);
            }
        }
    }

    /// The same, also for the end of the terminal, where what was begun has to be taken back.
    pub fn catch_hangup(&self) {
        if let Source::Signals = self.0 {
            catch_interrupts();
            sys::catch_signal(libc::SIGHUP, note);
        }
    }
}

/// From here on this process gets SIGTERM when the one that started it ends, however that ends. False if that happened
/// already: `parent` is not its parent.
pub fn end_with_parent(parent: u32) -> bool {
    let asked = set_parent_process_death_signal(Some(Signal::TERM));
    asked.is_ok() && std::os::unix::process::parent_id() == parent
}

/// Whether signals are this process's own business.
pub(crate) fn are_caught() -> bool {
    CATCHING.load(Ordering::Acquire)
}

extern "C" fn note(signal: libc::c_int) {
    let now = clock_gettime(ClockId::Monotonic);
    let now = now.tv_sec * 1000 + now.tv_nsec / 1_000_000;
    match SINCE.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => CAUGHT.store(signal, Ordering::Release),
        Err(first) if now - first < TOGETHER => {}
        Err(_) => {
            sys::set_signal(signal, libc::SIG_DFL);
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = kill_process(getpid(), signal);
            }
        }
    }
}
