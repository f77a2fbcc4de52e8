//! Attaching the caller's terminal to that of an interactive agent.

use std::thread;
use std::time::{Duration, Instant};

use weald_core::agent::{Agent, AgentId, AgentStatus};
use weald_terminal::Left;

use super::launching::await_begin;
use crate::agents;
use crate::progress::LogView;
use crate::{Call, Failure, Ground};

/// How often an agent is looked at whose interface has ended.
const POLL: Duration = Duration::from_millis(20);

/// How long a terminal may be out of reach while its agent counts as running.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many lines are shown of an agent that ended before anybody saw its terminal.
const LAST_LINES: usize = 20;

/// Shows an agent's terminal until the caller detaches or the agent has ended; answers it then.
pub fn attach(call: &Call<'_>, ground: &Ground, id: AgentId) -> Result<Option<Agent>, Failure> {
    call.cancel.catch();
    await_begin(ground, id)?;
    let is_stopped = || call.cancel.asked().is_some();
    let left = match agents::attach(&ground.place, id) {
        Ok(host) => Some(call.progress.terminal(id, host, &is_stopped)?),
        Err(_) => None,
    };
    match &left {
        Some(Left::Detached) => {
            call.note(&format!(
                "detached; {id} keeps running (attach: weald attach {id}, stop: weald agent stop {id})"
            ));
            return Ok(None);
        }
        Some(Left::SentAway(why)) => {
            call.note(why);
            return Ok(None);
        }
        Some(Left::Ended(_) | Left::Lost) | None => {}
    }
    let stage = call.stage("saving its work");
    let deadline = Instant::now() + PATIENCE;
    let ended = loop {
        ground.engine.reap_agents()?;
        let agent = ground.engine.agent(id)?;
        if agent.status.is_over() {
            break agent;
        }
        if is_stopped() {
            return Ok(None);
        }
        if agent.status != AgentStatus::Finishing && Instant::now() > deadline {
            return Err(Failure::terminal_out_of_reach(id));
        }
        thread::sleep(POLL);
    };
    drop(stage);
    if left.is_none() {
        let view = LogView::Kept {
            lines: Some(LAST_LINES),
            raw: false,
            full: false,
        };
        call.progress.log_of(ground, id, view)?.show()?;
    }
    Ok(Some(ended))
}
