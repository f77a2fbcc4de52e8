//! `weald race`

mod told;

use clap::{Args, Subcommand};
use weald_app::supervision::{enter, launch};
use weald_app::{
    AgentError, AgentRequest, Agents, Created, Failure, Ground, Landings, NewTree, TreeError, exit,
    holder,
};
use weald_core::agent::{Agent, AgentId, Goal, Outcome, RACE, Stage, Wanted};
use weald_core::agent_rules::AgentInput;
use weald_core::binding::BindRefusal;
use weald_core::id::{TaskId, Token};
use weald_core::name::TreeName;
use weald_core::races::{self, RaceRefusal};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;
use weald_sandbox::{catch_interrupts, interrupted};

use super::work;
use crate::completion;
use crate::context::Context;
use crate::following::follow;
use weald_app::tracker::known;

/// How often the entries are looked at.
const POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// How long entries that were asked to stop have for it.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Give several agents the same task and land the best
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Race {
    #[command(subcommand)]
    command: Option<RaceCommand>,
    /// The task
    #[arg(value_name = "TASK", required = true, add = completion::tasks())]
    task: Option<String>,
    /// Number of agents
    #[arg(short = 'n', long, value_name = "K", value_parser = clap::value_parser!(u8).range(2..=26))]
    count: Option<u8>,
    /// Drivers, one per entry, for example claude,codex
    #[arg(
        long,
        value_name = "DRIVERS",
        value_delimiter = ',',
        conflicts_with = "words"
    )]
    with: Vec<String>,
    /// Model to use
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Return at once; the entries run in the background
    #[arg(long)]
    detach: bool,
    /// Command of every entry; $WEALD_ROLE identifies the entry
    #[arg(last = true, value_name = "CMD")]
    words: Vec<String>,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum RaceCommand {
    /// Compare the results of the entries side by side
    Show {
        /// The task
        #[arg(value_name = "TASK", add = completion::tasks())]
        task: TaskId,
    },
    /// Land one entry and trash the others
    Pick {
        /// The task
        #[arg(value_name = "TASK", add = completion::tasks())]
        task: TaskId,
        /// Entry: its letter, worktree or agent
        #[arg(value_name = "NAME")]
        name: String,
        /// Report to record if its agent sent none
        #[arg(long, value_name = "TEXT")]
        report: Option<String>,
    },
    /// End a race without a winner and trash its worktrees
    Drop {
        /// The task
        #[arg(value_name = "TASK", add = completion::tasks())]
        task: TaskId,
    },
}

impl Race {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.landing_ground()?;
        match (&self.command, &self.task) {
            (Some(RaceCommand::Show { task }), _) => {
                told::show(context, &ground, &known(context, &ground, task))
            }
            (Some(RaceCommand::Pick { task, name, report }), _) => {
                let task = known(context, &ground, task);
                pick(context, &ground, &task, name, report.as_ref())
            }
            (Some(RaceCommand::Drop { task }), _) => {
                drop_race(context, &ground, &known(context, &ground, task))
            }
            (None, Some(task)) => {
                let task = known(context, &ground, &work::id_of(task)?);
                self.start(context, &ground, &task)
            }
            (None, None) => Err(Failure::bug()),
        }
    }

    fn start(&self, context: &Context<'_>, ground: &Ground, id: &TaskId) -> Result<u8, Failure> {
        ground.warn_of_settings(context);
        let requests = self.requests(context, ground)?;
        let task = ground.engine.task(id)?.task;
        if let Some(tree) = &task.worktree {
            let bound = BindRefusal::TaskBound {
                task: id.clone(),
                tree: tree.clone(),
            };
            return Err(TreeError::from(bound).into());
        }
        catch_interrupts();
        let session = holder("race", id).ok_or_else(Failure::bug)?;
        let reopen = matches!(task.status, TaskStatus::Blocked | TaskStatus::Failed);
        let by = context.actor(&ground.engine, None)?;
        let held = ground.engine.hold_task(&session, by.as_ref(), id, reopen)?;
        let begun = begin(context, ground, &held, &requests);
        if self.detach && begun.is_ok() {
            // Their supervisors renew the claim, and let the task wait for a pick when the last one has ended.
            return told::show(context, ground, id);
        }
        let watched = begun.and_then(|agents| watch(context, ground, &agents));
        if watched.is_err() {
            give_back(ground, id, held.token)?;
        } else {
            ground.engine.await_pick(id, held.token)?;
        }
        ground.engine.leave(&session);
        watched?;
        told::show(context, ground, id)?;
        Ok(interrupted().map_or(exit::DONE, |signal| 128 + signal))
    }

    /// What each entry is; a driver that nobody knows is refused before anything is begun.
    fn requests(
        &self,
        context: &Context<'_>,
        ground: &Ground,
    ) -> Result<Vec<AgentRequest>, Failure> {
        let (config, trees) = (ground.config(), ground.trees(context)?);
        let drivers = match (self.with.is_empty(), self.words.is_empty()) {
            (false, _) => self.with.clone(),
            (true, false) => vec!["command".to_owned()],
            (true, true) => vec![config.agent_driver.to_owned()],
        };
        let count = self.count.map_or(drivers.len().max(2), usize::from);
        if drivers.len() > count {
            let message = format!("{} drivers for {count} entries", drivers.len());
            return Err(
                Failure::new("bad_race", exit::USAGE, message).hint("give -n a higher number")
            );
        }
        let model = Some(config.agent_model.to_owned()).filter(|model| !model.is_empty());
        let mut requests = Vec::new();
        for (index, driver) in drivers.iter().cycle().take(count).enumerate() {
            let request = AgentRequest {
                role: Some(format!("{RACE}{}", races::letter(index))),
                command: self.words.clone(),
                model: self.model.clone().or_else(|| model.clone()),
                ..AgentRequest::new(driver, Goal::Stay)
            };
            Agents::new(&trees).require_driver(&request)?;
            requests.push(request);
        }
        Ok(requests)
    }
}

