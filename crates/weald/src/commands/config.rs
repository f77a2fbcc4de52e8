//! `weald config …`

mod set;
mod show;
mod unset;

use clap::Subcommand;

use weald_app::Failure;

use crate::context::Context;

/// Show and change configuration.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Config {
    Show(show::Show),
    Set(set::Set),
    Unset(unset::Unset),
}

impl Config {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Show(command) => command.run(context),
            Self::Set(command) => command.run(context),
            Self::Unset(command) => command.run(context),
        }
    }
}
