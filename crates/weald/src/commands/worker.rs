//! `weald worker`
//!
//! A worker prints a line when a task begins and when it has ended, and nothing of its agents' output; `weald agent
//! attach` shows that.

use std::borrow::Cow;
use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::setsid;
use weald_app::supervision::launch;
use weald_app::{AgentRequest, Agents, Failure, Ground, InboxQuery, Landings, NewTree, exit};
use weald_core::agent::{Agent, AgentId, Outcome};
use weald_core::message::{MessageType, ReplyDraft, RequestState};
use weald_core::name::SessionName;
use weald_core::store::AgentFilter;
use weald_core::task::TaskStatus;
use weald_core::task_rules::TaskInput;
use weald_core::{SignedDuration, Timestamp};
use weald_sandbox::{catch_interrupts, interrupted};

use super::work::How;
use super::{land, worker_behind};
use crate::cli::duration;
use crate::context::Context;
use crate::ui::Fields;

/// After so many agents in a row that changed nothing a worker ends.
const EMPTY_ENDS: u32 = 2;

/// Failures that the next task would meet, too.
const FATAL: [&str; 13] = [
    "interrupted",
    "sandbox_unavailable",
    "not_executable",
    "driver_not_found",
    "driver_not_installed",
    "driver_not_visible",
    "no_command",
    "config_invalid",
    "session_taken",
    "agent_name_taken",
    "main_dirty",
    "no_commit",
    "not_fetched",
];

/// Run agents on ready tasks, one after another
///
/// Each task runs in its own worktree, with the command after `--` or the configured driver. Prints one line per finished
/// task. Without ready tasks, it waits and exits after --idle-timeout.
///
/// A `shutdown` message stops the worker gracefully, Ctrl-C at once; its task is released. `weald agent stop` stops only the
/// current agent: the worker leaves that task to others and takes the next. If two agents in a row change nothing, the
/// worker exits with code 1, because something prevents them from working.
#[derive(Args)]
pub struct Worker {
    /// Exit after N tasks
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Exit after this time without work (default: worker.idle_timeout)
    #[arg(long, value_name = "60s", value_parser = duration)]
    idle_timeout: Option<SignedDuration>,
    /// Return at once; the worker runs in the background
    ///
    /// Stop it with `weald msg send NAME TEXT --type shutdown`.
    #[arg(long)]
    detach: bool,
    /// Set when weald starts the worker in the background
    #[arg(long, hide = true, conflicts_with = "detach")]
    behind: bool,
    #[command(flatten)]
    how: How,
}

impl Worker {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.behind {
            // Out of the terminal's session: closing it changes nothing here.
            let _ = setsid();
        }
        catch_interrupts();
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        Agents::new(&ground.trees(context)?).require_sandbox()?;
        let name = match &self.how.name {
            Some(name) => name.clone(),
            None => format!("worker-{}", std::process::id())
                .parse()
                .map_err(|_| Failure::bug())?,
        };
        let request = AgentRequest {
            session: Some(name.clone()),
            ..self.how.request(&ground)
        };
        // What no task could be done with is told before anybody is there to do one.
        Agents::new(&ground.trees(context)?).require_driver(&request)?;
        if self.detach {
            return worker_behind::start(context, &ground, &name, &self.words(&name));
        }
        ground.engine.register(&name, Some(std::process::id()))?;
        let since = ground.engine.now()?;
        let mut shift = Shift {
            context,
            request,
            ground,
            name,
            since,
            finished: 0,
            empty: 0,
            refused: None,
        };
        let ended = shift.go_on().and_then(|()| shift.work(&self));
        // Its tasks are given back by their supervisors; what is left is the name.
        let _ = shift.ground.engine.end(&shift.name);
        context.tell(&shift.ground.engine);
        ended
    }
}

impl Worker {
    /// The same worker as a command line, for a process of its own.
    fn words(&self, name: &SessionName) -> Vec<String> {
        let max = self.max.map(|max| format!("--max={max}"));
        let idle = self
            .idle_timeout
            .map(|idle| format!("--idle-timeout={}ms", idle.as_millis()));
        let mut words = vec!["--behind".to_owned()];
        words.extend(max.into_iter().chain(idle).chain(self.how.words(name)));
        words
    }
}

/// A worker at work.
struct Shift<'c> {
    context: &'c Context<'c>,
    ground: Ground,
    name: SessionName,
    request: AgentRequest,
    since: Timestamp,
    finished: u64,
    /// How many agents changed nothing since one that did.
    empty: u32,
    /// Why the task before this one could not be begun.
    refused: Option<Cow<'static, str>>,
}

