//! `weald work`

use clap::Args;
use weald_app::agents::drivers::has_driver;
use weald_app::supervision::{
    Beginning, begin, begin_in_main, can_start, find_or_add, place_of, withdraw,
};
use weald_app::{AgentRequest, Agents, Failure, Ground, Landings, NewTree, exit};
use weald_core::agent::{Agent, Goal, Outcome};
use weald_core::error_code::ErrorCode;
use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_sandbox::interrupted;

use super::resume::{self, Resume};
use crate::completion;
use crate::context::Context;
use crate::following::follow;
use crate::ui::Fields;

/// Run an agent on a task in its own worktree, then land it
///
/// TASK is a task ID, or the subject of a new task (if it contains a space, or with --new). Without a command after `--`, the
/// configured driver works on it. On success, remaining changes are committed and the work lands. On failure, the worktree
/// is kept and `weald resume` continues.
///
/// Ctrl-C stops the agent; closing the terminal does not.
#[derive(Args)]
pub struct Work {
    /// Task ID, or the subject of a new task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    /// Treat TASK as the subject of a new task
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    how: How,
    /// Work in the main checkout, without worktree or landing
    #[arg(long, conflicts_with = "land")]
    no_worktree: bool,
    /// Accepted for compatibility; this is the default
    #[arg(long, hide = true, conflicts_with = "no_worktree")]
    use_worktree: bool,
    /// Return at once; the agent runs in the background
    #[arg(long)]
    detach: bool,
    /// Accepted for compatibility; weald never prompts
    #[arg(long, short, visible_alias = "auto-confirm")]
    yes: bool,
}

/// How an agent works.
#[derive(Args, Clone)]
pub struct How {
    /// Land the result (default: work.land)
    #[arg(long, conflicts_with = "no_land")]
    land: bool,
    /// Keep the result in its worktree
    #[arg(long)]
    no_land: bool,
    /// Model to use
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Driver: claude, codex, command, … (default: agent.driver)
    ///
    /// With a command after `--`, the default is command.
    #[arg(long, value_name = "DRIVER")]
    pub driver: Option<String>,
    /// Session name of the agent (default: its ID)
    #[arg(long, value_name = "NAME")]
    pub name: Option<SessionName>,
    /// Role, such as "backend developer"; part of every prompt
    #[arg(long, value_name = "TEXT")]
    pub role: Option<String>,
    /// Standing instructions; part of every prompt
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Command to run, or extra arguments for the driver
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

impl How {
    /// The same as words of a command line, under a name.
    pub fn words(&self, name: &SessionName) -> Vec<String> {
        let given = |flag: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("--{flag}={value}"))
        };
        let mut words = vec![format!("--name={name}")];
        words.extend(self.land.then(|| "--land".to_owned()));
        words.extend(self.no_land.then(|| "--no-land".to_owned()));
        words.extend(given("model", &self.model));
        words.extend(given("driver", &self.driver));
        words.extend(given("role", &self.role));
        words.extend(given("prompt", &self.prompt));
        if !self.command.is_empty() {
            words.push("--".to_owned());
            words.extend(self.command.clone());
        }
        words
    }

    /// What it is told about itself.
    fn brief(&self) -> Option<String> {
        let role = self.role.as_ref().map(|role| format!("Your role: {role}."));
        let parts: Vec<_> = role.into_iter().chain(self.prompt.clone()).collect();
        Some(parts.join("\n\n")).filter(|brief| !brief.trim().is_empty())
    }

    /// What is asked for, by flags and configuration.
    pub fn request(&self, ground: &Ground) -> AgentRequest {
        let config = ground.config();
        let lands = match (self.land, self.no_land) {
            (true, _) => true,
            (_, true) => false,
            _ => config.work_land,
        };
        let goal = if lands { Goal::Land } else { Goal::Finish };
        let mut command = self.command.clone();
        let driver = match (&self.driver, &command[..]) {
            (Some(driver), _) => driver.clone(),
            (None, []) => config.agent_driver.to_owned(),
            // Such a word alone means the agent, not its program without a prompt.
            (None, [agent]) if has_driver(agent) => command.remove(0),
            (None, _) => "command".to_owned(),
        };
        let model = config.agent_model.to_owned();
        AgentRequest {
            session: self.name.clone(),
            brief: self.brief(),
            command,
            model: self
                .model
                .clone()
                .or(Some(model).filter(|model| !model.is_empty())),
            ..AgentRequest::new(driver, goal)
        }
    }
}

