//! An agent whose provider does not serve it: it waits for a usage limit to be reset, and ends where a login has expired.
//!
//! Its supervisor waits, under the agent's own claim: so whoever started it just sees it continue, and nobody else takes its
//! task meanwhile. Until when is what an agent's stream says, which is bounded here.

use std::thread;
use std::time::{Duration, Instant};

use weald_core::agent::{Agent, Barrier, Limit, Wanted};
use weald_core::agent_rules::AgentInput;
use weald_core::message::{MessageType, ReplyDraft, RequestState};
use weald_core::{SignedDuration, Timestamp};

use super::holding::holding;
use crate::{Call, Failure, Ground, InboxQuery};

/// How often orders are looked for.
const POLL: Duration = Duration::from_millis(250);

/// The longest wait, whatever an agent's stream says.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The wait after the first limit in a row without a time; it doubles with each.
const FIRST: SignedDuration = SignedDuration::from_mins(5);

/// The longest of those.
const LAST: SignedDuration = SignedDuration::from_hours(1);

/// The shortest wait where there is a time; it doubles with each limit in a row, so that a wrong time costs nothing.
const SHORTEST: SignedDuration = SignedDuration::from_secs(1);

/// The most limits that one agent waits for: its stream may invent them.
const MOST: u32 = 20;

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// The limit is reset, as far as anybody knows.
    Reset,
    /// It has waited for as many as it may.
    TooOften,
    Stopped {
        why: String,
    },
    /// Somebody else holds the task.
    Superseded,
}

/// The limits that an agent ran into, one after the other. Time without one does not make the next a first one: only the
/// agent's stream says what it did in that time.
#[derive(Default)]
pub(super) struct Limits {
    in_a_row: u32,
}

impl Limits {
    /// Until when to wait for the next one, unless there were too many.
    fn next(&mut self, until: Option<Timestamp>, now: Timestamp) -> Option<Limit> {
        if self.in_a_row >= MOST {
            return None;
        }
        let before = self.in_a_row;
        self.in_a_row += 1;
        let doubled = |first: SignedDuration, most: SignedDuration| {
            let times = 1_i32.checked_shl(before.min(16)).unwrap_or(i32::MAX);
            first.checked_mul(times).unwrap_or(most).min(most)
        };
        let wait = match until {
            Some(until) => until
                .duration_since(now)
                .clamp(doubled(SHORTEST, FIRST), LONGEST),
            None => doubled(FIRST, LAST),
        };
        let at = now.checked_add(wait).unwrap_or(now);
        Some(Limit {
            until: at,
            is_known: until.is_some(),
        })
    }

    /// Waits until the limit is reset, or something else is wanted of the agent.
    pub(super) fn wait(
        &mut self,
        call: &Call<'_>,
        ground: &Ground,
        agent: &Agent,
        until: Option<Timestamp>,
    ) -> Result<Waited, Failure> {
        let engine = &ground.engine;
        let now = engine.now()?;
        let Some(limit) = self.next(until, now) else {
            return Ok(Waited::TooOften);
        };
        engine.decide_agent(agent.id, AgentInput::Limited(limit))?;
        // By two clocks: one that was set back must not keep it, and a machine that slept must not either.
        let deadline = Instant::now() + limit.until.duration_since(now).unsigned_abs();
        holding(ground, agent, || {
            let mut beat = Instant::now();
            loop {
                if let Some(ended) = ended(call, ground, agent)? {
                    return Ok(ended);
                }
                if Instant::now() >= deadline || engine.now()? >= limit.until {
                    return Ok(Waited::Reset);
                }
                let stale = ground.config().session_stale_after.unsigned_abs();
                if beat.elapsed() >= stale / 4 {
                    beat = Instant::now();
                    let (task, tree) = (Some(agent.task.clone()), agent.tree.clone());
                    let _ = engine.heartbeat(&agent.session, task, tree);
                }
                thread::sleep(POLL);
            }
        })
    }
}

/// What ends a wait early, if anything.
fn ended(call: &Call<'_>, ground: &Ground, agent: &Agent) -> Result<Option<Waited>, Failure> {
    let engine = &ground.engine;
    let stopped = |why: String| Ok(Some(Waited::Stopped { why }));
    if let Some(signal) = call.cancel.asked() {
        return stopped(format!("its supervisor was ended by signal {signal}"));
    }
    if !ground.place.private().exists() {
        return stopped("its repository is gone".to_owned());
    }
    if let Some(Wanted::Stop { why, .. }) = engine.agent(agent.id)?.wanted {
        return stopped(why);
    }
    if engine.task(&agent.task)?.task.token != agent.token {
        return Ok(Some(Waited::Superseded));
    }
    for message in engine.inbox(&agent.session, InboxQuery::default())? {
        if message.kind != MessageType::Shutdown {
            continue;
        }
        let reply = ReplyDraft {
            from: agent.session.clone(),
            text: format!("{} stops; what it wrote is kept", agent.id),
            kind: None,
            verdict: Some(RequestState::Approved),
        };
        if engine.reply(message.id, reply).is_ok() {
            return stopped(format!("{} asked it to shut down", message.from));
        }
    }
    Ok(None)
}

/// What is said of a barrier at the end of an agent.
pub(super) fn words(agent: &Agent, barrier: Barrier, said: &str) -> String {
    let what = match barrier {
        Barrier::Login => format!("{} is not logged in", agent.driver),
        Barrier::Limit { .. } => format!("usage limit of {}", agent.driver),
    };
    with_words(what, said)
}

/// What is said of an agent that ran into too many limits.
pub(super) fn too_often(agent: &Agent, said: &str) -> String {
    let what = format!("more than {MOST} usage limits of {}", agent.driver);
    with_words(what, said)
}

fn with_words(what: String, said: &str) -> String {
    match said.trim() {
        "" => what,
        said => format!("{what}: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn a8_a_wait_is_bounded_whatever_the_stream_says() {
        let wait = |until: Option<Timestamp>| {
            let limit = Limits::default().next(until, at(0)).unwrap();
            (limit.until.duration_since(at(0)).as_secs(), limit.is_known)
        };
        assert_eq!(wait(Some(at(3_600))), (3_600, true));
        assert_eq!(wait(Some(at(-3_600))), (1, true));
        assert_eq!(wait(Some(Timestamp::MIN)), (1, true));
        assert_eq!(wait(Some(Timestamp::MAX)), (7 * 24 * 3_600, true));
        assert_eq!(wait(None), (300, false));
    }

    #[test]
    fn a8_limits_in_a_row_are_waited_for_longer_each_time() {
        let mut limits = Limits::default();
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..6 {
            let limit = limits.next(None, now).unwrap();
            waits.push(limit.until.duration_since(now).as_mins());
            now = limit.until;
        }
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
        let past = limits.next(Some(at(-1)), now).unwrap().until;
        assert_eq!(past.duration_since(now).as_secs(), 64);
        // An hour in between, in which it may have done nothing.
        let later = past.checked_add(SignedDuration::from_hours(1)).unwrap();
        let limit = limits.next(None, later).unwrap();
        assert_eq!(limit.until.duration_since(later).as_mins(), 60);
    }

    #[test]
    fn a8_an_agent_waits_for_no_more_than_twenty_limits() {
        let mut limits = Limits::default();
        let mut hours = (0..100).map(|hour| at(hour * 3_600));
        let waits = hours.by_ref().map_while(|now| limits.next(Some(now), now));
        assert_eq!(waits.count(), 20);
        assert!(hours.all(|now| limits.next(None, now).is_none()));
    }
}