/// Makes the trees, then starts the agents. If anything fails nothing is left of either.
fn begin(
    context: &Context<'_>,
    ground: &Ground,
    task: &Task,
    requests: &[AgentRequest],
) -> Result<Vec<Agent>, Failure> {
    let trees = ground.trees(context)?;
    let made = Agents::new(&trees).make_race(task, requests.len())?;
    let mut agents: Vec<Agent> = Vec::new();
    for (request, created) in requests.iter().zip(&made) {
        let request = AgentRequest {
            token: Some(task.token),
            ..request.clone()
        };
        match enter(context, ground, &task.id, &request, created) {
            Ok(agent) => {
                tell_entry(context, &agent, created);
                agents.push(agent);
            }
            Err(failure) => {
                let ids: Vec<_> = agents.iter().map(|agent| agent.id).collect();
                stop(ground, &ids, "another entry of its race could not start")?;
                Agents::new(&trees).take_away(made.iter().map(|created| created.tree.name.clone()));
                context.tell(&ground.engine);
                return Err(failure);
            }
        }
    }
    Ok(agents)
}

fn tell_entry(context: &Context<'_>, agent: &Agent, created: &Created) {
    let (tree, entry) = (&created.tree, agent.entry().unwrap_or_default());
    for note in &created.notes {
        context.warn(note);
    }
    context.note(&format!(
        "{entry}: agent {} ({}) in {}",
        agent.id,
        agent.driver,
        tree.path.display()
    ));
}