impl Work {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        let request = self.how.request(&ground);
        Agents::new(&ground.trees(context)?).require_driver(&request)?;
        let place = match self.no_worktree {
            true => None,
            false => Some(place_of(context, &ground)?),
        };
        let can_start = |subject: &str| match &place {
            Some(new) => can_start(context, &ground, subject, &request, new),
            None => Ok(()),
        };
        let found = find_or_add(context, &ground, &self.task, self.new, can_start);
        let (task, is_new) = found.map_err(|failure| {
            let new = format!(
                "weald task list; for a new task: weald work --new {:?}",
                self.task
            );
            match failure.code {
                ErrorCode::TaskNotFound => failure.hint(new),
                _ => failure,
            }
        })?;
        // Both say what holds anyway.
        let _ = (self.yes, self.use_worktree);
        let found = Agents::new(&ground.trees(context)?).diagnose(&task)?;
        if place.is_some() && resume::was_begun(&found) {
            resume::tell_again(context, &found);
            let again = Resume::of_work(task.to_string(), self.how, self.detach);
            return again.go_on(context, &ground, &found);
        }
        let begun = run_agent(
            context,
            &ground,
            &task,
            &request,
            place,
            self.detach,
            is_new,
        );
        let agent = begun.inspect_err(|failure| {
            if is_new {
                withdraw(context, &ground, &task, failure);
            }
        })?;
        answer(context, &ground, &agent)
    }
}

/// Starts an agent in a worktree, or in the main checkout without one, and shows it until it has ended.
pub fn run_agent(
    context: &Context<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
    place: Option<NewTree>,
    detach: bool,
    is_new: bool,
) -> Result<Agent, Failure> {
    let follow = |ground: &Ground, id| follow(context, ground, id);
    match place {
        None => begin_in_main(context, ground, task, request, detach, &follow),
        Some(new) => {
            let beginning = Beginning {
                new,
                detach,
                is_new,
            };
            begin(context, ground, task, request, beginning, &follow)
        }
    }
}

/// Tells what came out of an agent, and what to do next.
pub fn answer(context: &Context<'_>, ground: &Ground, agent: &Agent) -> Result<u8, Failure> {
    let task = ground.engine.task(&agent.task)?.task;
    let trees = ground.trees(context)?;
    let landing = match agent.end.as_ref().and_then(|end| end.landing) {
        Some(id) => Some(Landings::new(&trees).landing(id)?),
        None => None,
    };
    let tree = match &agent.tree {
        Some(name) => trees.named(Some(name.as_str())).ok(),
        None => None,
    };
    let view = tree.map(|tree| trees.view(tree));
    context.tell(&ground.engine);
    context.ui.answer(
        || {
            Fields::new()
                .with("task", &task)
                .with("tree", &view)
                .with("agent", agent)
                .with("exit", &agent.code)
                .with(
                    "landing",
                    &landing.as_ref().map(weald_app::landing::as_json),
                )
        },
        |out| super::work_told::tell(out, agent, &task, landing.as_ref(), view.as_ref()),
    )?;
    Ok(match agent.end.as_ref().map(|end| end.outcome) {
        None | Some(Outcome::Done) => exit::DONE,
        Some(Outcome::Stopped) => interrupted().map_or(exit::REFUSED, |signal| 128 + signal),
        Some(Outcome::NotLanded) => match landing.as_ref().map(|landing| landing.status) {
            Some(weald_core::landing::LandingStatus::Conflict) => exit::CONFLICT,
            _ => exit::REFUSED,
        },
        Some(_) => exit::REFUSED,
    })
}
