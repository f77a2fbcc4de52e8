//! A race: several agents on one task, each in a worktree of its own, of which one is picked.

use std::time::{Duration, Instant};

use weald_core::agent::{Agent, AgentId, Goal, Outcome, Stage, Wanted};
use weald_core::agent_rules::AgentInput;
use weald_core::binding::BindRefusal;
use weald_core::id::{TaskId, Token};
use weald_core::name::TreeName;
use weald_core::races::{self, RaceRefusal};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;

use super::{enter, follow, launch};
use crate::{
    AgentError, AgentRequest, Agents, Created, Failure, Landings, NewTree, Removed, TreeError,
    exit, holder,
};
use crate::{Call, Ground};

/// How often the entries are looked at.
const POLL: Duration = Duration::from_millis(100);

/// How long entries that were asked to stop have for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts an agent for each request. Waits until all have ended, unless their supervisors shall do that.
pub fn start_race(
    call: &Call<'_>,
    ground: &Ground,
    id: &TaskId,
    requests: &[AgentRequest],
    detach: bool,
) -> Result<(), Failure> {
    let task = ground.engine.task(id)?.task;
    if let Some(tree) = &task.worktree {
        let bound = BindRefusal::TaskBound {
            task: id.clone(),
            tree: tree.clone(),
        };
        return Err(TreeError::from(bound).into());
    }
    call.cancel.catch();
    let session = holder("race", id).ok_or_else(Failure::bug)?;
    let reopen = matches!(task.status, TaskStatus::Blocked | TaskStatus::Failed);
    let by = call.actor(&ground.engine)?;
    let held = ground.engine.hold_task(&session, by.as_ref(), id, reopen)?;
    let begun = begin(call, ground, &held, requests);
    if detach && begun.is_ok() {
        // Their supervisors renew the claim, and let the task wait for a pick when the last one has ended.
        return Ok(());
    }
    let watched = begun.and_then(|agents| watch(call, ground, &agents));
    if watched.is_err() {
        give_back(ground, id, held.token)?;
    } else {
        ground.engine.await_pick(id, held.token)?;
    }
    ground.engine.leave(&session);
    watched
}

/// Makes the trees, then starts the agents. If anything fails nothing is left of either.
fn begin(
    call: &Call<'_>,
    ground: &Ground,
    task: &Task,
    requests: &[AgentRequest],
) -> Result<Vec<Agent>, Failure> {
    let trees = ground.trees(call)?;
    let made = Agents::new(&trees).make_race(task, requests.len())?;
    let mut agents: Vec<Agent> = Vec::new();
    for (request, created) in requests.iter().zip(&made) {
        let request = AgentRequest {
            token: Some(task.token),
            ..request.clone()
        };
        match enter(call, ground, &task.id, &request, created) {
            Ok(agent) => {
                tell_entry(call, &agent, created);
                agents.push(agent);
            }
            Err(failure) => {
                let ids: Vec<_> = agents.iter().map(|agent| agent.id).collect();
                stop(ground, &ids, "another entry of its race could not start")?;
                Agents::new(&trees).take_away(made.iter().map(|created| created.tree.name.clone()));
                call.tell(&ground.engine);
                return Err(failure);
            }
        }
    }
    Ok(agents)
}

fn tell_entry(call: &Call<'_>, agent: &Agent, created: &Created) {
    let (tree, entry) = (&created.tree, agent.entry().unwrap_or_default());
    for note in &created.notes {
        call.warn(note);
    }
    call.note(&format!(
        "{entry}: agent {} ({}) in {}",
        agent.id,
        agent.driver,
        tree.path.display()
    ));
}

/// Waits until all entries are over. If one could not begin, all are taken away.
fn watch(call: &Call<'_>, ground: &Ground, agents: &[Agent]) -> Result<(), Failure> {
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
            call.note(&format!("{entry}: {how} {}", end.why));
            if end.outcome == Outcome::NotStarted && agent.process.is_none() {
                stop(ground, &open, "another entry of its race could not start")?;
                let trees = ground.trees(call)?;
                Agents::new(&trees).take_away(agents.iter().filter_map(|agent| agent.tree.clone()));
                call.tell(engine);
                let message = format!("entry {entry} could not start: {}", end.why);
                return Err(Failure::new("agent_not_started", exit::REFUSED, message)
                    .hint("the race was removed; its task is free again"));
            }
        }
        if call.cancel.asked().is_some() && !is_asked {
            is_asked = true;
            call.note("asking the entries to stop; what they wrote is kept");
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
    let deadline = Instant::now() + PATIENCE;
    for id in ids {
        while !engine.agent(*id)?.status.is_over() {
            engine.reap_agents()?;
            if Instant::now() >= deadline {
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

/// Lands an entry and takes the others away. Answers the agent that landed it, and what was removed; nothing was picked if
/// that is `None`.
pub fn pick_entry(
    call: &Call<'_>,
    ground: &Ground,
    id: &TaskId,
    name: &str,
    report: Option<&str>,
) -> Result<(Agent, Option<Vec<Removed>>), Failure> {
    let trees = ground.trees(call)?;
    Agents::new(&trees).require_wanted(&ground.engine.task(id)?.task)?;
    let winner = Agents::new(&trees).bind_pick(id, name)?;
    let undone = |failure: Failure| {
        // Nothing was landed, so nothing was picked.
        let _ = trees.unbind(id);
        failure
    };
    let tree = winner.tree.as_ref().map_or(name, TreeName::as_str);
    let ready = Landings::new(&trees).require_ready(tree, report);
    ready.map_err(|error| {
        let again = format!("weald race pick {id} {name} --report TEXT");
        undone(Failure::from(error).hint(again))
    })?;
    call.cancel.catch();
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
        report: report.map(str::to_owned),
        ..AgentRequest::new(&winner.driver, Goal::Land)
    };
    let quiet = |_: &Agent, _: &Created| {};
    let launched = launch(call, ground, Some(id), &request, NewTree::default(), quiet);
    let launched = launched.map_err(undone)?;
    let agent = follow(call, ground, launched.id)?;
    if agent.end.as_ref().map(|end| end.outcome) != Some(Outcome::Done) {
        trees.unbind(id)?;
        call.note(&format!(
            "it did not land, so nothing was picked; all entries are kept; to pick it again: weald race pick {id} {name}"
        ));
        return Ok((agent, None));
    }
    let agents = ground.engine.agents_on(id)?;
    let losers = races::entries(&agents).into_iter();
    let losers = losers.filter(|agent| agent.id != winner.id && agent.token == winner.token);
    let removed = Agents::new(&trees).take_away(losers.filter_map(|agent| agent.tree.clone()));
    call.tell(&ground.engine);
    Ok((agent, Some(removed)))
}

/// Ends a race without a winner. Answers what was removed, and the entry that was picked before, which stays.
pub fn drop_race(
    call: &Call<'_>,
    ground: &Ground,
    id: &TaskId,
) -> Result<(Vec<Removed>, Option<TreeName>), Failure> {
    let trees = ground.trees(call)?;
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
    call.tell(&ground.engine);
    Ok((removed, picked))
}