impl Shift<'_> {
    /// An agent of this name whose worker is gone is waited for first: one name does one thing at a time.
    fn go_on(&mut self) -> Result<(), Failure> {
        let mut open = self.ground.engine.agents(&AgentFilter {
            open: true,
            task: None,
        })?;
        open.retain(|agent| agent.session == self.name);
        for agent in open {
            self.context.note(&format!(
                "{} is still working on task {}, so that comes first",
                agent.id, agent.task
            ));
            let agent =
                weald_app::supervision::follow(self.context, &self.ground, agent.id, &mut || {
                    Ok(())
                })?;
            self.finished += 1;
            self.print(&agent)?;
        }
        Ok(())
    }

    fn work(&mut self, worker: &Worker) -> Result<u8, Failure> {
        let config = self.ground.config();
        let poll = config.worker_poll.unsigned_abs();
        let limit = worker
            .idle_timeout
            .unwrap_or_else(|| config.worker_idle_timeout)
            .unsigned_abs();
        let (mut idle_since, mut waits) = (Instant::now(), false);
        loop {
            if let Some(signal) = interrupted() {
                return Ok(128 + signal);
            }
            if self.is_shut_down()? || worker.max.is_some_and(|max| self.finished >= max) {
                return Ok(exit::DONE);
            }
            match self.next()? {
                Some(agent) => {
                    (idle_since, waits) = (Instant::now(), false);
                    self.require_sense(&agent)?;
                    if agent.end.as_ref().map(|end| end.outcome) == Some(Outcome::Stopped)
                        && self.was_meant(&agent)?
                    {
                        return Ok(interrupted().map_or(exit::DONE, |signal| 128 + signal));
                    }
                }
                None if !waits => {
                    waits = true;
                    let note = format!("{}: waiting for work", self.name);
                    self.context.note(&note);
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
                    self.name
                ),
            )
            .hint(format!("to see why: weald agent logs {}", agent.id))),
        }
    }

    /// Whether the worker itself was asked to end while its agent worked. Else that agent alone was stopped, and its task
    /// is left to others.
    fn was_meant(&mut self, agent: &Agent) -> Result<bool, Failure> {
        self.request.except.push(agent.task.clone());
        let query = InboxQuery {
            all: true,
            ..InboxQuery::default()
        };
        let told = self.ground.engine.inbox(&self.name, query)?;
        let obeyed = told.iter().any(|message| {
            message.kind == MessageType::Shutdown
                && message.state == Some(RequestState::Approved)
                && message.sent_at >= self.since
        });
        Ok(obeyed || interrupted().is_some())
    }

    /// Does the next task that is ready; `None` if there is none.
    fn next(&mut self) -> Result<Option<Agent>, Failure> {
        self.ground.engine.reap_agents()?;
        let before = self.newest();
        let (context, ground) = (self.context, &self.ground);
        let launched = launch(
            context,
            ground,
            None,
            &self.request,
            NewTree::default(),
            |agent, created| {
                let begun = format!(
                    "{}: started task {} ({} in {})",
                    self.name, agent.task, agent.id, created.tree.name
                );
                context.note(&begun);
            },
        );
        let agent = match launched {
            Ok(launched) => {
                self.refused = None;
                weald_app::supervision::follow(context, ground, launched.id, &mut || Ok(()))?
            }
            Err(failure) if failure.code == "nothing_ready" => return Ok(None),
            Err(failure) if FATAL.contains(&failure.code.as_ref()) => return Err(failure),
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
        self.print(&agent)?;
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
            .move_task(Some(&self.name), &agent.task, block)?;
        self.context.warn(&format!(
            "task {} is blocked: {}",
            agent.task, failure.message
        ));
        Ok(agent)
    }

    /// The newest agent under this worker's name.
    fn newest(&self) -> Option<AgentId> {
        let found = self.ground.engine.find_agent(self.name.as_str()).ok();
        found.map(|agent| agent.id)
    }

    /// Waits until something happens anywhere, at most `time`.
    fn rest(&self, time: Duration) -> Result<(), Failure> {
        let engine = &self.ground.engine;
        let deadline = Instant::now() + time;
        let mut seen = engine.last_seq()?;
        while Instant::now() < deadline && interrupted().is_none() {
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

    fn inbox(&self) -> Result<Vec<weald_core::message::Message>, Failure> {
        let query = InboxQuery::default();
        let mut found = self.ground.engine.inbox(&self.name, query)?;
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
                from: self.name.clone(),
                text: "done for today".to_owned(),
                kind: Some(MessageType::ShutdownReply),
                verdict: Some(RequestState::Approved),
            };
            self.ground.engine.reply(request.id, reply)?;
        }
        Ok(!asked.is_empty())
    }

    /// One line a finished task.
    fn print(&self, agent: &Agent) -> Result<(), Failure> {
        let task = self.ground.engine.task(&agent.task)?.task;
        let landing = match agent.end.as_ref().and_then(|end| end.landing) {
            Some(id) => Some(Landings::new(&self.ground.trees(self.context)?).landing(id)?),
            None => None,
        };
        let outcome = agent
            .end
            .as_ref()
            .map_or("unknown", |end| end.outcome.as_str());
        let mut out = self.context.ui.out();
        if self.context.ui.is_json() {
            let fields = Fields::new()
                .with("task", &task)
                .with("outcome", &outcome)
                .with("agent", agent)
                .with(
                    "landing",
                    &landing.as_ref().map(weald_app::landing::as_json),
                );
            writeln!(out, "{}", fields.finish())?;
        } else {
            let tree = agent.tree.as_ref();
            let tree = tree.map_or(String::new(), |tree| format!("; worktree {tree}"));
            let (ended, status) = (outcome.replace('_', " "), task.status.to_string());
            writeln!(
                out,
                "{}: task {} ({}): agent {ended}; task {}{tree}",
                self.name,
                task.id,
                task.subject,
                status.replace('_', " ")
            )?;
            if let Some(landing) = &landing {
                land::told_kept_changes(&mut out, landing)?;
            }
        }
        Ok(out.flush()?)
    }
}
