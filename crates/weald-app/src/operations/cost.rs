//! What agents used: tokens, and money where their streams report it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weald_core::agent::{Agent, AgentId, Usage};
use weald_core::cost::Spent;
use weald_core::store::AgentFilter;
use weald_core::{TimeZone, Timestamp};

use super::Operation;
use crate::{Call, Failure};

entries!(ShowCost);

/// By what the use of agents is summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBy {
    /// Each agent alone.
    #[default]
    Agent,
    /// All agents of a task.
    Task,
    /// A day, in UTC or where the user is.
    Day,
    /// A model, as its provider calls it.
    Model,
}

/// Sums up what agents used.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowCost {
    /// One row for each of these.
    pub by: CostBy,
    /// Only what was used from then on, to the hour.
    pub since: Option<Timestamp>,
    /// Whether days are those of the user's time zone instead of UTC.
    pub local_days: bool,
}

/// What agents used, in rows.
#[derive(Debug, Serialize)]
pub struct Costs {
    /// What each row is about.
    pub by: CostBy,
    /// In the order of what they are about.
    pub costs: Vec<Cost>,
    /// All rows together.
    pub total: Cost,
}

/// What was used for one thing.
#[derive(Debug, Default, Serialize)]
pub struct Cost {
    /// The agent, task, day or model.
    pub name: String,
    /// The agents that used it, in order.
    pub agents: Vec<AgentId>,
    /// Tokens, and the money that was reported.
    #[serde(flatten)]
    pub usage: Usage,
    /// Tokens for which no money was reported.
    pub tokens_without_cost: u64,
    /// Whether an agent was cut off, so that not all of its output and money is known.
    pub partial: bool,
    /// The driver of an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

impl Cost {
    fn add(&mut self, agent: &Agent, spent: &Spent) {
        self.usage = self.usage.plus(spent.usage);
        if spent.usage.cost_usd.is_none() {
            let tokens = spent.usage.tokens();
            self.tokens_without_cost = self.tokens_without_cost.saturating_add(tokens);
        }
        self.partial |= agent.spent_is_partial;
        if self.agents.last() != Some(&agent.id) {
            self.agents.push(agent.id);
        }
    }
}

impl Operation for ShowCost {
    const NAME: &'static str = "cost";
    const READS: bool = true;
    type Output = Costs;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Costs, Failure> {
        let agents = call.engine()?.agents(&AgentFilter::default())?;
        let zone = match self.local_days {
            true => TimeZone::system(),
            false => TimeZone::UTC,
        };
        let mut rows: BTreeMap<(u64, String), Cost> = BTreeMap::new();
        let mut total = Cost::default();
        for agent in &agents {
            let is_asked = |spent: &&Spent| {
                self.since
                    .is_none_or(|since| spent.hour.as_second() + 3_600 > since.as_second())
            };
            for spent in agent.spent.iter().filter(is_asked) {
                // Numbers are in the order of numbers.
                let (number, name) = match self.by {
                    CostBy::Agent => (agent.id.0, agent.id.to_string()),
                    CostBy::Task => {
                        let task = agent.task.to_string();
                        (task.parse().unwrap_or(u64::MAX), task)
                    }
                    CostBy::Day => {
                        let day = spent.hour.to_zoned(zone.clone()).date();
                        (0, day.to_string())
                    }
                    CostBy::Model => (0, spent.model.clone()),
                };
                let row = rows.entry((number, name.clone())).or_default();
                row.name = name;
                row.driver = (self.by == CostBy::Agent).then(|| agent.driver.clone());
                row.add(agent, spent);
                total.add(agent, spent);
            }
        }
        let unique: BTreeSet<_> = total.agents.drain(..).collect();
        total.agents.extend(unique);
        Ok(Costs {
            by: self.by,
            costs: rows.into_values().collect(),
            total,
        })
    }
}
