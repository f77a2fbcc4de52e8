//! weald: the command line.
//!
//! A face and nothing more: parse, call the engine, print. stdout is the answer, stderr the narration; `--json` prints
//! one object with `schema_version`. What any error looks like, and its exit code, is decided in `errors.rs`.

mod cli;
mod commands;
mod completion;
mod context;
mod environment;
mod errors;
mod exit;
mod ui;

use std::panic;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::cli::Cli;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{Ui, help};

fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    let parsed = help::with_groups(Cli::command()).try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let ui = Ui::new(cli.global.format(), cli.global.color);
    let ran = panic::catch_unwind(panic::AssertUnwindSafe(|| run(cli, &ui)));
    let code = match ran {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => ui.failure(&failure),
        Err(_) => ui.failure(&Failure::bug()),
    };
    ExitCode::from(code)
}

fn run(cli: Cli, ui: &Ui) -> Result<u8, Failure> {
    let context = Context::new(&cli.global, ui)?;
    cli.run(&context)
}

/// What clap says of the arguments: help and version go to stdout, mistakes to stderr or into JSON.
fn usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--json");
    if json && error.use_stderr() {
        let ui = Ui::new(ui::Format::Json, clap::ColorChoice::Never);
        return ExitCode::from(ui.failure(&Failure::usage(error)));
    }
    // Nothing is left to say if even this can't be printed.
    let _ = error.print();
    ExitCode::from(error.exit_code() as u8)
}
