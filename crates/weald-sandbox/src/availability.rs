//! Which levels this machine can give, found out without touching any directory of a run.
//!
//! A probe prepares everything that the level needs for a run that writes nothing, starts in `/` and ends at once. Its
//! answer alone decides whether a layer counts as missing. Whatever a run's own directories do (modes, races, full disks)
//! can make its preparation fail, but never makes a layer look missing.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use crate::ending::Ended;
use crate::error::SandboxError;
use crate::handover::Report;
use crate::policy::{Level, Network, Policy, Simulated};
use crate::running::{Invocation, StartError, start};

/// What a probe found: the layer that is missing, if any.
type Answer = Option<Missing>;

/// A layer that this machine does not give, and what the system said.
#[derive(Debug, Clone)]
struct Missing {
    step: String,
    message: String,
}

type Question = (Level, Network, Simulated);

/// Probes that gave a definite answer, once a process: a level does not change under a command.
static ANSWERS: Mutex<Vec<(Question, Answer)>> = Mutex::new(Vec::new());

/// Errors unless the level can be had on this machine. Touches no directory of any run.
pub fn require_level(level: Level, network: Network, helper: &Path) -> Result<(), SandboxError> {
    match known((level, network, Simulated::default()), helper)? {
        None => Ok(()),
        Some(missing) => Err(missing.error(level)),
    }
}

/// The strongest level that this machine can give: full, or landlock if a layer of full is missing. Touches no directory
/// of any run. What can't be found out is an error.
pub fn strongest_level(network: Network, helper: &Path) -> Result<Level, SandboxError> {
    match known((Level::Full, network, Simulated::default()), helper)? {
        None => Ok(Level::Full),
        Some(_) => Ok(Level::Landlock),
    }
}

/// Says why a run did not start. Only a fresh probe can find that a layer is missing.
pub(crate) fn explain(
    error: StartError,
    policy: Option<&Policy>,
    helper: &Path,
    command: &[OsString],
) -> SandboxError {
    let report = match error {
        StartError::Launcher(error) => return error.into(),
        StartError::Step(report) => report,
    };
    if let ("the command", Some(errno)) = (report.step.as_str(), report.errno) {
        let program = command.first().map(|program| program.to_string_lossy());
        return SandboxError::NotExecutable {
            program: program.unwrap_or_default().into_owned(),
            source: io::Error::from_raw_os_error(errno),
        };
    }
    let Some(policy) = policy else {
        return io::Error::other(format!("{}: {}", report.step, report.message)).into();
    };
    match probe((policy.level, policy.network, policy.simulated), helper) {
        Ok(Some(missing)) => missing.error(policy.level),
        _ => not_prepared(policy.level, report),
    }
}

impl Missing {
    fn error(self, level: Level) -> SandboxError {
        SandboxError::Unavailable {
            level,
            step: self.step,
            message: self.message,
        }
    }
}

fn not_prepared(level: Level, report: Report) -> SandboxError {
    SandboxError::NotPrepared {
        level,
        step: report.step,
        message: report.message,
    }
}

/// A probe's answer; threads that ask at once wait for one probe.
fn known(question: Question, helper: &Path) -> Result<Answer, SandboxError> {
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, answer)) = answers.iter().find(|(asked, _)| *asked == question) {
        return Ok(answer.clone());
    }
    let answer = probe(question, helper)?;
    answers.push((question, answer.clone()));
    Ok(answer)
}

fn probe(question: Question, helper: &Path) -> Result<Answer, SandboxError> {
    let (level, network, simulated) = question;
    let policy = Policy {
        level,
        network,
        simulated,
        write: Vec::new(),
        ..Policy::new("/")
    };
    let invocation = Invocation {
        helper: helper.to_owned(),
        // Nothing: the helper ends when everything is prepared.
        command: Vec::new(),
        directory: "/".into(),
        environment: Vec::new(),
        streams: [Stdio::null(), Stdio::null(), Stdio::null()],
    };
    match start(Some(&policy), Vec::new(), invocation, None) {
        Ok(running) => match running.wait(None)? {
            Ended::Code(0) => Ok(None),
            ended => Err(io::Error::other(format!("a probe ended with {ended:?}")).into()),
        },
        Err(StartError::Step(report)) if is_missing(&report) => Ok(Some(Missing {
            step: report.step,
            message: report.message,
        })),
        Err(StartError::Step(report)) => Err(not_prepared(level, report)),
        Err(StartError::Launcher(error)) => Err(error.into()),
    }
}

/// Whether a probe failed for good. What may pass (no memory, no processes, no descriptors) is no missing layer: other
/// processes of the user can bring that about.
fn is_missing(report: &Report) -> bool {
    match report.errno {
        // An ABI that is too old.
        None => report.step == "Landlock",
        Some(libc::ENOSPC | libc::EUSERS) => forbids_namespaces(),
        Some(errno) => [
            libc::EPERM,
            libc::EACCES,
            libc::ENOSYS,
            libc::EINVAL,
            libc::ENODEV,
            libc::ENOENT,
            libc::EOPNOTSUPP,
        ]
        .contains(&errno),
    }
}

/// Whether the administrator allows none of a kind of namespace, as opposed to no more of them.
fn forbids_namespaces() -> bool {
    let kinds = ["user", "mnt", "pid", "ipc", "uts", "cgroup", "net"];
    kinds.iter().any(|kind| {
        let path = format!("/proc/sys/user/max_{kind}_namespaces");
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(step: &str, errno: Option<i32>) -> Report {
        Report {
            step: step.to_owned(),
            errno,
            message: String::new(),
        }
    }

    #[test]
    fn x13_a_shortage_is_no_missing_layer() {
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EINVAL] {
            assert!(is_missing(&report("user namespaces", Some(errno))));
        }
        for errno in [
            libc::EAGAIN,
            libc::ENOMEM,
            libc::EMFILE,
            libc::ENFILE,
            libc::EIO,
            libc::EINTR,
            libc::EBUSY,
        ] {
            assert!(!is_missing(&report("the first process", Some(errno))));
        }
        assert!(is_missing(&report("Landlock", None)));
        assert!(!is_missing(&report("the policy", None)));
    }
}
