//! The phases of a task: an agent for each, in the task's worktree, until all have passed or one has failed too often.

use serde::{Deserialize, Serialize};
use weald_core::agent::{Agent, Goal, Outcome as Ended, Stage};
use weald_core::id::{TaskId, Token};
use weald_core::message::{Draft, MessageType, Urgency};
use weald_core::name::SessionName;
use weald_core::phases::{self, Blocked, Course};
use weald_core::task::TaskStatus;
use weald_core::task_rules::TaskInput;

use super::wish::typed_agent;
use super::{follow, launch, tell_placed};
use crate::agents::drivers::plain_words;
use crate::screen::clean_line;
use crate::{AgentRequest, Agents, Created, Failure, NewTree, exit, holder};
use crate::{Call, Ground};

/// The phases that are asked for.
pub struct Phases {
    /// What they are phases of.
    pub task: TaskId,
    /// How an agent starts where nothing else is configured for its phase.
    pub request: AgentRequest,
    /// Whether the configuration may say what does a phase: nothing was asked for.
    pub is_open: bool,
    /// The phase to begin with, even if it was completed before.
    pub first: Option<String>,
    /// Whether that is the only one.
    pub only: bool,
}

/// How the phases came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhasesEnd {
    /// All have passed; the agent is the one that landed the work.
    Passed,
    /// One failed too often.
    Blocked,
    /// One ended without a verdict.
    Stopped,
    /// The one that was asked for is done.
    #[serde(rename = "done")]
    Only,
}

impl Phases {
    /// Continues with the first phase that is asked for, or after the last one that was completed. Answers the last agent,
    /// and how it came out.
    pub fn conduct(&self, call: &Call<'_>, ground: &Ground) -> Result<(Agent, PhasesEnd), Failure> {
        let list = ground.config().phase_list.clone();
        let (task, first) = (&self.task, self.first.as_ref());
        check(&list, first)?;
        let engine = &ground.engine;
        let is_left = phases::course(&list, &engine.agents_on(task)?)
            .next
            .is_some();
        if first.is_some() || is_left {
            Agents::new(&ground.trees(call)?).require_sandbox()?;
        }
        let status = engine.task(task)?.task.status;
        let reopen = matches!(status, TaskStatus::Blocked | TaskStatus::Failed);
        let session = holder("phase", task).ok_or_else(Failure::bug)?;
        call.cancel.catch();
        let by = call.actor(engine)?;
        let held = engine.hold_task(&session, by.as_ref(), task, reopen)?;
        let conductor = Conductor {
            call,
            ground,
            wanted: self,
            token: held.token,
            session,
            list,
        };
        let was_blocked = status == TaskStatus::Blocked;
        let ended = conductor.conduct(first.cloned(), self.only, was_blocked);
        if ended.is_err() {
            conductor.release();
        }
        engine.leave(&conductor.session);
        ended
    }
}

fn check(list: &[String], first: Option<&String>) -> Result<(), Failure> {
    let known = list.join(", ");
    let usage = |message: String| Err(Failure::new("bad_phase", exit::USAGE, message));
    let is_name = |phase: &String| weald_core::name::check_name(phase, 40).is_ok();
    if list.is_empty() || !list.iter().all(is_name) {
        return usage(format!("phase.list is not a list of names: [{known}]"))
            .map_err(|failure| failure.hint("weald config set phase.list build,review"));
    }
    match first.filter(|first| !list.contains(first)) {
        Some(first) => usage(format!("there is no phase {first}"))
            .map_err(|failure| failure.hint(format!("the phases are {known}"))),
        None => Ok(()),
    }
}

struct Conductor<'c> {
    call: &'c Call<'c>,
    ground: &'c Ground,
    wanted: &'c Phases,
    token: Token,
    session: SessionName,
    list: Vec<String>,
}

