//! Rescuing the work of an agent that failed or died.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::agent::AgentStatus;
use weald_core::meant::Word;

use super::Operation;
use super::works::{Ended, ResumeTask};
use crate::supervision::AgentWish;
use crate::supervision::rescue::{Evidence, commit_left, gather, restart, to_trash, write_patch};
use crate::{AgentRequest, Agents, Call, Failure, Ground, Resumption, exit};

entries!(RescueTask);

/// Saves what a failed or dead agent left, and does with it what is chosen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RescueTask {
    /// Which one, or an issue of the tracker.
    pub task: Word,
    /// Also commit uncommitted changes.
    pub commit: bool,
    /// What to do; nothing is done without one.
    pub choice: Option<Rescue>,
    /// Answer when the new agent has begun.
    pub detach: bool,
    /// For an agent that goes on.
    pub how: AgentWish,
}

/// What is done with what was left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rescue {
    /// An agent continues in the same worktree.
    Continue,
    /// An agent begins again in a new worktree; the old one goes to the trash.
    Restart,
    /// All changes are written to a file.
    Patch(PathBuf),
    /// The worktree goes to the trash.
    Trash,
}

/// What was found, and what was done about it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Rescued {
    /// Nothing was asked for, or it is done already.
    Found(Box<Found>),
    /// An agent went on, and this came of it.
    Ended(Ended),
}

/// What is left of an attempt.
#[derive(Debug, Serialize)]
pub struct Found {
    /// What is known of it.
    pub rescue: Evidence,
    /// What was done about it, in sentences.
    pub done: Vec<String>,
    /// Whether somebody has to choose how to continue.
    #[serde(skip)]
    pub is_open: bool,
}

impl Operation for RescueTask {
    const NAME: &'static str = "rescue";
    type Output = Rescued;

    fn run(self, call: &Call<'_>) -> Result<Rescued, Failure> {
        let ground = call.ground()?;
        let task = ground.task(call, &self.task)?;
        let found = Agents::new(&ground.trees(call)?).diagnose(&task)?;
        self.refuse_running(&found)?;
        let evidence = gather(call, &ground, &found)?;
        let mut done = Vec::new();
        if self.commit {
            done.push(commit_left(call, &ground, &evidence)?);
        }
        call.tell(&ground.engine);
        let is_open = self.choice.is_none();
        match &self.choice {
            None => {}
            Some(Rescue::Patch(file)) => done = vec![write_patch(call, &ground, &evidence, file)?],
            Some(Rescue::Trash) => done = vec![to_trash(call, &ground, evidence.worktree()?)?],
            Some(Rescue::Continue) => {
                tell_saved(call, &evidence);
                let again = ResumeTask {
                    task: Word::from(&task).into(),
                    fresh: false,
                    detach: self.detach,
                    how: self.how,
                };
                return Ok(Rescued::Ended(again.run(call)?));
            }
            Some(Rescue::Restart) => {
                tell_saved(call, &evidence);
                let request = self.request(call, &ground, &found)?;
                let agent = restart(call, &ground, &found, &evidence, request, self.detach)?;
                return Ok(Rescued::Ended(Ended::worked(call, &ground, agent)?));
            }
        }
        Ok(Rescued::Found(Box::new(Found {
            rescue: evidence,
            done,
            is_open,
        })))
    }

    fn exit(rescued: &Rescued) -> u8 {
        match rescued {
            Rescued::Found(_) => exit::DONE,
            Rescued::Ended(ended) => ended.exit_code(),
        }
    }
}

impl RescueTask {
    /// A new agent for the driver and command of the last one, unless others are asked for.
    fn request(
        &self,
        call: &Call<'_>,
        ground: &Ground,
        found: &Resumption,
    ) -> Result<AgentRequest, Failure> {
        let mut how = self.how.clone();
        if how.driver.is_none() && how.command.is_empty() {
            let last = found.newest.as_ref();
            how.driver = last.map(|agent| agent.driver.clone());
            how.command = last.map(|agent| agent.command.clone()).unwrap_or_default();
        }
        how.request(call, ground)
    }

    /// Whoever works is left alone; of one that stalled the tree can be seen and saved.
    fn refuse_running(&self, found: &Resumption) -> Result<(), Failure> {
        let newest = found.newest.as_ref();
        let Some(agent) = newest.filter(|agent| !agent.status.is_over()) else {
            return Ok(());
        };
        let keeps = matches!(self.choice, None | Some(Rescue::Patch(_))) && !self.commit;
        if agent.status == AgentStatus::Stalled && keeps {
            return Ok(());
        }
        let message = format!("agent {} is running ({})", agent.id, agent.status);
        Err(
            Failure::new("agent_running", exit::BUSY, message).hint(format!(
                "weald agent stop {id}, or weald agent pulse {id}",
                id = agent.id
            )),
        )
    }
}

fn tell_saved(call: &Call<'_>, evidence: &Evidence) {
    if let Some(snapshot) = &evidence.snapshot {
        call.note(&format!(
            "uncommitted changes are saved in snapshot {}",
            snapshot.id
        ));
    }
}
