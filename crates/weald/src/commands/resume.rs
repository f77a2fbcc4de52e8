//! `weald resume`

use std::io::Write;

use clap::Args;
use weald_app::supervision::{find, place_of};
use weald_app::{AgentRequest, Agents, Failure, Ground, Resumption, TreeView, exit};
use weald_core::agent::{Agent, Stage};
use weald_core::races;
use weald_core::resuming::Diagnosis;
use weald_core::task::TaskStatus;
use weald_core::tree::TreeStatus;

use super::phase;
use super::work::{self, How};
use crate::completion;
use crate::context::Context;
use crate::ui::{Fields, because};

/// Resume a task where its last agent ended
///
/// Runs the same command in the same worktree (recreated from its branch if it is gone) and, if the driver supports it, in
/// the agent's own conversation. Finished work that has not landed yet lands. An agent that worked in the main checkout
/// continues there.
#[derive(Args)]
pub struct Resume {
    /// The task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    /// Start a new conversation
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    how: How,
    /// Accepted for compatibility; the task resumes where it ran before
    #[arg(long, hide = true)]
    use_worktree: bool,
    /// Return at once; the agent runs in the background
    #[arg(long)]
    detach: bool,
    /// Run a command that was given, also where the work only has to land.
    #[arg(skip)]
    runs: bool,
}

impl Resume {
    /// The same as the command with these words.
    pub fn of(task: String, how: How, detach: bool) -> Self {
        Self {
            task,
            fresh: false,
            how,
            use_worktree: false,
            detach,
            runs: false,
        }
    }

    /// As `weald work` continues: a command that was given runs.
    pub fn of_work(task: String, how: How, detach: bool) -> Self {
        Self {
            runs: !how.command.is_empty(),
            ..Self::of(task, how, detach)
        }
    }

    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let _ = self.use_worktree;
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        let task = find(&ground, &self.task)?;
        let found = Agents::new(&ground.trees(context)?).diagnose(&task)?;
        match found.diagnosis {
            Diagnosis::Completed => return completed(context, &ground, &found),
            Diagnosis::Running => return self.running(context, &ground, &found),
            _ => {
                refuse_undecided(&ground, &found)?;
                tell(context, &found);
            }
        }
        self.go_on(context, &ground, &found)
    }

    /// Goes on with what was found.
    pub fn go_on(
        &self,
        context: &Context<'_>,
        ground: &Ground,
        found: &Resumption,
    ) -> Result<u8, Failure> {
        let task = &found.task.id;
        refuse_undecided(ground, found)?;
        if !ground.engine.stages(task)?.is_empty() {
            return phase::go_on(context, ground, task.clone(), &self.how, None, false);
        }
        let mut request = continued(context, ground, found, &self.how)?;
        if self.fresh {
            request.conversation = None;
        }
        if self.runs {
            request.begin_at = Stage::Run;
        }
        let in_main = found.newest.as_ref().is_some_and(|agent| agent.in_main);
        let place = match in_main {
            true => None,
            false => Some(place_of(context, ground)?),
        };
        let agent = work::run_agent(context, ground, task, &request, place, self.detach, false)?;
        work::answer(context, ground, &agent)
    }

    /// An agent works on it: there is nothing to resume, but something to see.
    fn running(
        &self,
        context: &Context<'_>,
        ground: &Ground,
        found: &Resumption,
    ) -> Result<u8, Failure> {
        let Some(agent) = &found.newest else {
            return Err(Failure::bug());
        };
        if self.detach {
            return work::answer(context, ground, agent);
        }
        let since = agent.started_at.strftime("%H:%M:%SZ");
        let message = format!(
            "agent {} works on task {} since {since}",
            agent.id, found.task.id
        );
        Err(Failure::new("task_held", exit::BUSY, message).hint(format!(
            "weald agent attach {id}, or weald agent stop {id}",
            id = agent.id
        )))
    }
}

