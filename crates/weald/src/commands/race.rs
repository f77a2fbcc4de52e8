//! `weald race`

mod told;

use clap::{Args, Subcommand};
use weald_app::supervision::{drop_race, id_of, pick_entry, start_race};
use weald_app::tracker::known;
use weald_app::{AgentRequest, Agents, Failure, Ground, exit};
use weald_core::agent::{Goal, RACE};
use weald_core::id::TaskId;
use weald_core::races;
use weald_sandbox::interrupted;

use super::work;
use crate::completion;
use crate::context::Context;
use crate::following::follow;

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
            (Some(RaceCommand::Drop { task }), _) => told::dropped(
                context,
                &drop_race(context, &ground, &known(context, &ground, task))?,
            ),
            (None, Some(task)) => {
                let task = known(context, &ground, &id_of(task)?);
                self.start(context, &ground, &task)
            }
            (None, None) => Err(Failure::bug()),
        }
    }

    fn start(&self, context: &Context<'_>, ground: &Ground, id: &TaskId) -> Result<u8, Failure> {
        ground.warn_of_settings(context);
        let requests = self.requests(context, ground)?;
        start_race(context, ground, id, &requests, self.detach)?;
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

fn pick(
    context: &Context<'_>,
    ground: &Ground,
    id: &TaskId,
    name: &str,
    report: Option<&String>,
) -> Result<u8, Failure> {
    let shown = |ground: &Ground, id| follow(context, ground, id);
    let (agent, removed) = pick_entry(context, ground, id, name, report, &shown)?;
    if let Some(removed) = removed {
        told::tell_removed(context, &removed);
    }
    work::answer(context, ground, &agent)
}
