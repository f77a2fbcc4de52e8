//! System calls, wrapped. The only place with `unsafe` (but for one closure of the launcher).
//!
//! Each wrapper takes safe types, makes one call and turns its result into `io::Result`. Structures that cross the border
//! are plain data of the kernel's layout.
//!
//! Landlock and seccomp are called from here and not through crates: the `landlock` crate hides which ABI is enforced,
//! `seccompiler` has no user notifications, and both make every start slower.

mod extents;
mod mounts;
mod promptness;
mod sockets;
mod users;
mod walls;

pub use extents::shared_extents;
pub use mounts::*;
pub use promptness::{be_first, be_prompt};
pub use sockets::*;
pub use users::home_of_user;
pub use walls::*;

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Resource, Rlimit, Signal, WaitOptions,
    set_parent_process_death_signal,
};
use rustix::time::Timespec;

/// A path as the kernel takes it. A NUL in it is an error, not a shorter path.
pub fn c_path(path: &Path) -> io::Result<CString> {
    c_text(path.as_os_str())
}

/// The same for any text.
pub fn c_text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

fn check_int(result: libc::c_int) -> io::Result<libc::c_int> {
    check(libc::c_long::from(result)).map(|result| result as libc::c_int)
}

pub fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check_int(unsafe { libc::unshare(flags) }).map(drop)
}

/// Who a fork answers to.
pub enum Forked {
    Child,
    /// The old one, with the new one's number.
    Parent(libc::pid_t),
}

/// `fork`. The caller has one thread, so the child may do anything.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: this process has one thread (the helper starts none before), so no lock is held by another one.
    match check_int(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// `_exit`: nothing is flushed or dropped.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// How a child ended, as a shell would say it: its code, or 128 and the signal.
pub fn code_of(status: libc::c_int) -> i32 {
    match libc::WIFSIGNALED(status) {
        true => 128 + libc::WTERMSIG(status),
        false => libc::WEXITSTATUS(status),
    }
}

/// Which child of any has ended or stopped, and how; with `NOHANG` it may be none.
pub fn wait_for_any(options: WaitOptions) -> io::Result<Option<(libc::pid_t, libc::c_int)>> {
    let found = rustix::process::wait(options)?;
    Ok(found.map(|(pid, status)| (pid.as_raw_pid(), status.as_raw())))
}

/// Waits until a child has ended; answers how.
pub fn wait_for_end(pid: libc::pid_t) -> io::Result<libc::c_int> {
    loop {
        if let (Change::Ended, status) = wait_for_change(pid, WaitOptions::empty())? {
            return Ok(status);
        }
    }
}

/// Waits until something happens to a child: with `UNTRACED` also until it stops.
pub fn wait_for_change(
    pid: libc::pid_t,
    options: WaitOptions,
) -> io::Result<(Change, libc::c_int)> {
    loop {
        if let Some((_, status)) = rustix::process::waitpid(Some(process(pid)?), options)? {
            let status = status.as_raw();
            return Ok((change_of(pid, status), status));
        }
    }
}

/// What happened to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Ended,
    /// By a signal of job control.
    Stopped,
    /// It had asked its parent to trace it, and would have waited for ever at a signal.
    Released,
}

/// What a status says happened. A child that asked its parent to trace it stops at every signal, and waits: it gets the
/// signal, and is traced no more.
pub fn change_of(pid: libc::pid_t, status: libc::c_int) -> Change {
    if !libc::WIFSTOPPED(status) {
        return Change::Ended;
    }
    let signal = match libc::WSTOPSIG(status) {
        // It has executed another program.
        libc::SIGTRAP => 0,
        signal => signal,
    };
    let nowhere = ptr::null_mut::<libc::c_void>();
    // SAFETY: detaching takes a number as its data. One that is gone, or not traced, is left alone.
    let detached = unsafe {
        libc::ptrace(
            libc::PTRACE_DETACH,
            pid,
            nowhere,
            libc::c_long::from(signal),
        )
    };
    match detached {
        0 => Change::Released,
        _ => Change::Stopped,
    }
}

/// A process by its number.
fn process(pid: libc::pid_t) -> io::Result<Pid> {
    let known = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw);
    known.ok_or(io::Error::from_raw_os_error(libc::ESRCH))
}

/// `kill` of one process.
pub fn kill(pid: libc::pid_t, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process(process(pid)?, signal)?)
}

/// Signals with which a terminal stops a job.
pub const JOB_CONTROL: [libc::c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Stops this process and its group as Ctrl-Z at the terminal does, until the shell continues them. The kernel refuses where
/// no shell could.
pub fn suspend_group() {
    set_signal(libc::SIGTSTP, libc::SIG_DFL);
    let _ = rustix::process::kill_current_process_group(Signal::TSTP);
    set_signal(libc::SIGTSTP, libc::SIG_IGN);
}

/// `kill` of everybody whom this process may send a signal, but for itself and the first process: the group -1.
pub fn kill_everybody(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process_group(Pid::INIT, signal)?)
}

