//! A worker: an agent on each task that is ready, one after the other.

use std::time::{Duration, Instant};

use weald_core::agent::{Agent, AgentId, Outcome};
use weald_core::error_code::ErrorCode;
use weald_core::message::{Message, MessageType, ReplyDraft, RequestState};
use weald_core::name::SessionName;
use weald_core::store::AgentFilter;
use weald_core::task::TaskStatus;
use weald_core::task_rules::TaskInput;
use weald_core::{SignedDuration, Timestamp};

use super::{AgentWish, follow_quietly, launch};
use crate::{AgentRequest, Agents, Failure, InboxQuery, NewTree, exit};
use crate::{Call, Ground};

/// After so many agents in a row that changed nothing a worker ends.
const EMPTY_ENDS: u32 = 2;

/// Whether the next task would meet this failure, too.
fn is_fatal(code: &ErrorCode) -> bool {
    use ErrorCode as Code;
    matches!(
        code,
        Code::Interrupted
            | Code::SandboxUnavailable
            | Code::NotExecutable
            | Code::DriverNotFound
            | Code::DriverNotInstalled
            | Code::DriverNotVisible
            | Code::NoCommand
            | Code::ConfigInvalid
            | Code::SessionTaken
            | Code::AgentNameTaken
            | Code::MainDirty
            | Code::NoCommit
            | Code::NotFetched
    )
}

/// What a worker does.
pub struct Worker {
    /// The session that its agents work under.
    pub name: SessionName,
    /// How each agent starts.
    pub request: AgentRequest,
    /// After how many tasks it ends.
    pub max: Option<u64>,
    /// After how long without work; otherwise as configured.
    pub idle_timeout: Option<SignedDuration>,
}

/// Hears of each agent that has ended.
pub type Report<'r> = dyn FnMut(&Ground, &Agent) -> Result<(), Failure> + 'r;

impl Worker {
    /// Refuses what no task could be done with, before anybody is there to do one.
    pub fn new(
        call: &Call<'_>,
        ground: &Ground,
        how: &AgentWish,
        max: Option<u64>,
        idle_timeout: Option<SignedDuration>,
    ) -> Result<Self, Failure> {
        ground.warn_of_settings(call);
        let trees = ground.trees(call)?;
        Agents::new(&trees).require_sandbox()?;
        let name = match &how.name {
            Some(name) => name.clone(),
            None => format!("worker-{}", std::process::id())
                .parse()
                .map_err(|_| Failure::bug())?,
        };
        let request = AgentRequest {
            session: Some(name.clone()),
            ..how.request(ground)
        };
        Agents::new(&trees).require_driver(&request)?;
        Ok(Self {
            name,
            request,
            max,
            idle_timeout,
        })
    }

    /// Works until there is nothing more to do, or until it is asked to end; answers the exit code.
    pub fn work(
        self,
        call: &Call<'_>,
        ground: Ground,
        report: &mut Report<'_>,
    ) -> Result<u8, Failure> {
        ground
            .engine
            .register(&self.name, Some(std::process::id()))?;
        let since = ground.engine.now()?;
        let mut shift = Shift {
            call,
            report,
            ground,
            wanted: self,
            since,
            finished: 0,
            empty: 0,
            refused: None,
        };
        let ended = shift.go_on().and_then(|()| shift.work());
        // Its tasks are given back by their supervisors; what is left is the name.
        let _ = shift.ground.engine.end(&shift.wanted.name);
        call.tell(&shift.ground.engine);
        ended
    }
}

/// A worker at work.
struct Shift<'c> {
    call: &'c Call<'c>,
    report: &'c mut Report<'c>,
    ground: Ground,
    wanted: Worker,
    since: Timestamp,
    finished: u64,
    /// How many agents changed nothing since one that did.
    empty: u32,
    /// Why the task before this one could not be begun.
    refused: Option<ErrorCode>,
}

