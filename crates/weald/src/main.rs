//! weald: the command line.
//!
//! A face and nothing more: parse, call the engine, print. stdout is the answer, stderr the narration; `--json` prints
//! one object with `schema_version`. What any error looks like, and its exit code, is decided in weald-app's `failure.rs`.

mod attaching;
mod cli;
mod commands;
mod completion;
mod context;
mod following;
mod global;
mod ui;

use std::panic;
use std::process::ExitCode;

use clap::CommandFactory;

use weald_app::{Failure, exit, tracker};

use crate::cli::{Cli, parsing};
use crate::commands::inside;
use crate::context::{Context, app_of};
use crate::ui::{Format, Ui};

fn main() -> ExitCode {
    weald_sandbox::run_if_init();
    weald_escape::run_if_attempt();
    weald_app::run_if_inside();
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
    let cli = match parsing::parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    if let Some(parent) = cli.global.ends_with
        && !weald_sandbox::end_with_parent(parent)
    {
        return ExitCode::from(exit::NOT_RUN);
    }
    let ui = Ui::new(cli.global.format(), cli.global.color).quiet(cli.global.quiet);
    let (is_hook, only_reads) = (cli.is_hook(), cli.only_reads());
    let code = app_of(&cli.global).and_then(|app| {
        let app = app.reading(only_reads);
        let context = Context::new(&app, &ui);
        let code = inside::run(cli, &context);
        tracker::at_end(&context);
        code
    });
    ExitCode::from(code.unwrap_or_else(|failure| match ui.failure(&failure) {
        _ if is_hook => exit::REFUSED,
        code => code,
    }))
}

/// Whether arguments that were not understood are meant for a hook. For those who call hooks, the code of a mistake is a
/// decision: it stops the agent.
fn asks_for_hook() -> bool {
    let understood = Cli::command().ignore_errors(true).try_get_matches();
    let named = understood.ok().and_then(|matches| {
        let name = matches.subcommand_name()?;
        Some(name == "hook")
    });
    named.unwrap_or_else(|| {
        let words = std::env::args_os().skip(1);
        let mut words = words.filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
        words.next().is_some_and(|word| word == "hook")
    })
}

/// Whether a program reads, for the cases in which the arguments were not understood.
fn asks_for_json() -> bool {
    std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--json")
}

/// What clap says of the arguments: help and version go to stdout, mistakes to stderr or into JSON.
fn usage(error: &clap::Error) -> ExitCode {
    let is_hook = error.use_stderr() && asks_for_hook();
    if asks_for_json() && error.use_stderr() && !is_hook {
        let ui = Ui::new(Format::Json, clap::ColorChoice::Never);
        return ExitCode::from(ui.failure(&parsing::failure(error)));
    }
    // Nothing is left to say if even this can't be printed.
    let _ = error.print();
    match is_hook {
        true => ExitCode::from(exit::REFUSED),
        false => ExitCode::from(error.exit_code() as u8),
    }
}
