//! Races: several agents on one task, of which one is picked.

use serde::{Deserialize, Serialize};
use weald_core::agent::{Goal, RACE};
use weald_core::id::TaskId;
use weald_core::meant::Word;
use weald_core::name::TreeName;
use weald_core::races;
use weald_core::task::Task;

use super::Operation;
use super::works::Worked;
use crate::supervision::{drop_race, find, pick_entry, start_race, typed_agent};
use crate::{AgentRequest, Agents, Call, EntryView, Failure, Ground, Removed, exit};

entries!(StartRace, ShowRace, PickEntry, DropRace);

/// A race with its entries, side by side.
#[derive(Debug, Serialize)]
pub struct RaceView {
    /// Its entries.
    pub race: RaceEntries,
    /// What they all work on.
    pub task: Task,
    /// What asked it to end early, if anything did.
    #[serde(skip)]
    signal: Option<u8>,
}

/// The entries of a race.
#[derive(Debug, Serialize)]
pub struct RaceEntries {
    /// What they all work on.
    pub task: TaskId,
    /// One for each agent that was started.
    pub entries: Vec<EntryView>,
}

impl RaceView {
    fn of(call: &Call<'_>, ground: &Ground, id: &TaskId) -> Result<Self, Failure> {
        let (task, entries) = Agents::new(&ground.trees(call)?).race(id)?;
        call.tell(&ground.engine);
        Ok(Self {
            race: RaceEntries {
                task: task.id.clone(),
                entries,
            },
            task,
            signal: call.cancel.asked(),
        })
    }
}

/// Gives several agents the same task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRace {
    /// Its id, or that of an issue of the tracker.
    pub task: String,
    /// How many; as many as there are drivers, and two at least, unless given.
    pub count: Option<u8>,
    /// One an entry, from the first again if there are fewer.
    pub drivers: Vec<String>,
    /// For all of them; as their drivers choose unless given.
    pub model: Option<String>,
    /// What every entry runs instead of an agent.
    pub command: Vec<String>,
    /// Answer when all have begun.
    pub detach: bool,
}

impl Operation for StartRace {
    const NAME: &'static str = "race_start";
    type Output = RaceView;

    fn validate(&self) -> Result<(), Failure> {
        match self.count {
            Some(count) if !(2..=races::MOST).contains(&usize::from(count)) => {
                let message = format!("a race has 2 to {} entries, not {count}", races::MOST);
                Err(Failure::new("usage", exit::USAGE, message))
            }
            _ => Ok(()),
        }
    }

    fn run(self, call: &Call<'_>) -> Result<RaceView, Failure> {
        let ground = call.landing_ground()?;
        let id = find(call, &ground, &self.task)?;
        ground.warn_of_settings(call);
        let requests = self.requests(call, &ground)?;
        start_race(call, &ground, &id, &requests, self.detach)?;
        RaceView::of(call, &ground, &id)
    }

    fn exit(race: &RaceView) -> u8 {
        race.signal.map_or(exit::DONE, |signal| 128 + signal)
    }
}

impl StartRace {
    /// What each entry is; a driver that nobody knows is refused before anything is begun.
    fn requests(&self, call: &Call<'_>, ground: &Ground) -> Result<Vec<AgentRequest>, Failure> {
        let (config, trees) = (ground.config(), ground.trees(call)?);
        let mut command = self.command.clone();
        let drivers = match (self.drivers.is_empty(), self.command.is_empty()) {
            (false, false) => {
                let message = "a race has drivers or a command, not both";
                return Err(Failure::new("usage", exit::USAGE, message));
            }
            (false, true) => self.drivers.clone(),
            (true, false) => {
                let (driver, words) = typed_agent(call, ground, &self.command)?;
                command = words;
                vec![driver]
            }
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
                command: command.clone(),
                model: self.model.clone().or_else(|| model.clone()),
                ..AgentRequest::new(driver, Goal::Stay)
            };
            Agents::new(&trees).require_driver(&request)?;
            requests.push(request);
        }
        Ok(requests)
    }
}

/// Compares the entries of a race.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowRace {
    /// What the race is about.
    pub task: Word,
}

impl Operation for ShowRace {
    const NAME: &'static str = "race_show";
    type Output = RaceView;

    fn run(self, call: &Call<'_>) -> Result<RaceView, Failure> {
        let ground = call.landing_ground()?;
        RaceView::of(call, &ground, &ground.task(call, &self.task)?)
    }
}

/// Lands one entry; the others go to the trash.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PickEntry {
    /// What the race is about.
    pub task: Word,
    /// Its letter, its worktree or its agent.
    pub entry: String,
    /// What is recorded if its agent reported nothing.
    pub report: Option<String>,
}

impl Operation for PickEntry {
    const NAME: &'static str = "race_pick";
    type Output = Worked;

    fn run(self, call: &Call<'_>) -> Result<Worked, Failure> {
        let ground = call.landing_ground()?;
        let id = ground.task(call, &self.task)?;
        let report = self.report.as_deref();
        // A letter is an entry's, whatever a worktree is called.
        let tree = match self.entry.len() {
            1 => None,
            _ => ground.tree(call, &self.entry).ok(),
        };
        let entry = tree.map_or(self.entry, |tree| tree.name.to_string());
        let (agent, removed) = pick_entry(call, &ground, &id, &entry, report)?;
        for one in removed.iter().flatten() {
            let (name, id) = (&one.tree.name, one.tree.id);
            call.note(&format!("{name} is in the trash: weald restore {id}"));
        }
        Worked::of(call, &ground, agent)
    }

    fn exit(worked: &Worked) -> u8 {
        worked.exit_code()
    }
}

/// Ends a race without a winner.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropRace {
    /// What the race is about.
    pub task: Word,
}

/// A race that ended without a winner.
#[derive(Debug, Serialize)]
pub struct DroppedRace {
    /// What became of its entries.
    pub race: DroppedEntries,
    /// The entry that was picked before, and stays.
    #[serde(skip)]
    pub picked: Option<TreeName>,
}

/// The entries that are gone.
#[derive(Debug, Serialize)]
pub struct DroppedEntries {
    /// What they worked on; it is free again.
    pub task: TaskId,
    /// Their worktrees, in the trash.
    pub dropped: Vec<Removed>,
}

impl Operation for DropRace {
    const NAME: &'static str = "race_drop";
    type Output = DroppedRace;

    fn run(self, call: &Call<'_>) -> Result<DroppedRace, Failure> {
        let ground = call.landing_ground()?;
        let task = ground.task(call, &self.task)?;
        let (dropped, picked) = drop_race(call, &ground, &task)?;
        Ok(DroppedRace {
            race: DroppedEntries { task, dropped },
            picked,
        })
    }
}
