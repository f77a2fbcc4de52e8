//! What follows when an agent's work conflicts or its tests fail: the same conversation again, or a person has to look.

use weald_core::agent::{Agent, End, Outcome};
use weald_core::agent_rules::AgentInput;
use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::retrying::{self, Next};

use super::launching::supervise;
use super::life::park;
use crate::{Agents, Call, Failure, Ground, Landings};

/// Ends an agent and starts the one that continues, if its work did not land and may be tried again. Otherwise the task
/// waits for a person, and the answer is the agent's end, which is not recorded yet.
pub(super) fn retry(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    end: End,
) -> Result<Result<(), End>, Failure> {
    let landing = landing_of(call, ground, Some(&end))?;
    let Some(landing) = landing
        .filter(|landing| end.outcome == Outcome::NotLanded && retrying::is_solvable(landing))
    else {
        return Ok(Err(end));
    };
    let before = match agent.resumes {
        Some(id) => ground.engine.agent(id)?.end,
        None => None,
    };
    let before = landing_of(call, ground, before.as_ref())?;
    let others = ground.engine.agents_on(&agent.task)?;
    let limit = ground.config().work_retries;
    let next = retrying::next(agent, &landing, &others, before.as_ref(), limit);
    let (number, of) = match next {
        Next::Retry { number, of } if call.cancel.asked().is_none() => (number, of),
        Next::Retry { .. } => return Ok(Err(given_up(call, ground, agent, &landing, end))),
        Next::Person(why) => {
            let why = why.map_or(end.why.clone(), |why| format!("{}; {why}", end.why));
            let end = End { why, ..end };
            return Ok(Err(given_up(call, ground, agent, &landing, end)));
        }
    };
    let retried = End {
        why: format!("{}; retry {number} of {of}", end.why),
        ..end.clone()
    };
    let me = Agents::new(&ground.trees(call)?).identity()?;
    let next = match ground.engine.retry_agent(me, agent.id, retried) {
        Ok(next) => next,
        Err(error) => {
            call.warn(&format!("{} was not retried: {error}", agent.id));
            return Ok(Err(given_up(call, ground, agent, &landing, end)));
        }
    };
    call.tell(&ground.engine);
    if let Err(failure) = supervise(call, ground, &next) {
        let current = ground.engine.agent(next.id)?;
        if !current.status.is_over() {
            let why = failure.in_words();
            let told = format!("{}; its retry could not start: {why}", end.why);
            let unstarted = End {
                outcome: Outcome::NotStarted,
                why,
                ..end.clone()
            };
            let end = End { why: told, ..end };
            ground
                .engine
                .decide_agent(next.id, AgentInput::End(unstarted))?;
            given_up(call, ground, agent, &landing, end);
        }
    }
    Ok(Ok(()))
}

/// The task waits for a person: a conflict for a merge, failed tests for whoever looks.
fn given_up(call: &Call<'_>, ground: &Ground, agent: &Agent, landing: &Landing, end: End) -> End {
    if landing.status != LandingStatus::Conflict {
        park(call, ground, agent, &end.why);
        return end;
    }
    if let Err(error) = ground.engine.need_merge(agent) {
        call.warn(&format!("task {}: {error}", agent.task));
    }
    end
}

fn landing_of(
    call: &Call<'_>,
    ground: &Ground,
    end: Option<&End>,
) -> Result<Option<Landing>, Failure> {
    let find = |id: LandingId| {
        Landings::new(&ground.trees(call)?)
            .landing(id)
            .map_err(Failure::from)
    };
    end.and_then(|end| end.landing).map(find).transpose()
}