impl Shift<'_> {
    /// An agent of this name whose worker is gone is waited for first: one name does one thing at a time.
    fn go_on(&mut self) -> Result<(), Failure> {
        let mut open = self.ground.engine.agents(&AgentFilter {
            open: true,
            task: None,
        })?;
        open.retain(|agent| agent.session == self.wanted.name);
        for agent in open {
            self.call.note(&format!(
                "{} is still working on task {}, so that comes first",
                agent.id, agent.task
            ));
            let agent = follow_quietly(self.call, &self.ground, agent.id)?;
            self.finished += 1;
            (self.report)(&self.ground, &agent)?;
        }
        Ok(())
    }

    fn work(&mut self) -> Result<u8, Failure> {
        let config = self.ground.config();
        let poll = config.worker_poll.unsigned_abs();
        let limit = self
            .wanted
            .idle_timeout
            .unwrap_or_else(|| config.worker_idle_timeout)
            .unsigned_abs();
        let (mut idle_since, mut waits) = (Instant::now(), false);
        loop {
            if let Some(signal) = self.call.cancel.asked() {
                return Ok(128 + signal);
            }
            if self.is_shut_down()? || self.wanted.max.is_some_and(|max| self.finished >= max) {
                return Ok(exit::DONE);
            }
            match self.next()? {
                Some(agent) => {
                    (idle_since, waits) = (Instant::now(), false);
                    self.require_sense(&agent)?;
                    if agent.end.as_ref().map(|end| end.outcome) == Some(Outcome::Stopped)
                        && self.was_meant(&agent)?
                    {
                        let asked = self.call.cancel.asked();
                        return Ok(asked.map_or(exit::DONE, |signal| 128 + signal));
                    }
                }
                None if !waits => {
                    waits = true;
                    let note = format!("{}: waiting for work", self.wanted.name);
                    self.call.note(&note);
                }
                None if idle_since.elapsed() >= limit => return Ok(exit::DONE),
                None => self.rest(poll.min(limit.saturating_sub(idle_since.elapsed())))?,
            }
        }
    }

    /// Ends the worker when its agents change nothing, one after the other: a usage limit, a login that expired or a
    /// blocked tool would empty the backlog like that.
    fn require_sense(&mut self, agent: &Agent) -> Result<(), Failure> {
        let is_empty = agent.end.as_ref().map(|end| end.outcome) == Some(Outcome::Empty);
        self.empty = if is_empty { self.empty + 1 } else { 0 };
        match self.empty < EMPTY_ENDS {
            true => Ok(()),
            false => Err(Failure::new(
                "agents_change_nothing",
                exit::REFUSED,
                format!(
                    "{} stops: {EMPTY_ENDS} agents in a row changed nothing; their tasks are parked",
                    self.wanted.name
                ),
            )
            .hint(format!("to see why: weald agent logs {}", agent.id))),
        }
    }

    /// Whether the worker itself was asked to end while its agent worked. Else that agent alone was stopped, and its task
    /// is left to others.
    fn was_meant(&mut self, agent: &Agent) -> Result<bool, Failure> {
        self.wanted.request.except.push(agent.task.clone());
        let query = InboxQuery {
            all: true,
            ..InboxQuery::default()
        };
        let told = self.ground.engine.inbox(&self.wanted.name, query)?;
        let obeyed = told.iter().any(|message| {
            message.kind == MessageType::Shutdown
                && message.state == Some(RequestState::Approved)
                && message.sent_at >= self.since
        });
        Ok(obeyed || self.call.cancel.asked().is_some())
    }

    /// Does the next task that is ready; `None` if there is none.
    fn next(&mut self) -> Result<Option<Agent>, Failure> {
        self.ground.engine.reap_agents()?;
        let before = self.newest();
        let (call, ground) = (self.call, &self.ground);
        let launched = launch(
            call,
            ground,
            None,
            &self.wanted.request,
            NewTree::default(),
            |agent, created| {
                let begun = format!(
                    "{}: started task {} ({} in {})",
                    self.wanted.name, agent.task, agent.id, created.tree.name
                );
                call.note(&begun);
            },
        );
        let agent = match launched {
            Ok(launched) => {
                self.refused = None;
                follow_quietly(call, ground, launched.id)?
            }
            Err(failure) if failure.code == ErrorCode::NothingReady => return Ok(None),
            Err(failure) if is_fatal(&failure.code) => return Err(failure),
            // What kept two in a row from beginning would go through the whole backlog.
            Err(failure) if self.refused.as_ref() == Some(&failure.code) => return Err(failure),
            Err(failure) => match self.newest().filter(|agent| Some(agent) != before.as_ref()) {
                Some(agent) => {
                    self.refused = Some(failure.code.clone());
                    return self.put_aside(agent, &failure).map(Some);
                }
                // No task was claimed, so there is none to put aside.
                None => return Err(failure),
            },
        };
        if agent.end.as_ref().map(|end| end.outcome) == Some(Outcome::NotStarted) {
            let why = agent.end.as_ref().map(|end| end.why.clone());
            return Err(Failure::new(
                "agent_not_started",
                exit::REFUSED,
                why.unwrap_or_default(),
            ));
        }
        self.finished += 1;
        (self.report)(&self.ground, &agent)?;
        Ok(Some(agent))
    }

    /// A task that no agent can begin waits for a person, so that nobody takes it again and again.
    fn put_aside(&mut self, id: AgentId, failure: &Failure) -> Result<Agent, Failure> {
        let agent = self.ground.engine.agent(id)?;
        if self.ground.engine.task(&agent.task)?.task.status != TaskStatus::Pending {
            // Somebody else has it already.
            return Ok(agent);
        }
        let block = TaskInput::Block {
            reason: failure.in_words(),
        };
        self.ground
            .engine
            .move_task(Some(&self.wanted.name), &agent.task, block)?;
        self.call.warn(&format!(
            "task {} is blocked: {}",
            agent.task, failure.message
        ));
        Ok(agent)
    }

    /// The newest agent under this worker's name.
    fn newest(&self) -> Option<AgentId> {
        let found = self
            .ground
            .engine
            .find_agent(self.wanted.name.as_str())
            .ok();
        found.map(|agent| agent.id)
    }

    /// Waits until something happens anywhere, at most `time`.
    fn rest(&self, time: Duration) -> Result<(), Failure> {
        let engine = &self.ground.engine;
        let deadline = Instant::now() + time;
        let mut seen = engine.last_seq()?;
        while Instant::now() < deadline && self.call.cancel.asked().is_none() {
            let slice =
                Duration::from_millis(250).min(deadline.saturating_duration_since(Instant::now()));
            let now = engine.wait_for_events(seen, slice)?;
            if now != seen && self.is_worth_a_look()? {
                return Ok(());
            }
            seen = now;
        }
        Ok(())
    }

    fn is_worth_a_look(&self) -> Result<bool, Failure> {
        let ready = self.ground.engine.has_ready()?;
        Ok(ready || !self.inbox()?.is_empty())
    }

    fn inbox(&self) -> Result<Vec<Message>, Failure> {
        let query = InboxQuery::default();
        let mut found = self.ground.engine.inbox(&self.wanted.name, query)?;
        found.retain(|message| {
            message.kind == MessageType::Shutdown
                && message
                    .state
                    .is_none_or(|state| state == RequestState::Pending)
        });
        Ok(found)
    }

    /// Whether somebody asked it to go home. It says yes.
    fn is_shut_down(&self) -> Result<bool, Failure> {
        let asked = self.inbox()?;
        for request in &asked {
            let reply = ReplyDraft {
                from: self.wanted.name.clone(),
                text: "done for today".to_owned(),
                kind: Some(MessageType::ShutdownReply),
                verdict: Some(RequestState::Approved),
            };
            self.ground.engine.reply(request.id, reply)?;
        }
        Ok(!asked.is_empty())
    }
}
