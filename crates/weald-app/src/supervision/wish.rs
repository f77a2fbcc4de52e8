//! How an agent is to work, as somebody asks for it.

use serde::{Deserialize, Serialize};
use weald_core::agent::Goal;
use weald_core::name::SessionName;

use crate::agents::drivers::has_driver;
use crate::{AgentRequest, Ground};

/// What is not given is as configured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentWish {
    /// Whether its work lands.
    pub land: Option<bool>,
    /// As the driver chooses unless given.
    pub model: Option<String>,
    /// As configured unless given.
    pub driver: Option<String>,
    /// The session that it works under; its id unless given.
    pub name: Option<SessionName>,
    /// The part that it plays; it is told with the task.
    pub role: Option<String>,
    /// Standing instructions.
    pub prompt: Option<String>,
    /// What to run, or further arguments for the driver.
    pub command: Vec<String>,
}

impl AgentWish {
    /// As words of a command line, under a name.
    pub(super) fn words(&self, name: &SessionName) -> Vec<String> {
        let given = |flag: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("--{flag}={value}"))
        };
        let land = self.land.map(|lands| match lands {
            true => "--land".to_owned(),
            false => "--no-land".to_owned(),
        });
        let mut words = vec![format!("--name={name}")];
        words.extend(land);
        words.extend(given("model", &self.model));
        words.extend(given("driver", &self.driver));
        words.extend(given("role", &self.role));
        words.extend(given("prompt", &self.prompt));
        if !self.command.is_empty() {
            words.push("--".to_owned());
            words.extend(self.command.clone());
        }
        words
    }

    /// What it is told about itself.
    fn brief(&self) -> Option<String> {
        let role = self.role.as_ref().map(|role| format!("Your role: {role}."));
        let parts: Vec<_> = role.into_iter().chain(self.prompt.clone()).collect();
        Some(parts.join("\n\n")).filter(|brief| !brief.trim().is_empty())
    }

    /// With what is configured for the rest.
    pub fn request(&self, ground: &Ground) -> AgentRequest {
        let config = ground.config();
        let goal = match self.land.unwrap_or(config.work_land) {
            true => Goal::Land,
            false => Goal::Finish,
        };
        let mut command = self.command.clone();
        let driver = match (&self.driver, &command[..]) {
            (Some(driver), _) => driver.clone(),
            (None, []) => config.agent_driver.to_owned(),
            // Such a word alone means the agent, not its program without a prompt.
            (None, [agent]) if has_driver(agent) => command.remove(0),
            (None, _) => "command".to_owned(),
        };
        let model = config.agent_model.to_owned();
        AgentRequest {
            session: self.name.clone(),
            brief: self.brief(),
            command,
            model: self
                .model
                .clone()
                .or(Some(model).filter(|model| !model.is_empty())),
            ..AgentRequest::new(driver, goal)
        }
    }
}