/// A race that nobody decided is not gone on with by one more agent.
pub fn refuse_undecided(ground: &Ground, found: &Resumption) -> Result<(), Failure> {
    let task = &found.task;
    if !races::is_undecided(task, &ground.engine.agents_on(&task.id)?) {
        return Ok(());
    }
    let message = format!("the race of task {} waits for a pick", task.id);
    Err(
        Failure::new("race_undecided", exit::REFUSED, message).hint(format!(
            "weald race show {id}; weald race pick {id} a",
            id = task.id
        )),
    )
}

/// The agent that goes on with a task: as the last one where `how` says nothing else.
pub fn continued(
    context: &Context<'_>,
    ground: &Ground,
    found: &Resumption,
    how: &How,
) -> Result<AgentRequest, Failure> {
    let mut how = how.clone();
    if how.driver.is_none() && how.command.is_empty() {
        how.driver = found.newest.as_ref().map(|agent| agent.driver.clone());
    }
    let request = how.request(ground);
    Ok(Agents::new(&ground.trees(context)?).continuing(found, request)?)
}

/// Whether an agent worked on the task, and `weald work` goes on where that one ended instead of being refused.
pub fn was_begun(found: &Resumption) -> bool {
    let task = &found.task;
    let is_over = |agent: &Agent| agent.status.is_over();
    let waits = match task.status {
        TaskStatus::Failed | TaskStatus::Blocked => true,
        TaskStatus::InProgress => task.lease.is_none(),
        _ => false,
    };
    waits && found.newest.as_ref().is_some_and(is_over)
}

/// Says that `work` goes on where the last agent ended.
pub fn tell_again(context: &Context<'_>, found: &Resumption) {
    tell(context, found);
    let task = &found.task;
    let place = task.worktree.as_ref();
    let place = place.map_or(String::new(), |tree| format!(" in its worktree {tree}"));
    context.note(&format!("Continuing{place}, like weald resume {}", task.id));
}

fn completed(context: &Context<'_>, ground: &Ground, found: &Resumption) -> Result<u8, Failure> {
    let task = &found.task;
    let left = unlanded(context, ground, found)?;
    context.ui.answer(
        || {
            Fields::new()
                .with("task", task)
                .with("diagnosis", &found.diagnosis)
                .with("unlanded", &left)
        },
        |out| {
            writeln!(
                out,
                "task {} is completed; to open it again: weald task reopen {}",
                task.id, task.id
            )?;
            let Some(view) = &left else { return Ok(()) };
            let (tree, count) = (&view.tree, view.ahead.unwrap_or(0));
            writeln!(
                out,
                "  {count} commits of it are not on {} yet: {} (branch {})",
                tree.target,
                tree.path.display(),
                tree.branch
            )?;
            writeln!(out, "  land it: weald land {}", tree.name)
        },
    )
}

/// The tree of a completed task, if it holds commits that did not land.
fn unlanded(
    context: &Context<'_>,
    ground: &Ground,
    found: &Resumption,
) -> Result<Option<TreeView>, Failure> {
    let trees = ground.trees(context)?;
    let of_agent = found.newest.as_ref().and_then(|agent| agent.tree.clone());
    let name = found.task.worktree.clone().or(of_agent);
    let tree = name.and_then(|name| trees.named(Some(name.as_str())).ok());
    let view = tree.map(|tree| trees.view(tree));
    let holds = |view: &TreeView| {
        view.ahead.is_some_and(|ahead| ahead > 0)
            && view.landed.is_none()
            && view.tree.status != TreeStatus::Landed
    };
    Ok(view.filter(holds))
}

fn tell(context: &Context<'_>, found: &Resumption) {
    let task = &found.task.id;
    let text = match (found.diagnosis, &found.newest) {
        (_, None) => format!("no agent worked on task {task} yet"),
        (Diagnosis::Fresh, Some(agent)) => {
            format!("task {task} is open again; {} worked on it last", agent.id)
        }
        // It names the agent, and says that it changed nothing.
        (Diagnosis::Empty, Some(Agent { end: Some(end), .. })) => end.why.clone(),
        (diagnosis, Some(agent)) => {
            let why = agent.end.as_ref().map_or("", |end| end.why.as_str());
            let word = diagnosis.as_str().replace('_', " ");
            because(format!("the last agent, {} ({word})", agent.id), why)
        }
    };
    context.note(&text);
}
