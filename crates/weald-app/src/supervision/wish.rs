//! How an agent is to work, as somebody asks for it.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use weald_core::agent::Goal;
use weald_core::name::SessionName;

use crate::agents::drivers::{Meant, driver_for};
use crate::{AgentRequest, Agents, Call, Failure, Ground};

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
    /// What a person wants changed about the work so far.
    pub feedback: Option<String>,
    /// How often it is retried automatically; as configured unless given.
    pub retries: Option<u32>,
    /// What to run, or further arguments for the driver.
    pub command: Vec<String>,
    /// In its own interface, on a terminal that people attach to. Nothing lands by itself then.
    #[serde(default)]
    pub interactive: bool,
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
        words.extend(self.retries.map(|retries| format!("--retries={retries}")));
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
    pub fn request(&self, call: &Call<'_>, ground: &Ground) -> Result<AgentRequest, Failure> {
        let config = ground.config();
        let goal = match self.land.unwrap_or(config.work_land) && !self.interactive {
            true => Goal::Land,
            false => Goal::Finish,
        };
        let (driver, command) = match (&self.driver, &self.command[..]) {
            (Some(driver), words) => (driver.clone(), words.to_vec()),
            (None, []) => (config.agent_driver.to_owned(), Vec::new()),
            (None, words) => typed_agent(call, ground, words)?,
        };
        let words: Vec<_> = command.iter().map(OsString::from).collect();
        let made = driver_for(config, Some(&driver), &words).ok();
        let typed = made.and_then(|driver| driver.typed_model().map(str::to_owned));
        let model = Some(config.agent_model.to_owned()).filter(|model| !model.is_empty());
        Ok(AgentRequest {
            session: self.name.clone(),
            brief: self.brief(),
            feedback: self.feedback.clone(),
            retries: self.retries,
            command,
            interactive: self.interactive,
            model: typed.or_else(|| self.model.clone()).or(model),
            ..AgentRequest::new(driver, goal)
        })
    }
}

/// The driver and its words that typed words mean: an agent by its program's name, else a plain command.
pub fn typed_agent(
    call: &Call<'_>,
    ground: &Ground,
    words: &[String],
) -> Result<(String, Vec<String>), Failure> {
    let command: Vec<_> = words.iter().map(OsString::from).collect();
    match Agents::new(&ground.trees(call)?).meant_by(&command)? {
        // Its name alone says nothing more.
        Meant::Agent(driver) if words == [driver] => Ok((driver.to_owned(), Vec::new())),
        Meant::Agent(driver) => Ok((driver.to_owned(), words.to_vec())),
        Meant::Command(note) => {
            if let Some(note) = note {
                call.note(&note);
            }
            Ok(("command".to_owned(), words.to_vec()))
        }
    }
}
