//! What an agent uses while it works: counted, written down every few seconds, and held against its budget.

use weald_core::TimeZone;
use weald_core::agent::Usage;
use weald_core::agent_rules::AgentInput;
use weald_core::cost::{self, Meter};
use weald_core::store::{AgentFilter, Clock};

use super::supervising::{Watch, Watched};
use weald_control::machine::SystemClock;

impl Watch<'_, '_> {
    /// Counts from what the agent's conversation used before.
    pub(super) fn begin_counting(&mut self) {
        let agents = match &self.agent.conversation {
            Some(_) => {
                let all = self.trees.engine.agents(&AgentFilter::default());
                self.tolerate(all).unwrap_or_default()
            }
            None => Vec::new(),
        };
        let conversation = self.agent.conversation.as_deref().unwrap_or_default();
        let before = cost::used_in(conversation, &agents);
        self.meter = Meter::new(self.agent.spent.clone(), before);
    }

    /// A message of the model.
    pub(super) fn count_message(&mut self, id: &str, model: &str, usage: Usage) {
        self.meter.message(id, model, usage, SystemClock.now());
    }

    /// A total of the conversation.
    pub(super) fn count_total(&mut self, model: &str, usage: Usage) {
        let own = self.agent.model.as_deref().unwrap_or(&self.agent.driver);
        let model = if model.is_empty() { own } else { model };
        self.meter.total(model, usage, SystemClock.now());
    }

    /// Writes down what is new.
    pub(super) fn write_spent(&mut self) {
        let (spent, is_partial) = (self.meter.spent(), self.meter.is_partial());
        if spent != self.agent.spent || is_partial != self.agent.spent_is_partial {
            self.decide(AgentInput::Spent {
                spent: spent.to_vec(),
                is_partial,
            });
        }
    }

    /// Ends the run when its budget, or that of the day, is used up.
    pub(super) fn over_budget(&mut self) -> Option<Watched> {
        let config = self.trees.config;
        let own = cost::sum(self.meter.spent());
        if let Some(budget) = config.agent_budget
            && let Some(used) = budget.exceeded_by(&own)
        {
            return Some(self.stopped_at("agent.budget", &used, budget));
        }
        let budget = config.agent_budget_day?;
        let today = self.trees.engine.used_today(&TimeZone::system());
        let used = budget.exceeded_by(&self.tolerate(today)?)?;
        Some(self.stopped_at("agent.budget_day", &used, budget))
    }

    fn stopped_at(&self, key: &str, used: &str, budget: cost::Budget) -> Watched {
        let whose = match key {
            "agent.budget" => format!("{} used", self.agent.id),
            _ => "today's agents used".to_owned(),
        };
        Watched::OverBudget {
            why: format!(
                "{whose} {used}, and {key} is {budget}; to raise it: weald config set {key} BUDGET"
            ),
        }
    }
}
