//! `weald config …`

mod set;
mod show;
mod unset;

use clap::Subcommand;

use crate::context::Context;
use crate::errors::Failure;

/// Show and set configuration, with origins.
#[derive(Subcommand)]
pub enum Config {
    /// Print every value and where it comes from
    Show(show::Show),
    /// Set a key in the private file of this repository
    Set(set::Set),
    /// Take a key out of the private file
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