/// Waits until all entries are over. If one could not begin, all are taken away.
fn watch(context: &Context<'_>, ground: &Ground, agents: &[Agent]) -> Result<(), Failure> {
    let engine = &ground.engine;
    let mut open: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
    let mut is_asked = false;
    while !open.is_empty() {
        engine.reap_agents()?;
        for id in open.clone() {
            let agent = engine.agent(id)?;
            let Some(end) = &agent.end else { continue };
            open.retain(|other| *other != id);
            let entry = agent.entry().unwrap_or_default();
            let how = end.outcome.as_str().replace('_', " ");
            context.note(&format!("{entry}: {how} {}", end.why));
            if end.outcome == Outcome::NotStarted && agent.process.is_none() {
                stop(ground, &open, "another entry of its race could not start")?;
                let trees = ground.trees(context)?;
                Agents::new(&trees).take_away(agents.iter().filter_map(|agent| agent.tree.clone()));
                context.tell(engine);
                let message = format!("entry {entry} could not start: {}", end.why);
                return Err(Failure::new("agent_not_started", exit::REFUSED, message)
                    .hint("the race was removed; its task is free again"));
            }
        }
        if interrupted().is_some() && !is_asked {
            is_asked = true;
            context.note("asking the entries to stop; what they wrote is kept");
            ask_to_stop(ground, &open, "stopped from its terminal");
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn ask_to_stop(ground: &Ground, ids: &[AgentId], why: &str) {
    for id in ids {
        let stop = Wanted::Stop {
            why: why.to_owned(),
            release: false,
        };
        // It may be over by now.
        let _ = ground.engine.decide_agent(*id, AgentInput::Want(stop));
    }
}

/// Asks agents to stop, and waits until they have.
fn stop(ground: &Ground, ids: &[AgentId], why: &str) -> Result<(), Failure> {
    let engine = &ground.engine;
    ask_to_stop(ground, ids, why);
    let deadline = std::time::Instant::now() + PATIENCE;
    for id in ids {
        while !engine.agent(*id)?.status.is_over() {
            engine.reap_agents()?;
            if std::time::Instant::now() >= deadline {
                let message = format!("{id} has not ended");
                return Err(Failure::new("agent_busy", exit::BUSY, message)
                    .hint(format!("weald agent pulse {id}")));
            }
            std::thread::sleep(POLL);
        }
    }
    Ok(())
}

/// Gives a task back, if it is still under the race's claim: held, or waiting for a pick.
fn give_back(ground: &Ground, id: &TaskId, claim: Token) -> Result<(), Failure> {
    let engine = &ground.engine;
    let held = TaskInput::Release { token: Some(claim) };
    if engine.move_task(None, id, held).is_ok() {
        return Ok(());
    }
    // The last entry may have let it wait meanwhile.
    let task = engine.task(id)?.task;
    let waits = task.lease.is_none() && task.status == TaskStatus::InProgress;
    if waits && task.token == claim {
        engine.move_task(None, id, TaskInput::Release { token: None })?;
    }
    Ok(())
}

/// The entries of a race that are not over.
fn open_entries(ground: &Ground, id: &TaskId) -> Result<Vec<AgentId>, Failure> {
    let agents = ground.engine.agents_on(id)?;
    let entries = races::entries(&agents);
    let open = entries.iter().filter(|agent| !agent.status.is_over());
    Ok(open.map(|agent| agent.id).collect())
}

fn pick(
    context: &Context<'_>,
    ground: &Ground,
    id: &TaskId,
    name: &str,
    report: Option<&String>,
) -> Result<u8, Failure> {
    let trees = ground.trees(context)?;
    Agents::new(&trees).require_wanted(&ground.engine.task(id)?.task)?;
    let winner = Agents::new(&trees).bind_pick(id, name)?;
    let undone = |failure: Failure| {
        // Nothing was landed, so nothing was picked.
        let _ = trees.unbind(id);
        failure
    };
    let tree = winner.tree.as_ref().map_or(name, TreeName::as_str);
    let ready = Landings::new(&trees).require_ready(tree, report.map(String::as_str));
    ready.map_err(|error| {
        let again = format!("weald race pick {id} {name} --report TEXT");
        undone(Failure::from(error).hint(again))
    })?;
    catch_interrupts();
    stop(
        ground,
        &open_entries(ground, id)?,
        "another entry of its race was picked",
    )
    .map_err(undone)?;
    let task = ground.engine.task(id)?.task;
    let lease = task.lease.filter(|lease| lease.token == winner.token);
    let request = AgentRequest {
        command: winner.command.clone(),
        begin_at: Stage::Finish,
        resumes: Some(winner.id),
        token: lease.map(|lease| lease.token),
        reopen: true,
        report: report.cloned(),
        ..AgentRequest::new(&winner.driver, Goal::Land)
    };
    let quiet = |_: &Agent, _: &Created| {};
    let launched = launch(
        context,
        ground,
        Some(id),
        &request,
        NewTree::default(),
        quiet,
    );
    let launched = launched.map_err(undone)?;
    let agent = follow(context, ground, launched.id)?;
    if agent.end.as_ref().map(|end| end.outcome) != Some(Outcome::Done) {
        trees.unbind(id)?;
        context.note("it did not land, so nothing was picked; all entries are kept");
        return work::answer(context, ground, &agent);
    }
    let agents = ground.engine.agents_on(id)?;
    let losers = races::entries(&agents).into_iter();
    let losers = losers.filter(|agent| agent.id != winner.id && agent.token == winner.token);
    let removed = Agents::new(&trees).take_away(losers.filter_map(|agent| agent.tree.clone()));
    context.tell(&ground.engine);
    told::tell_removed(context, &removed);
    work::answer(context, ground, &agent)
}

fn drop_race(context: &Context<'_>, ground: &Ground, id: &TaskId) -> Result<u8, Failure> {
    let trees = ground.trees(context)?;
    let (task, entries) = Agents::new(&trees).race(id)?;
    let token = ground.engine.agent(entries[0].agent)?.token;
    let left = entries.iter().filter(|entry| !entry.picked);
    let left = left.filter_map(|entry| entry.tree.clone());
    let live = left.filter(|name| trees.named(Some(name.as_str())).is_ok());
    let live: Vec<_> = live.collect();
    let picked = entries.iter().find(|entry| entry.picked);
    let picked = picked.and_then(|entry| entry.tree.clone());
    if let Some(tree) = picked.clone().filter(|_| live.is_empty()) {
        let refused = RaceRefusal::Picked {
            landed: task.status == TaskStatus::Completed,
            task: task.id,
            tree,
        };
        return Err(AgentError::from(refused).into());
    }
    stop(ground, &open_entries(ground, id)?, "its race was dropped")?;
    let removed = Agents::new(&trees).take_away(live);
    let current = ground.engine.task(id)?.task;
    if current.worktree.is_none() {
        give_back(ground, id, token)?;
    }
    context.tell(&ground.engine);
    told::dropped(context, &task.id, picked.as_ref(), &removed)
}
