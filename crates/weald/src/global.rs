//! Flags that every command has.

use std::path::PathBuf;

use clap::{Args, ColorChoice};

use crate::ui::Format;

/// The heading of flags that every command has.
const GLOBAL: &str = "Global options";

/// Flags of every command.
#[derive(Args)]
pub struct GlobalArgs {
    /// Print one JSON object for programs
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,
    /// Print no progress
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub quiet: bool,
    /// When to colour the output
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Run as if started in DIR
    #[arg(short = 'C', long = "directory", global = true, help_heading = GLOBAL, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Override a configuration key for this command
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Exit when this parent process exits
    #[arg(long, global = true, hide = true, value_name = "PID")]
    pub ends_with: Option<u32>,
}

impl GlobalArgs {
    /// For whom to print.
    pub fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else {
            Format::Plain
        }
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
