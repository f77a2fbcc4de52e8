//! `weald supervise-agent`: the process that watches over one agent. Started by weald itself.
//!
//! A process of its own, not a thread of `weald work`: it leaves the terminal's session, so closing the terminal
//! changes nothing. It also does everything that follows from the end of the command, landing included.

use clap::Args;
use rustix::process::setsid;
use weald_app::Failure;
use weald_app::supervision::live;
use weald_core::agent::AgentId;
use weald_terminal::Size;

use crate::context::Context;

/// Supervise an agent (run by weald itself)
#[derive(Args)]
pub struct SuperviseAgent {
    /// The agent
    id: AgentId,
    /// How large the terminal of an interactive agent is at first
    #[arg(long, value_name = "COLUMNSxROWS", value_parser = size)]
    terminal: Option<Size>,
}

fn size(text: &str) -> Result<Size, String> {
    let parts = text.split_once('x');
    let size = parts.and_then(|(columns, rows)| {
        Some(Size {
            columns: columns.parse().ok()?,
            rows: rows.parse().ok()?,
        })
    });
    size.ok_or_else(|| "a size is written as 80x24".to_owned())
}

impl SuperviseAgent {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        // Out of the terminal's session: closing it changes nothing here. Whoever leads one already is out of it.
        let _ = setsid();
        context.cancel.catch();
        context.news.go_behind();
        live(context, self.id, self.terminal)
    }
}
