//! `weald work`

use clap::Args;
use weald_app::agents::drivers::has_driver;
use weald_app::supervision::{await_begin, launch};
use weald_app::{
    Adoption, AgentRequest, Agents, Created, Failure, Ground, Landings, NewTask, NewTree,
    Outcome as Made, RemoveRequest, exit, tracker,
};
use weald_core::agent::{Agent, Goal, Outcome};
use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;
use weald_sandbox::{catch_interrupts, interrupted};

use super::ensure::{defers, is_foreign_tree};
use super::resume::{self, Resume};
use super::work_in_main;
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
            let is_unknown = failure.code == "task_not_found";
            let new = format!(
                "weald task list; for a new task: weald work --new {:?}",
                self.task
            );
            if is_unknown {
                failure.hint(new)
            } else {
                failure
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
        let begun = match place {
            None => work_in_main::begin(context, &ground, &task, &request, self.detach),
            Some(new) => begin_in(
                context,
                &ground,
                &task,
                &request,
                Beginning {
                    new,
                    detach: self.detach,
                    is_new,
                },
            ),
        };
        begun.inspect_err(|failure| {
            if is_new {
                withdraw(context, &ground, &task, failure);
            }
        })
    }
}

/// Errors when no agent could begin on a new task of these words.
pub fn can_start(
    context: &Context<'_>,
    ground: &Ground,
    subject: &str,
    request: &AgentRequest,
    new: &NewTree,
) -> Result<(), Failure> {
    let trees = ground.trees(context)?;
    Ok(Agents::new(&trees).require_start(subject.trim(), request, new)?)
}

/// Takes back a task that was made for an agent which could not begin, if nobody has it.
pub fn withdraw(context: &Context<'_>, ground: &Ground, task: &TaskId, failure: &Failure) {
    let is_free = |task: &Task| task.status == TaskStatus::Pending && task.owner.is_none();
    let known = ground.engine.task(task).map(|view| view.task);
    if known.is_ok_and(|known| is_free(&known)) {
        let cancel = TaskInput::Cancel {
            reason: Some(format!("no agent could start on it: {}", failure.message)),
        };
        if ground.engine.move_task(None, task, cancel).is_ok() {
            context.note(&format!("task {task} is cancelled: nothing was started"));
        }
    }
}

/// Starts an agent on a task, follows it and tells what came out.
pub fn begin(
    context: &Context<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
    detach: bool,
) -> Result<u8, Failure> {
    let beginning = Beginning {
        new: place_of(context, ground)?,
        detach,
        is_new: false,
    };
    begin_in(context, ground, task, request, beginning)
}

/// How an agent begins.
struct Beginning {
    new: NewTree,
    /// Whether nobody waits for it.
    detach: bool,
    /// Whether its task was made for it.
    is_new: bool,
}

fn begin_in(
    context: &Context<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
    beginning: Beginning,
) -> Result<u8, Failure> {
    let Beginning {
        new,
        detach,
        is_new,
    } = beginning;
    if !detach {
        catch_interrupts();
    }
    let is_own_tree = is_new && new.name.is_none();
    let told = |agent: &Agent, created: &Created| tell_placed(context, agent, created);
    let launched = launch(context, ground, Some(task), request, new, told)?;
    context.tell(&ground.engine);
    let id = launched.id;
    let agent = match detach {
        true => await_begin(ground, id)?,
        false => follow(context, ground, id)?,
    };
    if is_new {
        require_begun(context, ground, &agent, is_own_tree)?;
    }
    if detach && !agent.status.is_over() {
        context.note(&format!(
            "{id} works on it; follow it with: weald agent attach {id}"
        ));
    }
    answer(context, ground, &agent)
}

/// Errors when an agent never began; a tree that was made for it alone goes.
pub fn require_begun(
    context: &Context<'_>,
    ground: &Ground,
    agent: &Agent,
    is_own_tree: bool,
) -> Result<(), Failure> {
    let end = agent.end.as_ref();
    let Some(end) = end.filter(|end| end.outcome == Outcome::NotStarted) else {
        return Ok(());
    };
    if let Some(tree) = agent.tree.as_ref().filter(|_| is_own_tree) {
        let request = RemoveRequest {
            reason: Some("no agent could start in it".to_owned()),
            ..RemoveRequest::default()
        };
        // What is in it keeps it, and is told by the board.
        let _ = ground.trees(context)?.remove(Some(tree.as_str()), &request);
    }
    let why = end.why.clone();
    Err(Failure::new("agent_not_started", exit::REFUSED, why)
        .hint("install the program, or name another one after --"))
}