/// What is started by `command` ends with the thread that starts it, however that ends.
pub fn end_with_starter(command: &mut Command) {
    let starter = std::process::id();
    let tied = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may be gone already.
        match std::os::unix::process::parent_id() == starter {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: the closure makes async-signal-safe calls only and allocates nothing.
    unsafe {
        command.pre_exec(tied);
    }
}

/// What a signal does.
pub fn set_signal(signal: libc::c_int, handler: libc::sighandler_t) {
    // SAFETY: only SIG_IGN and SIG_DFL are passed, which run no code.
    unsafe { libc::signal(signal, handler) };
}

/// Ignores a signal, and answers how it was handled before.
pub fn ignore_signal(signal: libc::c_int) -> libc::sighandler_t {
    // SAFETY: SIG_IGN runs no code.
    unsafe { libc::signal(signal, libc::SIG_IGN) }
}

/// Handles a signal as before.
pub fn restore_signal(signal: libc::c_int, before: libc::sighandler_t) {
    // SAFETY: it is what `ignore_signal` answered, so it was in force before.
    unsafe { libc::signal(signal, before) };
}

/// Calls `handler`, which may make async-signal-safe calls only, at a signal; one that is ignored stays ignored.
pub fn catch_signal(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: the handler is a function of this program with the type that signals are given to.
    unsafe {
        if libc::signal(signal, handler as *const () as libc::sighandler_t) == libc::SIG_IGN {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Blocks SIGCHLD and gives a descriptor that reports it.
pub fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by `sigemptyset` before it is used, and lives through the calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        check_int(libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()))?;
        let fd = check_int(libc::signalfd(
            -1,
            &set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Lets all signals through again and sets what was ignored to its default: what a command expects to start with.
pub fn reset_signals() {
    for signal in 1..32 {
        set_signal(signal, libc::SIG_DFL);
    }
    // SAFETY: the set is initialised before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, ptr::null_mut());
    }
}

/// Waits until one of the descriptors has something to say, at most so many milliseconds (-1: for ever).
pub fn poll(fds: &[BorrowedFd<'_>], timeout: i32) -> io::Result<Vec<bool>> {
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let polled = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
    let mut polled: Vec<_> = polled.collect();
    match rustix::event::poll(&mut polled, timeout.as_ref()) {
        Err(Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
    }
}

/// Whether the other side of a descriptor is gone.
pub fn hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let found = rustix::event::poll(&mut polled, Some(&Timespec::default()));
    found.is_ok() && polled[0].revents().contains(PollFlags::HUP)
}

/// A descriptor for a process; readable when it has ended.
pub fn open_process(pid: libc::pid_t) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(
        process(pid)?,
        PidfdFlags::empty(),
    )?)
}

/// A copy of another process's descriptor.
pub fn take_descriptor(process: &OwnedFd, fd: RawFd) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_getfd(
        process,
        fd,
        PidfdGetfdFlags::empty(),
    )?)
}

/// `CLOSE_RANGE_CLOEXEC`: not now, but with the next exec.
pub(crate) const CLOSE_ON_EXEC: libc::c_uint = 4;

/// Closes every descriptor from `first` on, or marks them to be closed by the next exec.
pub fn close_from(first: RawFd, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: takes no pointer. Owned descriptors at or above `first` are not used afterwards by the callers.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) })
        .map(drop)
}

/// A descriptor that the process was started with.
pub fn inherited(fd: RawFd) -> OwnedFd {
    // SAFETY: the launcher put these numbers there for us, and nobody else in this process takes them.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// `dup2`, for use between fork and exec.
pub fn duplicate_to(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: takes no pointer; async-signal-safe.
    check_int(unsafe { libc::dup2(from, to) }).map(drop)
}

/// A copy of a descriptor with a number of at least `least`, closed on exec.
pub fn duplicate_above(fd: &impl AsRawFd, least: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointer; the new descriptor is owned by nobody else.
    unsafe {
        let copy = check_int(libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least))?;
        Ok(OwnedFd::from_raw_fd(copy))
    }
}

/// `setrlimit`, soft and hard alike. A hard limit that is lower already stays: nobody may raise it.
pub fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let most = rustix::process::getrlimit(resource).maximum;
    limit_exactly(resource, most.map_or(value, |most| value.min(most)))
}

/// The same, also over a hard limit that is lower, where this process may.
pub fn limit_exactly(resource: Resource, value: u64) -> io::Result<()> {
    Ok(rustix::process::setrlimit(resource, both(value))?)
}

/// A process, and what comes from it, starts no more processes. Does not hold for root.
pub fn forbid_forks(pid: libc::pid_t) -> io::Result<()> {
    rustix::process::prlimit(Some(process(pid)?), Resource::Nproc, both(0))?;
    Ok(())
}

fn both(value: u64) -> Rlimit {
    Rlimit {
        current: Some(value),
        maximum: Some(value),
    }
}

/// Makes this the whole environment.
pub fn set_environment(variables: &[(Vec<u8>, Vec<u8>)]) {
    // SAFETY: this process has one thread, so nobody reads the environment meanwhile.
    unsafe {
        libc::clearenv();
        for (name, value) in variables {
            let usable = !name.is_empty()
                && !name.contains(&b'=')
                && !name.contains(&0)
                && !value.contains(&0);
            if usable {
                std::env::set_var(OsStr::from_bytes(name), OsStr::from_bytes(value));
            }
        }
    }
}

/// `execvp` with the current environment. Returns only if it failed.
pub fn execute(arguments: &[CString]) -> io::Error {
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(ptr::null());
    // SAFETY: the array ends with a null pointer and its texts outlive the call.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    io::Error::last_os_error()
}