impl Conductor<'_> {
    fn conduct(
        &self,
        mut wanted: Option<String>,
        only: bool,
        mut may_pass_block: bool,
    ) -> Result<(Agent, PhasesEnd), Failure> {
        self.adopt()?;
        loop {
            let agents = self.ground.engine.agents_on(&self.wanted.task)?;
            let course = phases::course(&self.list, &agents);
            let phase = match (wanted.take(), &course.blocked, &course.next) {
                (Some(phase), ..) => phase,
                (None, Some(blocked), _) if !may_pass_block => return self.block(blocked, &course),
                (None, _, None) => return self.land(agents.last()),
                (None, _, Some(next)) => next.clone(),
            };
            may_pass_block = false;
            let agent = self.run_phase(&phase, &course, agents.last())?;
            let outcome = agent.end.as_ref().map(|end| end.outcome);
            let is_judged = matches!(outcome, Some(Ended::Done | Ended::Failed));
            if agent.verdict.is_none() || !is_judged {
                self.release();
                return Ok((agent, PhasesEnd::Stopped));
            }
            if only {
                self.release();
                return Ok((agent, PhasesEnd::Only));
            }
        }
    }

    /// A phase that an earlier process started, and that is still at work, is waited for.
    fn adopt(&self) -> Result<(), Failure> {
        let agents = self.ground.engine.agents_on(&self.wanted.task)?;
        let open = agents.iter().find(|agent| !agent.status.is_over());
        if let Some(agent) = open.filter(|agent| agent.token == self.token) {
            let note = format!("phase {} is running", agent.phase().unwrap_or("land"));
            self.call.note(&note);
            self.told(&follow(self.call, self.ground, agent.id)?);
        }
        Ok(())
    }

    fn run_phase(
        &self,
        phase: &str,
        course: &Course,
        before: Option<&Agent>,
    ) -> Result<Agent, Failure> {
        let attempt = match course.next.as_deref() == Some(phase) && course.attempt > 1 {
            true => format!(" (attempt {} of {})", course.attempt, phases::ATTEMPTS),
            false => String::new(),
        };
        self.call.note(&format!("Phase {phase}{attempt}"));
        let request = AgentRequest {
            role: Some(phase.to_owned()),
            goal: Goal::Stay,
            ..self.request(phase, before)?
        };
        let agent = self.launch(&request)?;
        self.told(&agent);
        Ok(agent)
    }

    /// What does a phase: the words after `--`, its command, its driver, the driver of all.
    fn request(&self, phase: &str, before: Option<&Agent>) -> Result<AgentRequest, Failure> {
        let config = self.ground.config();
        let request = self.wanted.request.clone();
        let of_phase = |list| phases::entry(list, phase);
        let (driver, command) = match (
            self.wanted.is_open,
            of_phase(&config.phase_commands),
            of_phase(&config.phase_drivers),
        ) {
            (true, Some(line), _) => {
                let meant =
                    plain_words(line).map(|words| typed_agent(self.call, self.ground, &words));
                match meant.transpose()? {
                    Some((driver, words)) if driver != "command" => (driver, words),
                    _ => {
                        let words = ["sh", "-c", line].map(str::to_owned);
                        ("command".to_owned(), words.to_vec())
                    }
                }
            }
            (true, None, Some(driver)) => (driver.to_owned(), Vec::new()),
            _ => (request.driver, request.command),
        };
        Ok(AgentRequest {
            driver,
            command,
            resumes: before.map(|agent| agent.id),
            token: Some(self.token),
            ..request
        })
    }

    fn launch(&self, request: &AgentRequest) -> Result<Agent, Failure> {
        let told = |agent: &Agent, created: &Created| {
            if agent.attempt == 1 {
                tell_placed(self.call, agent, created);
            }
        };
        let launched = launch(
            self.call,
            self.ground,
            Some(&self.wanted.task),
            request,
            NewTree::default(),
            told,
        )?;
        self.call.tell(&self.ground.engine);
        follow(self.call, self.ground, launched.id)
    }

    fn told(&self, agent: &Agent) {
        let (Some(phase), Some(verdict)) = (agent.phase(), &agent.verdict) else {
            return;
        };
        let call = self.call;
        call.note(&format!("{phase}: {}", verdict.as_str()));
        for item in verdict.must_fix.iter().filter(|_| !verdict.passes()) {
            call.note(&format!("  must fix: {}", clean_line(item)));
        }
    }

    /// All have passed: the work lands as that of any agent.
    fn land(&self, last: Option<&Agent>) -> Result<(Agent, PhasesEnd), Failure> {
        let request = self.wanted.request.clone();
        // Nothing is started, so what the last one was started with will do.
        let (driver, command) = match last {
            Some(agent) => (agent.driver.clone(), agent.command.clone()),
            None => (request.driver, request.command),
        };
        let request = AgentRequest {
            driver,
            command,
            begin_at: Stage::Finish,
            resumes: last.map(|agent| agent.id),
            token: Some(self.token),
            ..request
        };
        let agent = self.launch(&request)?;
        Ok((agent, PhasesEnd::Passed))
    }

    /// A person has to look at it.
    fn block(&self, blocked: &Blocked, course: &Course) -> Result<(Agent, PhasesEnd), Failure> {
        let engine = &self.ground.engine;
        let agent = engine.agent(blocked.agent)?;
        let (phase, id, task) = (&blocked.phase, agent.id, &self.wanted.task);
        let items = course.must_fix.join("; ");
        let reason = format!(
            "phase {phase} failed {} times; still to fix: {items}. Its output: weald agent logs {id}; to continue: weald phase {task}",
            phases::ATTEMPTS
        );
        let block = TaskInput::Block {
            reason: reason.clone(),
        };
        engine.move_task(Some(&self.session), task, block)?;
        if let (Some(to), Ok(from)) = (agent.spawned_by.clone(), "weald".parse()) {
            let told = engine.send(Draft {
                from,
                to,
                kind: MessageType::Message,
                priority: Urgency::Urgent,
                text: format!("task {task} is blocked: {reason}"),
                task: Some(task.clone()),
            });
            if let Err(error) = told {
                self.call
                    .warn(&format!("could not notify its owner: {error}"));
            }
        }
        Ok((agent, PhasesEnd::Blocked))
    }

    /// Gives the task back; it may be finished, or somebody else's by now.
    fn release(&self) {
        let input = TaskInput::Release {
            token: Some(self.token),
        };
        let _ = self
            .ground
            .engine
            .move_task(Some(&self.session), &self.wanted.task, input);
    }
}
