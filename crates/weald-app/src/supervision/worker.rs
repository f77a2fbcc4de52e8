//! A worker: an agent on each task that is ready, one after the other.

use std::time::{Duration, Instant};

use weald_core::agent::{Agent, AgentId, Goal, Outcome};
use weald_core::error_code::ErrorCode;
use weald_core::id::TaskId;
use weald_core::message::{Message, MessageType, ReplyDraft, RequestState};
use weald_core::name::SessionName;
use weald_core::needs::{Stuck, needs};
use weald_core::resuming::Diagnosis;
use weald_core::store::{AgentFilter, TaskClass, TaskFilter};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;
use weald_core::{SignedDuration, TimeZone, Timestamp};

use crate::agents::drivers::login_command_of;

use super::{AgentWish, follow_quietly, launch};
use crate::screen::{because, clean_line};
use crate::{AgentRequest, Agents, Failure, InboxQuery, Landings, NewTree, exit};
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
            | Code::LoggedOut
            | Code::NoCommand
            | Code::ConfigInvalid
            | Code::SessionTaken
            | Code::AgentNameTaken
            | Code::MainDirty
            | Code::NoCommit
            | Code::NotFetched
    )
}

/// Refuses to go through the backlog with a login that is good no more.
fn require_login(agent: &Agent) -> Result<(), Failure> {
    let end = agent.end.as_ref();
    let Some(end) = end.filter(|end| end.outcome == Outcome::LoggedOut) else {
        return Ok(());
    };
    let failure = Failure::new(ErrorCode::LoggedOut, exit::REFUSED, end.why.clone());
    Err(match login_command_of(&agent.driver) {
        Some(command) => failure.hint(format!("log in again: {command}")),
        None => failure,
    })
}

