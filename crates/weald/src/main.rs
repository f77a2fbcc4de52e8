//! weald: the command line.
//!
//! A face and nothing more: parse, call the engine, print. stdout is the answer, stderr the narration; `--json` prints
//! one object with `schema_version`. What any error looks like, and its exit code, is decided in `errors.rs`.

mod agents;
mod cli;
mod commands;
mod completion;
mod context;
mod desk;
mod environment;
mod errors;
mod exit;
mod foreground;
mod ui;

use std::panic;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::cli::Cli;
use crate::commands::inside;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{Format, Ui, help};

fn main() -> ExitCode {
    weald_sandbox::run_if_init();
    weald_sandbox::escape::run_if_attempt();
    weald_engine::run_if_inside();
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    panic::catch_unwind(answer).unwrap_or_else(|_| {
        let format = if asks_for_json() {
            Format::Json
        } else {
            Format::Plain
        };
        ExitCode::from(Ui::new(format, clap::ColorChoice::Auto).failure(&Failure::bug()))
    })
}

fn answer() -> ExitCode {
    let parsed = help::with_groups(Cli::command()).try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let ui = Ui::new(cli.global.format(), cli.global.color);
    let code = Context::new(&cli.global, &ui).and_then(|context| inside::run(cli, &context));
    ExitCode::from(code.unwrap_or_else(|failure| ui.failure(&failure)))
}

/// Whether a program reads, for the cases in which the arguments were not understood.
fn asks_for_json() -> bool {
    std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--json")
}

/// What clap says of the arguments: help and version go to stdout, mistakes to stderr or into JSON.
fn usage(error: &clap::Error) -> ExitCode {
    if asks_for_json() && error.use_stderr() {
        let ui = Ui::new(Format::Json, clap::ColorChoice::Never);
        return ExitCode::from(ui.failure(&Failure::usage(error)));
    }
    // Nothing is left to say if even this can't be printed.
    let _ = error.print();
    ExitCode::from(error.exit_code() as u8)
}