/// Where the work is done: in the tree of the task, or in the tree that the caller is in.
pub fn place_of(context: &Context<'_>, ground: &Ground) -> Result<NewTree, Failure> {
    if !defers(context, ground) {
        return Ok(NewTree::default());
    }
    if ground.place.inside().is_some() {
        let tree = ground.trees(context)?.named(None)?;
        context.note(&format!("in this worktree, {}", tree.name));
        return Ok(NewTree {
            name: Some(tree.name.to_string()),
            ..NewTree::default()
        });
    }
    match is_foreign_tree(context) {
        false => Ok(NewTree::default()),
        true => adopted(context, ground),
    }
}

/// A worktree that another tool made is worked in as it is, where it is.
fn adopted(context: &Context<'_>, ground: &Ground) -> Result<NewTree, Failure> {
    let mut above = context.directory().ancestors();
    let Some(root) = above.find(|above| above.join(".git").is_file()) else {
        return Err(Failure::new(
            "foreign_tree",
            exit::REFUSED,
            "another tool keeps its worktrees here, but this is not one of them; nothing was started",
        )
        .hint("cd to the main checkout, or set WEALD_DEFER_CLAUDE=0 to create a weald worktree"));
    };
    let tree = ground.trees(context)?.adopt(&Adoption {
        path: root.to_owned(),
        ..Adoption::default()
    })?;
    context.note(&format!(
        "works in this worktree, adopted as {}; it is kept after landing",
        tree.name
    ));
    Ok(NewTree {
        name: Some(tree.name.to_string()),
        ..NewTree::default()
    })
}

/// The task that is meant: an id that is known, or a subject of a new one, and whether it is new. A new one is made once
/// `can_start` agrees.
pub fn find_or_add(
    context: &Context<'_>,
    ground: &Ground,
    text: &str,
    new: bool,
    can_start: impl Fn(&str) -> Result<(), Failure>,
) -> Result<(TaskId, bool), Failure> {
    let engine = &ground.engine;
    let add = || -> Result<(TaskId, bool), Failure> {
        can_start(text)?;
        let actor = context.actor(engine, None)?;
        let task = engine.add_task(
            actor.as_ref(),
            NewTask {
                subject: text.trim().to_owned(),
                ..NewTask::default()
            },
        )?;
        context.note(&format!("Task {}: {}", task.id, task.subject));
        Ok((task.id, true))
    };
    if new {
        return add();
    }
    if text.parse::<TaskId>().is_err() && text.trim().contains(' ') {
        return match odd_part(text) {
            None => add(),
            Some(odd) => Err(Failure::new(
                "bad_id",
                exit::USAGE,
                format!(
                    "{text:?} is not an id, and {odd} is not allowed in the subject of a new task"
                ),
            )
            .hint("with --new a subject may be anything: weald work --new SUBJECT")),
        };
    }
    match find(ground, text) {
        Err(failure) if failure.code == "task_not_found" => {
            let id = text.parse().map_err(|_| Failure::bug())?;
            let fetched = tracker::fetch(context, ground, &id)?.ok_or(failure)?;
            Ok((fetched, false))
        }
        found => found.map(|id| (id, false)),
    }
}

/// The task with this id.
pub fn find(ground: &Ground, text: &str) -> Result<TaskId, Failure> {
    let id = id_of(text)?;
    match ground.engine.task(&id) {
        Ok(_) => Ok(id),
        Err(error) => Err(Failure::from(error).hint("weald task list")),
    }
}

/// The id that somebody wrote, whether or not there is such a task.
pub fn id_of(text: &str) -> Result<TaskId, Failure> {
    text.parse().map_err(|error: weald_core::id::TaskIdError| {
        Failure::new("bad_id", exit::USAGE, error.to_string()).hint(
            match text.contains(char::is_whitespace) {
                true => {
                    "give the id of a task: weald task list; to create one: weald task add SUBJECT"
                }
                false => "weald task list; the subject of a new task needs a space in it",
            },
        )
    })
}

/// What of a shell or a path is in words that should be a subject: somebody may have meant something else by it.
fn odd_part(text: &str) -> Option<String> {
    let shell = [";", "`", "$(", "|", "&&", "<", ">"];
    let start = text.chars().next().filter(|first| "-./".contains(*first));
    let control = || text.chars().find(|c| c.is_control());
    let found = shell.into_iter().find(|part| text.contains(part));
    match (start, found) {
        (Some(start), _) => Some(format!("{start:?} at its beginning")),
        (None, Some(part)) => Some(format!("{part:?}")),
        (None, None) => control().map(|control| format!("{control:?}")),
    }
}

/// Says where an agent works.
pub fn tell_placed(context: &Context<'_>, agent: &Agent, created: &Created) {
    let tree = &created.tree;
    let how = match created.outcome {
        Made::Created => "Worktree created",
        Made::Recreated => "Worktree recreated",
        _ => "Worktree",
    };
    for note in &created.notes {
        context.warn(note);
    }
    context.note(&format!("✓ {how}: {}", tree.path.display()));
    context.note(&format!("  Branch: {}", tree.branch));
    context.note(&format!(
        "  Agent {} ({}) works on task {}",
        agent.id, agent.driver, agent.task
    ));
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
