//! `weald hook …`: what agents call at certain moments. Each kind of agent has its own contract.

mod broker_side;
mod claude;
mod codex;
mod contract;
mod conversation;
mod host_side;
mod side;
mod worktree;

use clap::Subcommand;

use weald_app::Failure;

use super::inside::Inside;
use crate::context::Context;

/// Answer hooks of Claude Code and Codex.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Hook {
    Claude(claude::Claude),
    Codex(codex::Codex),
}

impl Hook {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Claude(command) => command.run(context),
            Self::Codex(command) => command.run(context),
        }
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        match self {
            Self::Claude(command) => command.inside(inside),
            Self::Codex(command) => command.inside(inside),
        }
    }
}
