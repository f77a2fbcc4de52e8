//! `weald supervise-agent`: the process that watches over one agent. Started by weald itself.
//!
//! A process of its own, not a thread of `weald work`: it leaves the terminal's session, so closing the terminal
//! changes nothing. It also does everything that follows from the end of the command, landing included.

use clap::Args;
use rustix::process::setsid;
use weald_app::Failure;
use weald_app::supervision::live;
use weald_core::agent::AgentId;

use crate::context::Context;

/// Supervise an agent (run by weald itself)
#[derive(Args)]
pub struct SuperviseAgent {
    /// The agent
    id: AgentId,
}

impl SuperviseAgent {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        // Out of the terminal's session: closing it changes nothing here. Whoever leads one already is out of it.
        let _ = setsid();
        context.cancel.catch();
        context.news.go_behind();
        live(context, self.id)
    }
}
