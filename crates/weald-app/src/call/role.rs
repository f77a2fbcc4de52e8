//! Who calls, to others: an agent or a person, a lead or a teammate.

use crate::{Place, SystemProcesses, agent_above, agent_around};
use weald_core::role::Role;
use weald_store::DATABASE_FILE;

use crate::Call;
use crate::Failure;

/// The variable by which a command knows that a tool of MCP asks, and for whom.
pub const MCP_MARK: &str = "WEALD_MCP";

impl Call<'_> {
    /// The part that the caller plays: what `weald mcp` was started for; what is no tool's may do what the rules allow.
    pub fn role(&self) -> Role {
        match self.environment.get(MCP_MARK).as_deref() {
            Some("teammate" | "confined") => Role::Teammate,
            _ => Role::Lead,
        }
    }

    /// Refuses an agent what only a person may ask for.
    pub fn refuse_agent(&self, what: &str) -> Result<(), Failure> {
        match agent_above(&self.engine()?, |name| self.environment.get(name))? {
            None => Ok(()),
            Some(why) => Err(Failure::agent_asks(what, &why)),
        }
    }

    /// The same where no repository has to be; nothing is made in one.
    pub fn refuse_agent_anywhere(&self, what: &str) -> Result<(), Failure> {
        let known = |place: &Place| place.private().join(DATABASE_FILE).exists();
        if self.place().is_ok_and(|place| known(&place)) {
            return self.refuse_agent(what);
        }
        self.refuse_agent_around(what)
    }

    /// The same by what is around the caller alone, where no records can be asked.
    pub(crate) fn refuse_agent_around(&self, what: &str) -> Result<(), Failure> {
        match agent_around(&SystemProcesses, |name| self.environment.get(name)) {
            None => Ok(()),
            Some(why) => Err(Failure::agent_asks(what, &why)),
        }
    }
}
