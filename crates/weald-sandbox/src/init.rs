//! The helper: this binary, started again, on its way to becoming the command.
//!
//! Level full: helper, then the first process of the pid namespace (it builds the view, confines itself, and reaps), then the
//! command. Level landlock, and without a sandbox: helper (orphans come to it, as subreaper), then one that waits for the
//! command, then the command. A step that fails is reported and nothing runs.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::process::{
    DumpableBehavior, Resource, Signal, WaitOptions, getpid, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal,
};
use rustix::thread::set_no_new_privs;

use crate::cgroup::Group;
use crate::ending::{end_descendants, wait_for_word};
use crate::gateway::Doors;
use crate::handover::{INIT_ARGUMENT, LAST, LIFELINE, LISTENER, POLICY, Plan, Report, STATUS};
use crate::orders::{report_signal, report_survivors};
use crate::policy::{Level, Limits, Network, Policy};
use crate::seccomp::{self, UnixSockets};
use crate::sys::{self, CLOSE_ON_EXEC, Change, Forked};
use crate::terminal::{self, TerminalSize};
use crate::{connector, folders, landlock, namespaces, view};

/// The exit code of a helper that reported a failure.
const FAILED: i32 = 126;

/// Becomes the helper if the arguments say so; returns only if they don't. Call it first in `main`.
pub fn run_if_init() {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|first| first == INIT_ARGUMENT) {
        let command: Vec<_> = arguments.skip(1).collect();
        Helper::start().run(command);
    }
}

struct Helper {
    policy: Option<Policy>,
    environment: Vec<(Vec<u8>, Vec<u8>)>,
    directory: PathBuf,
    status: OwnedFd,
    lifeline: OwnedFd,
    listener: OwnedFd,
    terminal: Option<TerminalSize>,
    cores: Cores,
}

impl Helper {
    fn start() -> Self {
        let mut text = String::new();
        let read = File::from(sys::inherited(POLICY)).read_to_string(&mut text);
        let status = sys::inherited(STATUS);
        let plan = read.and_then(|_| Ok(serde_json::from_str(&text)?));
        let Plan {
            policy,
            environment,
            terminal,
        } = plan.unwrap_or_else(|error| fail(&status, "the policy", &error));
        let directory =
            std::env::current_dir().unwrap_or_else(|error| fail(&status, "the directory", &error));
        // Nothing that the launcher had open comes along but the three streams.
        sys::close_from(LAST + 1, 0).unwrap_or_else(|error| fail(&status, "descriptors", &error));
        Self {
            policy,
            environment,
            directory,
            status,
            lifeline: sys::inherited(LIFELINE),
            listener: sys::inherited(LISTENER),
            terminal,
            cores: Cores::look(),
        }
    }

    fn run(self, command: Vec<OsString>) -> ! {
        let arguments: io::Result<Vec<_>> = command
            .into_iter()
            .map(|argument| CString::new(argument.into_vec()).map_err(io::Error::from))
            .collect();
        let arguments = arguments.unwrap_or_else(|error| fail(&self.status, "the command", &error));
        // A Ctrl-C or Ctrl-Z is for the command; the helper ends when the command does.
        let for_command = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
        for signal in for_command.into_iter().chain(sys::JOB_CONTROL) {
            sys::set_signal(signal, libc::SIG_IGN);
        }
        if self.policy.is_some() {
            // Now: in a user namespace nobody raises a limit.
            self.check("limits", limit_cores(self.cores));
        }
        match self.policy.clone() {
            Some(policy) if policy.level == Level::Full => self.full(&policy, &arguments),
            policy => self.reaped(policy.as_ref(), &arguments),
        }
    }

    fn full(self, policy: &Policy, arguments: &[CString]) -> ! {
        self.check("user namespaces", namespaces::enter(policy));
        match self.check("the first process", sys::fork()) {
            Forked::Parent(first) => {
                drop((self.status, self.listener));
                let Ok(status) = sys::wait_for_end(first) else {
                    sys::exit_now(FAILED)
                };
                report_signal(&self.lifeline, status);
                sys::exit_now(sys::code_of(status))
            }
            Forked::Child => self.first_process(policy, arguments),
        }
    }