/// Refuses to begin one more task on a day whose budget is used up.
fn require_budget(ground: &Ground) -> Result<(), Failure> {
    let Some(budget) = ground.config().agent_budget_day else {
        return Ok(());
    };
    let today = ground.engine.used_today(&TimeZone::system())?;
    let Some(used) = budget.exceeded_by(&today) else {
        return Ok(());
    };
    let message = format!("today's agents used {used}, and agent.budget_day is {budget}");
    Err(Failure::new("over_budget", exit::REFUSED, message)
        .hint("to raise it: weald config set agent.budget_day BUDGET"))
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
            ..how.request(call, ground)?
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
            worked_on: Vec::new(),
            empty: 0,
            refused: None,
        };
        let ended = shift.go_on().and_then(|()| shift.work());
        let ended = ended.and_then(|code| match code {
            exit::DONE => shift.require_nothing_left().map(|()| code),
            _ => Ok(code),
        });
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
    /// The tasks of its agents.
    worked_on: Vec<TaskId>,
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
            let agent = self.follow(&agent)?;
            self.finish(&agent)?;
        }
        Ok(())
    }

    fn follow(&self, agent: &Agent) -> Result<Agent, Failure> {
        let prefix = format!("{}: task {}: ", self.wanted.name, agent.task);
        follow_quietly(self.call, &self.ground, agent.id, &prefix)
    }

    fn finish(&mut self, agent: &Agent) -> Result<(), Failure> {
        self.finished += 1;
        self.worked_on.push(agent.task.clone());
        (self.report)(&self.ground, agent)?;
        require_login(agent)
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
            require_budget(&self.ground)?;
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

    /// Does the next task: one whose conflict nobody tried to solve yet, or else one that is ready; `None` if there is none.
    fn next(&mut self) -> Result<Option<Agent>, Failure> {
        self.ground.engine.reap_agents()?;
        if let Some((task, request)) = self.unsolved()? {
            self.wanted.request.except.push(task.clone());
            match self.launch(Some(&task), &request) {
                Ok(launched) => return self.see_through(&launched).map(Some),
                Err(failure) if is_fatal(&failure.code) => return Err(failure),
                // Somebody else took it, or has to look at it.
                Err(failure) => self.call.note(&format!("task {task}: {}", failure.message)),
            }
        }
        let before = self.newest();
        match self.launch(None, &self.wanted.request) {
            Ok(launched) => {
                self.refused = None;
                self.see_through(&launched).map(Some)
            }
            Err(failure) if failure.code == ErrorCode::NothingReady => Ok(None),
            Err(failure) if is_fatal(&failure.code) => Err(failure),
            // What kept two in a row from beginning would go through the whole backlog.
            Err(failure) if self.refused.as_ref() == Some(&failure.code) => Err(failure),
            Err(failure) => match self.newest().filter(|agent| Some(agent) != before.as_ref()) {
                Some(agent) => {
                    self.refused = Some(failure.code.clone());
                    self.put_aside(agent, &failure).map(Some)
                }
                // No task was claimed, so there is none to put aside.
                None => Err(failure),
            },
        }
    }

    fn launch(&self, task: Option<&TaskId>, request: &AgentRequest) -> Result<Agent, Failure> {
        let new = NewTree::default();
        launch(
            self.call,
            &self.ground,
            task,
            request,
            new,
            |agent, created| {
                let begun = format!(
                    "{}: started task {} ({} in {})",
                    self.wanted.name, agent.task, agent.id, created.tree.name
                );
                self.call.note(&begun);
            },
        )
    }

    /// Waits until an agent has ended.
    fn see_through(&mut self, launched: &Agent) -> Result<Agent, Failure> {
        let agent = self.follow(launched)?;
        if agent.end.as_ref().map(|end| end.outcome) == Some(Outcome::NotStarted) {
            let why = agent.end.as_ref().map(|end| end.why.clone());
            return Err(Failure::new(
                "agent_not_started",
                exit::REFUSED,
                why.unwrap_or_default(),
            ));
        }
        self.finish(&agent)?;
        Ok(agent)
    }

    /// A task that an agent left in conflict and that was never retried, with the agent that continues: whatever depends on
    /// it would wait for ever.
    fn unsolved(&self) -> Result<Option<(TaskId, AgentRequest)>, Failure> {
        let wanted = &self.wanted.request;
        if wanted.goal != Goal::Land {
            return Ok(None);
        }
        let trees = self.ground.trees(self.call)?;
        let limit = self.ground.config().work_retries;
        for task in self.waiting(TaskStatus::NeedsMerge)? {
            if wanted.except.contains(&task.id) || task.lease.is_some() {
                continue;
            }
            let found = Agents::new(&trees).diagnose(&task.id)?;
            let Some(last) = found.newest.as_ref() else {
                continue;
            };
            let of = wanted.retries.unwrap_or(limit);
            let others = self.ground.engine.agents_on(&task.id)?;
            let has_parts = others.iter().any(|agent| agent.role.is_some());
            if found.diagnosis != Diagnosis::NotLanded || last.retry > 0 || of == 0 || has_parts {
                continue;
            }
            let retry = last.retry + 1;
            let request = AgentRequest {
                retry,
                retries: wanted.retries,
                ..Agents::new(&trees).continuing(&found, wanted.clone())?
            };
            return Ok(Some((task.id, request)));
        }
        Ok(None)
    }

    fn waiting(&self, status: TaskStatus) -> Result<Vec<Task>, Failure> {
        let filter = TaskFilter::of(TaskClass::Status(status));
        Ok(self.ground.engine.tasks(&filter)?.0)
    }

    /// Fails if a task of this worker waits for a person, or a conflict holds up other tasks.
    fn require_nothing_left(&self) -> Result<(), Failure> {
        let pending = self.waiting(TaskStatus::Pending)?;
        let mut left = Vec::new();
        for task in self.waiting(TaskStatus::NeedsMerge)? {
            let holds_up = |other: &Task| other.blocked_by.contains(&task.id);
            if self.worked_on.contains(&task.id) || pending.iter().any(holds_up) {
                left.push(task);
            }
        }
        for task in self.waiting(TaskStatus::InProgress)? {
            if self.worked_on.contains(&task.id) && task.parked.is_some() {
                left.push(task);
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let trees = self.ground.trees(self.call)?;
        let (mut lines, mut commands) = (String::new(), Vec::new());
        for task in &left {
            let newest = self.ground.engine.agents_on(&task.id)?.pop();
            let end = newest.and_then(|agent| agent.end);
            let landing = match end.as_ref().and_then(|end| end.landing) {
                Some(id) => Some(Landings::new(&trees).landing(id)?),
                None => None,
            };
            let why = task.parked.clone().or(end.map(|end| end.why));
            let told = format!("task {} ({})", task.id, task.subject);
            let told = because(told, &why.unwrap_or_default());
            lines.push_str(&format!("\n  {}", clean_line(&told)));
            let stuck = Stuck {
                task,
                landing: landing.as_ref(),
            };
            let mut needs = needs(&[], &[], &[stuck]).into_iter();
            let approval = needs.find(|need| need.kind == "approval");
            let resume = || format!("weald resume {}", task.id);
            commands.push(approval.map_or_else(resume, |need| need.command));
        }
        let count = match left.len() {
            1 => "1 task waits".to_owned(),
            count => format!("{count} tasks wait"),
        };
        let message = format!("{}: {count} for you:{lines}", self.wanted.name);
        Err(Failure::new("work_left", exit::REFUSED, message).hint(commands.join(", ")))
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
        let all = self.ground.engine.agents(&AgentFilter::default()).ok()?;
        let mut newest = all.into_iter().rev();
        let found = newest.find(|agent| agent.session == self.wanted.name);
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
