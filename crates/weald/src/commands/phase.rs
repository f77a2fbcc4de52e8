//! `weald phase`

use clap::Args;
use weald_app::supervision::launch;
use weald_app::{AgentRequest, Agents, Created, Failure, Ground, NewTree, exit, holder};
use weald_core::agent::{Agent, Goal, Outcome as Ended, Stage};
use weald_core::id::{TaskId, Token};
use weald_core::message::{Draft, MessageType, Urgency};
use weald_core::name::SessionName;
use weald_core::phases::{self, Blocked, Course};
use weald_core::task::TaskStatus;
use weald_core::task_rules::TaskInput;
use weald_sandbox::catch_interrupts;

use super::phase_told::{Outcome, answer};
use super::work::{How, find, tell_placed};
use crate::completion;
use crate::context::Context;
use crate::following::follow;

/// Run a task in phases: plan, build, review, qa
///
/// Runs one agent per phase in the task's worktree. Each ends with a verdict: a phase that fails with something to fix goes
/// back to `build`, and after three failures of a phase the task is blocked and its owner notified. When all phases have
/// passed, the work lands.
///
/// After an interruption, the same command continues after the last completed phase. `weald config show phase.list` lists the
/// phases; `phase.commands`, `phase.drivers` and `phase.prompts` set how each one runs.
#[derive(Args)]
pub struct Phase {
    /// The task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    /// Run only this phase and land nothing
    #[arg(long, value_name = "PHASE", conflicts_with = "from")]
    only: Option<String>,
    /// Start with this phase, even if it was completed before
    #[arg(long, value_name = "PHASE")]
    from: Option<String>,
    #[command(flatten)]
    how: How,
}

impl Phase {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        let task = find(&ground, &self.task)?;
        let first = self.only.as_ref().or(self.from.as_ref());
        go_on(
            context,
            &ground,
            &task,
            &self.how,
            first,
            self.only.is_some(),
        )
    }
}

/// Goes on with the phases of a task: with `first`, or behind the last one that was completed.
pub fn go_on(
    context: &Context<'_>,
    ground: &Ground,
    task: &TaskId,
    how: &How,
    first: Option<&String>,
    only: bool,
) -> Result<u8, Failure> {
    let list = ground.config().phase_list.to_vec();
    check(&list, first)?;
    let engine = &ground.engine;
    let is_left = phases::course(&list, &engine.agents_on(task)?)
        .next
        .is_some();
    if first.is_some() || is_left {
        Agents::new(&ground.trees(context)?).require_sandbox()?;
    }
    let status = engine.task(task)?.task.status;
    let reopen = matches!(status, TaskStatus::Blocked | TaskStatus::Failed);
    let session = holder("phase", task).ok_or_else(Failure::bug)?;
    catch_interrupts();
    let by = context.actor(engine, None)?;
    let held = engine.hold_task(&session, by.as_ref(), task, reopen)?;
    let conductor = Conductor {
        context,
        ground,
        task: task.clone(),
        token: held.token,
        session,
        how,
        list,
    };
    let was_blocked = status == TaskStatus::Blocked;
    let ended = conductor.conduct(first.cloned(), only, was_blocked);
    if ended.is_err() {
        conductor.release();
    }
    engine.leave(&conductor.session);
    ended
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
    context: &'c Context<'c>,
    ground: &'c Ground,
    task: TaskId,
    token: Token,
    session: SessionName,
    how: &'c How,
    list: Vec<String>,
}

impl Conductor<'_> {
    fn conduct(
        &self,
        mut wanted: Option<String>,
        only: bool,
        mut may_pass_block: bool,
    ) -> Result<u8, Failure> {
        self.adopt()?;
        loop {
            let agents = self.ground.engine.agents_on(&self.task)?;
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
                return answer(self.context, self.ground, &agent, Outcome::Stopped);
            }
            if only {
                self.release();
                return answer(self.context, self.ground, &agent, Outcome::Only);
            }
        }
    }

    /// A phase that an earlier process started, and that is still at work, is waited for.
    fn adopt(&self) -> Result<(), Failure> {
        let agents = self.ground.engine.agents_on(&self.task)?;
        let open = agents.iter().find(|agent| !agent.status.is_over());
        if let Some(agent) = open.filter(|agent| agent.token == self.token) {
            let note = format!("phase {} is running", agent.phase().unwrap_or("land"));
            self.context.note(&note);
            self.told(&follow(self.context, self.ground, agent.id)?);
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
        self.context.note(&format!("Phase {phase}{attempt}"));
        let request = AgentRequest {
            role: Some(phase.to_owned()),
            goal: Goal::Stay,
            ..self.request(phase, before)
        };
        let agent = self.launch(&request)?;
        self.told(&agent);
        Ok(agent)
    }

    /// What does a phase: the words after `--`, its command, its driver, the driver of all.
    fn request(&self, phase: &str, before: Option<&Agent>) -> AgentRequest {
        let config = self.ground.config();
        let request = self.how.request(self.ground);
        let of_phase = |list| phases::entry(list, phase);
        let (driver, command) = match (
            self.how.command.is_empty() && self.how.driver.is_none(),
            of_phase(&config.phase_commands),
            of_phase(&config.phase_drivers),
        ) {
            (true, Some(line), _) => {
                let words = ["sh", "-c", line].map(str::to_owned);
                ("command".to_owned(), words.to_vec())
            }
            (true, None, Some(driver)) => (driver.to_owned(), Vec::new()),
            _ => (request.driver, request.command),
        };
        AgentRequest {
            driver,
            command,
            resumes: before.map(|agent| agent.id),
            token: Some(self.token),
            ..request
        }
    }

    fn launch(&self, request: &AgentRequest) -> Result<Agent, Failure> {
        let told = |agent: &Agent, created: &Created| {
            if agent.attempt == 1 {
                tell_placed(self.context, agent, created);
            }
        };
        let launched = launch(
            self.context,
            self.ground,
            Some(&self.task),
            request,
            NewTree::default(),
            told,
        )?;
        self.context.tell(&self.ground.engine);
        follow(self.context, self.ground, launched.id)
    }

    fn told(&self, agent: &Agent) {
        let (Some(phase), Some(verdict)) = (agent.phase(), &agent.verdict) else {
            return;
        };
        let context = self.context;
        context.note(&format!("{phase}: {}", verdict.as_str()));
        for item in verdict.must_fix.iter().filter(|_| !verdict.passes()) {
            context.note(&format!("  must fix: {}", crate::ui::clean_line(item)));
        }
    }

    /// All have passed: the work lands as that of any agent.
    fn land(&self, last: Option<&Agent>) -> Result<u8, Failure> {
        let request = self.how.request(self.ground);
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
        answer(self.context, self.ground, &agent, Outcome::Passed)
    }

    /// A person has to look at it.
    fn block(&self, blocked: &Blocked, course: &Course) -> Result<u8, Failure> {
        let engine = &self.ground.engine;
        let agent = engine.agent(blocked.agent)?;
        let (phase, id, task) = (&blocked.phase, agent.id, &self.task);
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
                self.context
                    .warn(&format!("could not notify its owner: {error}"));
            }
        }
        answer(self.context, self.ground, &agent, Outcome::Blocked)
    }

    /// Gives the task back; it may be finished, or somebody else's by now.
    fn release(&self) {
        let input = TaskInput::Release {
            token: Some(self.token),
        };
        let _ = self
            .ground
            .engine
            .move_task(Some(&self.session), &self.task, input);
    }
}
