//! Commands that need no more than the store, run in the process of `weald mcp`: no process is started for them.
//!
//! It is the command itself that runs, with its own arguments, for the same caller and under the same rules. Only what it
//! prints is kept instead. A command that needs git, files of a worktree or a sandbox gets a process of its own.

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;

use weald_app::{Environment, Failure, tracker};
use weald_server::mcp::{Asked, Printed};

use crate::cli::parsing;
use crate::commands::inside;
use crate::context::Context;
use crate::ui::{Kept, Ui};

/// Where commands run, and with which settings.
pub struct InProcess {
    environment: Environment,
    directory: PathBuf,
    settings: Vec<String>,
}

impl InProcess {
    /// As the command of this context.
    pub fn of(context: &Context<'_>) -> Self {
        Self {
            environment: context.environment.clone(),
            directory: context.directory().clone(),
            settings: context.settings(),
        }
    }

    /// Runs a command; `None` if it needs more than the store, or is no command.
    pub fn run(&self, asked: &Asked) -> Option<Printed> {
        let words = ["weald", "--json"].into_iter().map(OsString::from);
        let given = self.settings.iter().chain(&asked.words);
        let words = words.chain(given.map(OsString::from)).collect();
        let cli = parsing::parse_words(words).ok()?;
        if !cli.needs_only_the_store() {
            return None;
        }
        let mut environment = self.environment.clone();
        for (name, value) in &asked.variables {
            environment = environment.with(name, value);
        }
        let kept = Kept::default();
        let ui = Ui::kept(&kept);
        let only_reads = cli.only_reads();
        let directory = self.directory.clone();
        let context = Context::at(&ui, &cli.global, environment, directory).reading(only_reads);
        let done = panic::catch_unwind(AssertUnwindSafe(|| {
            let code = inside::run(cli, &context);
            tracker::at_end(&context);
            code
        }));
        let exit = match done {
            Ok(Ok(code)) => code,
            Ok(Err(failure)) => ui.failure(&failure),
            Err(_) => {
                kept.take();
                ui.failure(&Failure::bug())
            }
        };
        let stdout = kept.take();
        Some(Printed { stdout, exit })
    }
}
