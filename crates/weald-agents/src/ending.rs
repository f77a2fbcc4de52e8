//! Ending an agent whose task somebody took over: first whoever watches over it, then everything that its command started.
//!
//! What can't be proven to be gone (another machine, another namespace) is told as such, and nothing is done to it.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use weald_core::agent::{Agent, AgentStatus, End, Outcome};
use weald_core::agent_rules::AgentInput;
use weald_core::session::{ProcessIdentity, ProcessState};
use weald_core::store::Clock;

use super::Agents;
use super::{AgentError, RecordError};
use weald_control::machine::{self, SystemClock};

/// How long a family of processes that no namespace holds together has to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

impl Agents<'_> {
    /// Ends what is left of an earlier agent; true when all of it is proven gone. Its record says who came after it.
    pub(super) fn end_agent_of(&self, earlier: &Agent, next: &Agent) -> Result<bool, AgentError> {
        if earlier.status == AgentStatus::Exited {
            return Ok(true);
        }
        // Whoever only starts it can't any more: its claim is not the newest.
        let supervisor = earlier.supervisor.as_ref().filter(|_| earlier.supervised);
        if !supervisor.is_none_or(|process| self.trees.end_process(process)) {
            return Ok(false);
        }
        // With its supervisor gone a run ends by itself, but not if it was stopped, and not at once.
        if !earlier
            .process
            .as_ref()
            .is_none_or(|process| self.end_run_of(process))
        {
            return Ok(false);
        }
        let end = AgentInput::End(End {
            outcome: Outcome::Superseded,
            code: None,
            why: format!("{} took its task over", next.id),
            landing: None,
            at: SystemClock.now(),
        });
        match self.trees.engine.decide_agent(earlier.id, end) {
            // It was noticed before.
            Ok(_) | Err(RecordError::Refused(_)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends everything in a run. The end of a namespace's first process is the end of all others in it, by the kernel;
    /// without a namespace each has to be found.
    fn end_run_of(&self, keeper: &ProcessIdentity) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let is_alive = || self.trees.engine.processes.state(keeper) == ProcessState::Running;
        while is_alive() && !machine::is_first_of_namespace(keeper.pid) {
            let family = machine::descendants(keeper.pid);
            if family.is_empty() || Instant::now() >= deadline {
                break;
            }
            family.into_iter().for_each(kill);
            thread::sleep(Duration::from_millis(2));
        }
        self.trees.end_process(keeper)
    }
}

/// Ends one of a family, if it is still there.
fn kill((pid, parent): (u32, u32)) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let handle = number.and_then(|number| pidfd_open(number, PidfdFlags::empty()).ok());
    // With the handle open its number can't become somebody else's any more.
    if let Some(handle) = handle
        && machine::parent_of(pid) == Some(parent)
    {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}
