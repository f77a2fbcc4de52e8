//! `weald run`

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use weald_app::supervision::Guest;
use weald_app::window::Windows as _;
use weald_app::{Failure, RunSandbox, exit, named_files_unseen};
use weald_core::SignedDuration;
use weald_core::config::parse_size;
use weald_core::error_code::ErrorCode;
use weald_sandbox::Level;
use weald_server::broker::Brokers;

use crate::cli::duration;
use crate::completion;
use crate::context::Context;
use crate::foreground::Held;

/// Run a sandboxed command in a worktree
///
/// Exits with the exit code of the command; 124 on timeout, 125 if weald fails, 126 without a sandbox. Afterwards, weald
/// imports the new commits.
#[derive(Args)]
pub struct Run {
    /// The worktree (default: the current one)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Kill the command and its children after this time
    #[arg(long, value_name = "60s", value_parser = duration)]
    timeout: Option<SignedDuration>,
    /// Sandbox level (default: sandbox.level)
    #[arg(long, value_name = "LEVEL")]
    sandbox: Option<SandboxArg>,
    /// Maximum output; the rest is dropped with a notice
    #[arg(long, value_name = "1M", value_parser = parse_size)]
    max_output: Option<u64>,
    /// Command to run
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum SandboxArg {
    Full,
    Landlock,
    /// No sandbox
    Off,
}

impl Run {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        self.attempt(context).map_err(as_run_failure)
    }

    fn attempt(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let sandbox = self.sandbox.map(|sandbox| match sandbox {
            SandboxArg::Full => RunSandbox::Level(Level::Full),
            SandboxArg::Landlock => RunSandbox::Level(Level::Landlock),
            SandboxArg::Off => RunSandbox::Off,
        });
        let mut request = trees.prepare_run(self.name.as_deref(), sandbox)?;
        for note in &request.notes {
            context.warn(note);
        }
        match request.policy.as_ref().map(|policy| policy.level) {
            Some(Level::Full) => {}
            Some(level) => context.warn(&format!(
                "level {} does not cover: {}",
                level.as_str(),
                level.not_covered().join("; ")
            )),
            None => context
                .warn("running without a sandbox: the command can write everything that you can"),
        }
        trees.allow_login(&mut request, &self.command[0]);
        let program = self.command[0].to_string_lossy().into_owned();
        let mut window = Brokers.open(&trees)?;
        let passed = window.grant(&mut request)?;
        let guest = Guest::arrive(&ground.engine, &program, &request.tree)?;
        guest.grant(&mut request);
        let authority = guest.authority(&request.tree);
        let tree = trees.begin_run(&request, &program)?;
        let hidden = named_files_unseen(
            request.policy.as_ref(),
            self.command.iter().skip(1).map(AsRef::as_ref),
        );
        let held = Held {
            policy: request.policy,
            command: self.command,
            directory: request.directory,
            environment: request.environment,
            timeout: self.timeout,
            max_output: self.max_output,
            passed,
        };
        let (ended, failed) = trees.with_snapshots(&tree, || {
            let (mut held, mut ended) = (Some(held), None);
            let mut work = || {
                ended = held.take().map(|held| held.start(context)?.wait(context));
            };
            window.serve_while(context, &ground, &trees, authority, &mut work)?;
            ended.ok_or_else(Failure::bug).flatten()
        });
        guest.leave(&ground.engine);
        if let Some(failed) = failed {
            context.warn(&failed);
        }
        let after = trees.end_run(&tree, ended.as_ref().ok().copied())?;
        let is_failed = ended
            .as_ref()
            .is_ok_and(|ended| exit::of(*ended) != exit::DONE);
        if let Some(hidden) = hidden.filter(|_| is_failed) {
            context.warn(&hidden);
        }
        if after.diverged {
            context.warn(&format!(
                "branch {} was moved outside weald; to merge both: weald sync {}",
                after.branch, after.name
            ));
        }
        context.tell(&ground.engine);
        Ok(exit::of(ended?))
    }
}

/// A run's exit code is the command's; what is weald's own has codes that commands rarely use.
fn as_run_failure(mut failure: Failure) -> Failure {
    failure.hint = failure
        .hint
        .map(|hint| hint.replace("--level landlock", "--sandbox landlock"));
    failure.exit = match failure.code {
        ErrorCode::SandboxUnavailable => exit::NOT_EXECUTABLE,
        ErrorCode::NotExecutable => failure.exit,
        _ => exit::NOT_RUN,
    };
    failure
}
