//! Starting an agent: whether it can be started as asked, then its claim and record.

use std::ffi::OsString;

pub use weald_control::agents::AgentRequest;
use weald_core::agent::{Agent, Stage};
use weald_core::id::TaskId;
use weald_core::session::ProcessIdentity;

use weald_control::machine::SystemClock;
use weald_core::store::Clock;

use super::AgentError;
use super::Agents;
use super::drivers::driver_for;

impl Agents<'_> {
    /// This process, as others can look it up; fails where /proc can't be read.
    pub fn identity(&self) -> Result<ProcessIdentity, AgentError> {
        self.trees.me().ok_or(AgentError::NoIdentity)
    }

    /// Errors when an agent can't be started as asked, before anything is claimed or made.
    pub fn require_driver(&self, request: &AgentRequest) -> Result<(), AgentError> {
        request.require_name()?;
        let command: Vec<OsString> = request.command.iter().map(OsString::from).collect();
        let driver = driver_for(self.trees.config, Some(&request.driver), &command)?;
        let known = &self.trees.host.environment;
        let variable = |wanted: &str| {
            let found = known.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        self.require_trusted(driver.as_ref(), &[])?;
        driver.require(&variable)?;
        match request.begin_at {
            Stage::Run => {
                let home = self.trees.host.home.as_deref();
                driver.require_login(home, &variable, SystemClock.now())?;
                self.require_visible(driver.program())?;
                self.require_protected(request)
            }
            // Nothing is started any more.
            Stage::Finish => Ok(()),
        }
    }

    /// Claims a task, or the next one that is ready, and records an agent for it. This process answers for the agent
    /// until a supervisor does.
    pub fn start_agent(
        &self,
        task: Option<&TaskId>,
        request: &AgentRequest,
    ) -> Result<Agent, AgentError> {
        let me = self.identity()?;
        Ok(self
            .trees
            .engine
            .start_agent(self.trees.actor(), me, task, request)?)
    }
}
