//! `weald config …`

use std::io::Write;

use clap::{Args, Subcommand};
use weald_app::Failure;
use weald_app::operations::configuration::{SetConfig, ShowConfig, UnsetConfig};

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Table};

/// Show and change configuration.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Config {
    Show(Show),
    Set(Set),
    Unset(Unset),
}

/// Show configuration values and their origins
///
/// Later sources override earlier ones: profile, weald.toml on the target, your file, the private file, $WEALD_*, --set.
#[derive(Args)]
pub struct Show {
    /// Only this key
    #[arg(value_name = "KEY", add = completion::keys())]
    key: Option<String>,
}

/// Set a key in this repository's private configuration
///
/// Separate list items with commas. A list replaces the one set here before.
#[derive(Args)]
pub struct Set {
    /// Key, for example landing.strategy
    #[arg(value_name = "KEY", add = completion::keys())]
    key: String,
    /// Value to set
    #[arg(allow_hyphen_values = true)]
    value: String,
}

/// Remove a key from the private configuration
#[derive(Args)]
pub struct Unset {
    /// Key to remove
    #[arg(value_name = "KEY", add = completion::keys())]
    key: String,
}

impl Config {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Show(Show { key }) => show(context, ShowConfig { key }),
            Self::Set(Set { key, value }) => {
                let answer = context.perform(SetConfig { key, value })?;
                let set = &answer.config;
                context
                    .ui
                    .show(&answer, |out| writeln!(out, "{} = {}", set.key, set.value))
            }
            Self::Unset(Unset { key }) => {
                let answer = context.perform(UnsetConfig { key })?;
                let unset = &answer.config;
                context.ui.show(&answer, |out| match unset.removed {
                    true => writeln!(out, "{} is no longer set here", unset.key),
                    false => writeln!(out, "{} was not set here", unset.key),
                })
            }
        }
    }
}

fn show(context: &Context<'_>, request: ShowConfig) -> Result<u8, Failure> {
    let answer = context.perform(request)?;
    context.ui.show(&answer, |out| {
        let mut table = Table::new(&["KEY", "ORIGIN", "VALUE"]);
        for one in &answer.config.values {
            table.row(vec![
                (one.key.clone(), ACCENT),
                (one.origin.clone(), DIM),
                (one.value.to_string(), Default::default()),
            ]);
        }
        table.print(out)
    })
}
