//! Continuing a task where its last agent ended.

use weald_core::agent::Agent;
use weald_core::races;
use weald_core::resuming::Diagnosis;
use weald_core::task::TaskStatus;

use super::AgentWish;
use crate::screen::because;
use crate::{AgentRequest, Agents, Call, Failure, Ground, Resumption, exit};

/// A race that nobody decided is not continued by one more agent.
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

/// The agent that continues a task: as the last one where `how` says nothing else.
pub fn continued(
    call: &Call<'_>,
    ground: &Ground,
    found: &Resumption,
    how: &AgentWish,
) -> Result<AgentRequest, Failure> {
    let mut how = how.clone();
    if how.driver.is_none() && how.command.is_empty() {
        how.driver = found.newest.as_ref().map(|agent| agent.driver.clone());
    }
    let request = how.request(call, ground)?;
    Ok(Agents::new(&ground.trees(call)?).continuing(found, request)?)
}

/// Whether an agent worked on the task, and a further one resumes where that one ended instead of being refused.
pub fn is_resumed(found: &Resumption) -> bool {
    let task = &found.task;
    let is_over = |agent: &Agent| agent.status.is_over();
    let waits = match task.status {
        TaskStatus::Failed | TaskStatus::Blocked => true,
        TaskStatus::InProgress => task.lease.is_none(),
        _ => false,
    };
    waits && found.newest.as_ref().is_some_and(is_over)
}

/// Says that a command which starts agents resumes instead.
pub fn tell_again(call: &Call<'_>, found: &Resumption) {
    tell_last(call, found);
    let task = &found.task;
    let place = task.worktree.as_ref();
    let place = place.map_or(String::new(), |tree| format!(" in its worktree {tree}"));
    call.note(&format!("Continuing{place}, like weald resume {}", task.id));
}

/// Says how the last agent ended.
pub fn tell_last(call: &Call<'_>, found: &Resumption) {
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
    call.note(&text);
}
