//! Following an agent until it is over. A Ctrl-C asks it to stop; a closed terminal changes nothing.

use std::thread;
use std::time::Duration;

use weald_core::agent::{Agent, AgentId, AgentStatus, Goal, Wanted};
use weald_core::agent_rules::AgentInput;

use crate::{Call, Ground};
use crate::{Failure, RecordError};

/// How often it is looked at.
const POLL: Duration = Duration::from_millis(100);

/// Waits until an agent is over, and answers how it stands then. Its output is shown meanwhile.
pub fn follow(call: &Call<'_>, ground: &Ground, id: AgentId) -> Result<Agent, Failure> {
    let mut shown = call.progress.output_of(ground, id)?;
    follow_with(call, ground, id, &mut *shown)
}

/// The same without its output.
pub fn follow_quietly(call: &Call<'_>, ground: &Ground, id: AgentId) -> Result<Agent, Failure> {
    follow_with(call, ground, id, &mut || Ok(()))
}

/// `show` is called after every look.
fn follow_with(
    call: &Call<'_>,
    ground: &Ground,
    id: AgentId,
    show: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Agent, Failure> {
    let mut is_asked = false;
    loop {
        let agent = ground.engine.agent(id)?;
        show()?;
        if agent.status.is_over() {
            show()?;
            return Ok(agent);
        }
        if let Some(signal) = call.cancel.asked().filter(|_| !is_asked) {
            is_asked = true;
            let stop = Wanted::Stop {
                why: format!("stopped from its terminal (signal {signal})"),
                release: true,
            };
            // What is said is what it answers: it may have come to its end since it was looked at.
            match ground.engine.decide_agent(id, AgentInput::Want(stop)) {
                Ok(_) => call.note(&format!("asking {id} to stop; what it wrote is kept")),
                Err(RecordError::Refused(_)) => {
                    let lands = match agent.goal {
                        Goal::Land => " and lands",
                        _ => "",
                    };
                    if ground.engine.agent(id)?.status == AgentStatus::Finishing {
                        call.note(&format!(
                            "{id} is finishing{lands}; press Ctrl-C again to leave it running"
                        ));
                    }
                }
                Err(error) => return Err(error.into()),
            }
            continue;
        }
        if ground.engine.is_orphaned(&agent) {
            ground.engine.reap_agents()?;
            continue;
        }
        thread::sleep(POLL);
    }
}