    /// The first process of the pid namespace: when it ends, the kernel ends everything else in it.
    fn first_process(self, policy: &Policy, arguments: &[CString]) -> ! {
        self.check("the first process", tie());
        let writable =
            view::build(policy).unwrap_or_else(|(step, error)| fail(&self.status, step, &error));
        if policy.network != Network::On {
            self.check("the loopback interface", sys::loopback_up());
        }
        let by_name = policy.network == Network::Allow;
        let doors = by_name.then(|| self.check("the network by name", Doors::open()));
        // The old directory is on the old mount, which is read-only now.
        self.check("the directory", std::env::set_current_dir(&self.directory));
        let signals = self.check("signals", sys::child_signals());
        let writable: Vec<_> = writable.iter().map(PathBuf::as_path).collect();
        // Of this network, and made before the filter, which has none of its kind.
        let queries = self.check("the socket listener", sys::socket_queries());
        self.give_up(policy);
        self.check("Landlock", landlock::keep_abstract_sockets_inside(policy));
        let slave = self.open_terminal();
        let (connector, number) = self.check("the connector", connector::start());
        let listener = self.confine(policy, &writable, UnixSockets::Ask, &[number as u32], None);
        for sent in listener.iter().chain([&queries, &connector]) {
            let sent = sys::send_descriptor(&self.listener, sent);
            self.check("the socket listener", sent);
        }
        if let Some(doors) = doors {
            self.check("the network by name", doors.send(&self.listener));
        }
        drop((listener, queries, connector));
        match self.check("the command", sys::fork()) {
            Forked::Child => {
                self.take_terminal(slave.as_ref());
                self.become_command(arguments)
            }
            Forked::Parent(main) => {
                drop((self.status, self.listener, slave));
                let code = namespaces::reap(main, &signals, &self.lifeline)
                    .ok()
                    .flatten();
                sys::exit_now(code.unwrap_or(128 + libc::SIGKILL))
            }
        }
    }

    /// Level landlock, and no level at all: what comes from the command stays this process's.
    fn reaped(self, policy: Option<&Policy>, arguments: &[CString]) -> ! {
        self.check("the reaper", set_child_subreaper(Some(getpid())));
        sys::be_first();
        // The kernel takes the dead away: a storm of short lives must not keep this process busy. So another one waits.
        sys::set_signal(libc::SIGCHLD, libc::SIG_IGN);
        let group = Group::make(std::process::id());
        let (word, reporter) = self.check("the reaper", io::pipe());
        match self.check("the reaper", sys::fork()) {
            Forked::Child => {
                drop(word);
                self.await_command(policy, arguments, group, reporter)
            }
            Forked::Parent(_) => {
                drop((self.status, self.listener, reporter));
                let status = wait_for_word(word, &self.lifeline);
                if let Some(status) = status {
                    report_signal(&self.lifeline, status);
                }
                report_survivors(&self.lifeline, &end_descendants(group));
                sys::exit_now(status.map_or(128 + libc::SIGKILL, sys::code_of))
            }
        }
    }

    /// Starts the command as a child of this process, and reports to the reaper how it ended.
    fn await_command(
        self,
        policy: Option<&Policy>,
        arguments: &[CString],
        group: Option<Group>,
        mut reporter: io::PipeWriter,
    ) -> ! {
        // A killed reaper takes this process along, and that one the command.
        self.check("the reaper", tie());
        sys::set_signal(libc::SIGCHLD, libc::SIG_DFL);
        sys::be_prompt();
        match self.check("the command", sys::fork()) {
            Forked::Child => {
                self.check("the command", tie());
                // Who can't join the group is looked up at the end.
                let _ = group.map(|group| group.join());
                // Before the walls: they allow the terminal that it has by then.
                let slave = self.open_terminal();
                self.take_terminal(slave.as_ref());
                if let Some(policy) = policy {
                    let own: Vec<PathBuf> = policy
                        .tmp
                        .iter()
                        .cloned()
                        .chain(folders::writable(policy))
                        .collect();
                    let own: Vec<&Path> = own.iter().map(PathBuf::as_path).collect();
                    let sockets = match policy.network {
                        Network::On => UnixSockets::Deny,
                        Network::Off | Network::Allow => UnixSockets::DenyAll,
                    };
                    self.give_up(policy);
                    if let Some(listener) = self.confine(policy, &own, sockets, &[], slave.as_ref())
                    {
                        let sent = sys::send_descriptor(&self.listener, &listener);
                        self.check("the socket listener", sent);
                    }
                }
                self.become_command(arguments)
            }
            Forked::Parent(main) => {
                drop((self.status, self.listener, self.lifeline));
                loop {
                    let Ok((change, status)) = sys::wait_for_change(main, WaitOptions::UNTRACED)
                    else {
                        sys::exit_now(0)
                    };
                    if change != Change::Released {
                        // With the reaper gone there is nobody to report to.
                        let _ = reporter.write_all(&status.to_ne_bytes());
                    }
                    if change == Change::Ended {
                        sys::exit_now(0)
                    }
                }
            }
        }
    }

