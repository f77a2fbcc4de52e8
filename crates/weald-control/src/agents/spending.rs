//! What agents used, over all of them.

use weald_core::TimeZone;
use weald_core::agent::Usage;
use weald_core::cost::{self, Spent};
use weald_core::store::{AgentFilter, StoreError};

use crate::engine::Engine;

impl Engine {
    /// What all agents used today, by the calendar of `zone`.
    pub fn used_today(&self, zone: &TimeZone) -> Result<Usage, StoreError> {
        self.look(|tx| {
            let today = tx.now().to_zoned(zone.clone()).date();
            let is_todays = |one: &Spent| one.hour.to_zoned(zone.clone()).date() == today;
            let agents = tx.agents(&AgentFilter::default())?;
            let spent = agents.iter().flat_map(|agent| &agent.spent);
            let todays = spent.filter(|one| is_todays(one)).map(|one| one.usage);
            Ok(todays.fold(Usage::default(), Usage::plus))
        })
    }

    /// What the agents of a task used themselves.
    pub fn used_on(&self, task: &weald_core::id::TaskId) -> Result<Usage, StoreError> {
        self.look(|tx| {
            let agents = tx.agents(&AgentFilter::on(task))?;
            Ok(agents
                .iter()
                .map(cost::own)
                .fold(Usage::default(), Usage::plus))
        })
    }
}
