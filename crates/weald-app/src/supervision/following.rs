//! Following an agent until it is over. A Ctrl-C asks it to stop; a closed terminal changes nothing.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use weald_core::TimeZone;
use weald_core::agent::{Agent, AgentId, AgentStatus, Goal, Outcome, Wanted};
use weald_core::agent_rules::AgentInput;
use weald_core::agent_view::limit_in_words;
use weald_core::attention::AttentionKind;
use weald_core::config::NotifyBy;
use weald_core::id::{LandingId, Seq};
use weald_core::landing::Landing;
use weald_core::store::{EventFilter, StoreError};

use crate::landing::LandingWatch;
use crate::notify::wanted;
use crate::progress::Stage;
use crate::screen::clean_line;
use crate::{Call, Ground};
use crate::{Failure, RecordError};

/// How long a kind stays quiet.
const CALLED_AGAIN: Duration = Duration::from_secs(60);

/// How often it is looked at.
const POLL: Duration = Duration::from_millis(100);

/// Waits until an agent and its automatic retries are over, and answers how the last one stands then. Their output is
/// shown meanwhile.
pub fn follow(call: &Call<'_>, ground: &Ground, id: AgentId) -> Result<Agent, Failure> {
    let mut id = id;
    let stage = call.stage("The agent is working");
    loop {
        let mut output = call.progress.output_of(ground, id)?;
        let mut stages = AgentStages::new(ground, &*stage);
        let mut show = |agent: &Agent| -> Result<(), Failure> {
            output()?;
            stages.look(agent);
            Ok(())
        };
        let agent = follow_with(call, ground, id, &mut show)?;
        let Some(next) = ground.engine.retry_of(&agent)? else {
            return Ok(agent);
        };
        call.note(&told_retry(&agent, &next));
        id = next.id;
    }
}

/// The same without their output. What is said of a retry begins with `prefix`.
pub fn follow_quietly(
    call: &Call<'_>,
    ground: &Ground,
    id: AgentId,
    prefix: &str,
) -> Result<Agent, Failure> {
    let mut id = id;
    loop {
        let agent = follow_with(call, ground, id, &mut |_| Ok(()))?;
        let Some(next) = ground.engine.retry_of(&agent)? else {
            return Ok(agent);
        };
        call.note(&format!("{prefix}{}", told_retry(&agent, &next)));
        id = next.id;
    }
}

/// Why an agent is retried, and as which one.
pub fn told_retry(agent: &Agent, next: &Agent) -> String {
    let why = agent.end.as_ref().map_or("", |end| end.why.as_str());
    let why = clean_line(why);
    let (first, rest) = why.split_at(why.chars().next().map_or(0, char::len_utf8));
    format!("↻ {}{rest} ({})", first.to_uppercase(), next.id)
}

/// `show` is called after every look.
fn follow_with(
    call: &Call<'_>,
    ground: &Ground,
    id: AgentId,
    show: &mut dyn FnMut(&Agent) -> Result<(), Failure>,
) -> Result<Agent, Failure> {
    let (mut is_asked, mut waits_for) = (false, None);
    let mut watch = EventWatch::new(ground)?;
    loop {
        let agent = ground.engine.agent(id)?;
        show(&agent)?;
        if agent.limit != waits_for {
            waits_for = agent.limit;
            if let Some(text) = limit_in_words(&agent, ground.engine.now()?, &TimeZone::system()) {
                call.note(&format!("{text}; waiting ({id} on task {})", agent.task));
            }
        }
        watch.look(call, ground)?;
        if agent.status.is_over() {
            show(&agent)?;
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

/// Shows what an agent comes to, up to the end of its landing.
struct AgentStages<'a> {
    ground: &'a Ground,
    stage: &'a dyn Stage,
    status: AgentStatus,
    watch: LandingWatch,
}

impl<'a> AgentStages<'a> {
    fn new(ground: &'a Ground, stage: &'a dyn Stage) -> Self {
        Self {
            ground,
            stage,
            status: AgentStatus::Running,
            watch: LandingWatch::new(&ground.config().gate_command),
        }
    }

    fn look(&mut self, agent: &Agent) {
        if !self.stage.is_shown() {
            return;
        }
        let (id, status) = (agent.id, agent.status);
        let text = match status {
            AgentStatus::Running => Some(format!("{id} is working on task {}", agent.task)),
            AgentStatus::Paused => Some(format!("{id} is paused")),
            AgentStatus::Limited => Some(format!("{id} is waiting for its provider")),
            AgentStatus::Stalled => Some(format!("{id} has been silent for long")),
            AgentStatus::Starting
            | AgentStatus::Finishing
            | AgentStatus::Exited
            | AgentStatus::Crashed => None,
        };
        if let Some(text) = text.filter(|_| status != self.status) {
            self.stage.begins(&text);
            self.status = status;
        }
        // One that was finishing between two looks came through that stage all the same.
        let end = agent.end.as_ref().map(|end| end.outcome);
        let has_finished = matches!(
            end,
            Some(Outcome::Done | Outcome::NotLanded | Outcome::Empty)
        );
        if status != AgentStatus::Finishing && !has_finished {
            return;
        }
        if self.status != AgentStatus::Finishing {
            self.stage.begins(&format!("Committing the work of {id}"));
            self.status = AgentStatus::Finishing;
        }
        // One that can't be read is shown by the answer.
        if let Ok(Some(landing)) = self.landing(agent) {
            let (engine, private) = (&self.ground.engine, self.ground.place.private());
            self.watch.look(engine, private, self.stage, &[landing]);
        }
    }

    /// The landing that its supervisor queued.
    fn landing(&self, agent: &Agent) -> Result<Option<LandingId>, StoreError> {
        let Some(tree) = &agent.tree else {
            return Ok(None);
        };
        let landings = self.ground.engine.look(|tx| tx.landings_of(tree))?;
        let is_its = |landing: &Landing| {
            landing.supervised
                && Some(landing.tree_id) == agent.tree_id
                && landing.queued_at >= agent.started_at
        };
        let newest = landings.into_iter().rev().find(is_its);
        Ok(newest.map(|landing| landing.id))
    }
}

/// Calls a person who follows an agent at a terminal, at most once a minute for each kind.
struct EventWatch {
    seen: Seq,
    called: BTreeMap<AttentionKind, Instant>,
}

impl EventWatch {
    fn new(ground: &Ground) -> Result<Self, Failure> {
        Ok(Self {
            seen: ground.engine.last_seq()?,
            called: BTreeMap::new(),
        })
    }

    fn look(&mut self, call: &Call<'_>, ground: &Ground) -> Result<(), Failure> {
        let (engine, config) = (&ground.engine, ground.config());
        let newest = engine.last_seq()?;
        if newest == self.seen || config.notify_terminal == NotifyBy::Off {
            return Ok(());
        }
        let filter = EventFilter::after(self.seen, newest.0.saturating_sub(self.seen.0));
        let events = engine.look(|tx| tx.events(&filter))?;
        self.seen = newest;
        for attention in wanted(engine, &events, &config.notify_on) {
            let last = self.called.get(&attention.kind);
            if last.is_none_or(|last| last.elapsed() >= CALLED_AGAIN) {
                self.called.insert(attention.kind, Instant::now());
                call.progress
                    .call_person(&attention, config.notify_terminal);
            }
        }
        Ok(())
    }
}