    /// Gives up every right to more than a process of this user may do, for this process and all that come from it.
    fn give_up(&self, policy: &Policy) {
        self.check("limits", set_limits(&policy.limits));
        self.check("no new privileges", set_no_new_privs(true));
        self.check("capabilities", sys::drop_capabilities());
        // Nobody of the same user looks into this process, or changes it.
        self.check(
            "privacy",
            set_dumpable_behavior(DumpableBehavior::NotDumpable),
        );
    }

    /// Opens the command's terminal, if it gets one: the master goes to the launcher, and stays open nowhere in here.
    fn open_terminal(&self) -> Option<OwnedFd> {
        let (master, slave) = self.check("the terminal", terminal::open(self.terminal?));
        let sent = sys::send_descriptor(&self.listener, &master);
        self.check("the terminal", sent);
        Some(slave)
    }

    fn take_terminal(&self, slave: Option<&OwnedFd>) {
        if let Some(slave) = slave {
            self.check("the terminal", terminal::take(slave));
        }
    }

    /// Puts up the walls, for this process and all that come from it. `own` are processes that these may not touch.
    fn confine(
        &self,
        policy: &Policy,
        writable: &[&Path],
        sockets: UnixSockets,
        own: &[u32],
        terminal: Option<&OwnedFd>,
    ) -> Option<OwnedFd> {
        self.check("Landlock", landlock::confine(policy, writable, terminal));
        let asks = sockets == UnixSockets::Ask || policy.broker.is_some();
        let rules = seccomp::Rules {
            sockets,
            broker: policy.broker.is_some(),
            debugs: policy.debugs && policy.level == Level::Full,
            datagrams: policy.datagrams,
            own,
            keeps_core_limit: self.cores == Cores::Handled,
        };
        let program = seccomp::program(&rules);
        let installed = match sys::install_filter(&program, asks) {
            // A container listens already, or a run around this one. Nobody is asked then, so the broker stays out of reach.
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && policy.level == Level::Landlock =>
            {
                sys::install_filter(&program, false)
            }
            installed => installed,
        };
        self.check("seccomp", installed)
    }

    fn become_command(self, arguments: &[CString]) -> ! {
        sys::reset_signals();
        sys::set_environment(&self.environment);
        self.check("descriptors", sys::close_from(3, CLOSE_ON_EXEC));
        if arguments.is_empty() {
            // A probe: everything else worked.
            sys::exit_now(0);
        }
        let error = sys::execute(arguments);
        fail(&self.status, "the command", &error)
    }

    fn check<T>(&self, step: &str, result: Result<T, impl Into<io::Error>>) -> T {
        result.unwrap_or_else(|error| fail(&self.status, step, &error.into()))
    }
}

/// From here on this process is killed when the one that started it ends.
fn tie() -> rustix::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
}

/// Reports a failure and ends.
fn fail(status: &OwnedFd, step: &str, error: &io::Error) -> ! {
    let report = Report {
        step: step.to_owned(),
        errno: error.raw_os_error(),
        message: error.to_string(),
    };
    let text = serde_json::to_string(&report).unwrap_or_default();
    if let Ok(copy) = status.try_clone() {
        // With the launcher gone there is nobody to report to.
        let _ = File::from(copy).write_all(text.as_bytes());
    }
    sys::exit_now(FAILED)
}

/// What the kernel does with the core of a program that crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cores {
    /// It makes a file where that program was, which is inside.
    Inside,
    /// It makes a file in another folder.
    Elsewhere,
    /// A program of the host's gets it, or a socket; or nobody knows.
    Handled,
}

impl Cores {
    /// Looks at the host's /proc: before anything is mounted.
    fn look() -> Self {
        let pattern = fs::read("/proc/sys/kernel/core_pattern").unwrap_or_default();
        match pattern.first() {
            Some(b'|' | b'@') | None => Self::Handled,
            Some(b'/') => Self::Elsewhere,
            Some(_) => Self::Inside,
        }
    }
}

/// No core leaves the run. Not by 0: at 1 the kernel does not even start the program that would get it. Where the caller may
/// have no core at all the limit is 0 already, and only who may raise it can make it 1.
fn limit_cores(cores: Cores) -> io::Result<()> {
    match cores {
        Cores::Inside => Ok(()),
        Cores::Elsewhere | Cores::Handled => {
            sys::limit_exactly(Resource::Core, 1).or_else(|_| sys::limit(Resource::Core, 1))
        }
    }
}

fn set_limits(limits: &Limits) -> io::Result<()> {
    let seconds = limits.cpu.map(|time| time.as_secs().max(1));
    for (resource, value) in [
        (Resource::Cpu, seconds),
        (Resource::As, limits.memory),
        (Resource::Data, limits.data),
        (Resource::Nproc, limits.processes),
        (Resource::Fsize, limits.file_size),
    ] {
        if let Some(value) = value {
            sys::limit(resource, value)?;
        }
    }
    Ok(())
}
