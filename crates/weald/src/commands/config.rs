//! `weald config …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::configuration::{
    GetConfig, KeyValue, SetConfig, ShowConfig, UnsetConfig,
};
use weald_core::config::Value;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, HEADING, Out, Table, clean, paint, wrapped};

/// Show, explain and change settings
///
/// Without a command, shows the settings that differ from their defaults.
#[derive(Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: Option<Config>,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Config {
    Get(Get),
    List(List),
    Show(Show),
    Set(Set),
    Unset(Unset),
}

/// Print the value of a setting
///
/// A list is printed with one item per line. --json adds where the value comes from.
#[derive(Args)]
struct Get {
    /// Setting to print
    #[arg(value_name = "KEY", add = completion::keys())]
    key: String,
}

/// Explain settings, section by section
#[derive(Args)]
struct List {
    /// Only settings whose names begin with this
    #[arg(value_name = "PREFIX", add = completion::keys())]
    prefix: Option<String>,
}

/// Show configuration values and their origins
///
/// Later sources override earlier ones: profile, weald.toml on the target, your file, the private file, $WEALD_*, --set.
#[derive(Args)]
struct Show {
    /// Only this key
    #[arg(value_name = "KEY", add = completion::keys())]
    key: Option<String>,
}

/// Set a key in this repository's private configuration
///
/// Separate list items with commas. A list replaces the one set here before.
#[derive(Args)]
struct Set {
    /// Key, for example landing.strategy
    #[arg(value_name = "KEY", add = completion::keys())]
    key: String,
    /// Value to set
    #[arg(allow_hyphen_values = true)]
    value: String,
    /// Set it in your own file, for all repositories
    #[arg(long)]
    global: bool,
}

/// Remove a key from the private configuration
#[derive(Args)]
struct Unset {
    /// Key to remove
    #[arg(value_name = "KEY", add = completion::keys())]
    key: String,
    /// Remove it from your own file
    #[arg(long)]
    global: bool,
}

impl ConfigArgs {
    /// Whether it changes nothing.
    pub fn only_reads(&self) -> bool {
        match &self.command {
            None | Some(Config::Show(_) | Config::List(_)) => ShowConfig::READS,
            Some(Config::Get(_)) => GetConfig::READS,
            Some(Config::Set(_) | Config::Unset(_)) => false,
        }
    }

    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self.command {
            None => changed(context),
            Some(Config::Get(command)) => command.run(context),
            Some(Config::List(command)) => command.run(context),
            Some(Config::Show(command)) => command.run(context),
            Some(Config::Set(command)) => command.run(context),
            Some(Config::Unset(command)) => command.run(context),
        }
    }
}

fn changed(context: &Context<'_>) -> Result<u8, Failure> {
    let answer = context.perform(ShowConfig {
        changed: true,
        ..ShowConfig::default()
    })?;
    context.ui.show(&answer, |out| {
        if answer.config.values.is_empty() {
            writeln!(out, "every setting has its default value")?;
        } else {
            print_table(out, &answer.config.values)?;
        }
        let more = "(to see every setting: weald config list)";
        writeln!(out, "{}", paint(DIM, more))
    })
}

fn print_table(out: &mut Out, values: &[KeyValue]) -> io::Result<()> {
    let mut table = Table::new(&["KEY", "ORIGIN", "VALUE"]);
    for one in values {
        table.row(vec![
            (one.key.clone(), ACCENT),
            (one.origin.clone(), DIM),
            (one.value.to_string(), Default::default()),
        ]);
    }
    table.print(out)
}

impl Get {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(GetConfig { key: self.key })?;
        context.ui.show(&answer, |out| match &answer.config.value {
            Value::List(items) => items
                .iter()
                .try_for_each(|item| writeln!(out, "{}", clean(item))),
            one => writeln!(out, "{}", clean(&one.to_string())),
        })
    }
}

impl List {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ShowConfig {
            prefix: self.prefix,
            ..ShowConfig::default()
        })?;
        context
            .ui
            .show(&answer, |out| explain(out, &answer.config.values))
    }
}

/// The part of a key's name before the first dot.
fn section(value: &KeyValue) -> &str {
    value
        .key
        .split_once('.')
        .map_or("general", |(section, _)| section)
}

fn explain(out: &mut Out, values: &[KeyValue]) -> io::Result<()> {
    let mut sections: Vec<_> = values.iter().map(section).collect();
    let mut known = Vec::new();
    sections.retain(|name| {
        !known.contains(name) && {
            known.push(*name);
            true
        }
    });
    for (at, name) in sections.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", paint(HEADING, name))?;
        for one in values.iter().filter(|one| section(one) == *name) {
            let key = paint(ACCENT, &one.key);
            let value = clean(&one.value.to_string());
            writeln!(out, "  {}", format!("{key} = {value}").trim_end())?;
            writeln!(out, "      {}", wrapped(&one.about, 6))?;
            if !one.is_default() {
                let origin = format!("set in {}; default: {}", one.origin, one.default);
                writeln!(out, "      {}", paint(DIM, wrapped(origin.trim_end(), 6)))?;
            }
        }
    }
    Ok(())
}

impl Show {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ShowConfig {
            key: self.key,
            ..ShowConfig::default()
        })?;
        context
            .ui
            .show(&answer, |out| print_table(out, &answer.config.values))
    }
}

impl Set {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(SetConfig {
            key: self.key,
            value: self.value,
            global: self.global,
        })?;
        let set = &answer.config;
        context
            .ui
            .show(&answer, |out| writeln!(out, "{} = {}", set.key, set.value))
    }
}

impl Unset {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(UnsetConfig {
            key: self.key,
            global: self.global,
        })?;
        let unset = &answer.config;
        context.ui.show(&answer, |out| match unset.removed {
            true => writeln!(out, "{} is no longer set here", unset.key),
            false => writeln!(out, "{} was not set here", unset.key),
        })
    }
}
