//! A command that a person runs in a worktree.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::error_code::ErrorCode;
use weald_sandbox::Level;

use super::Operation;
use crate::foreground::Held;
use crate::hidden_files::named_files_unseen;
use crate::supervision::Guest;
use crate::{Call, Failure, RunRequest, RunSandbox, exit};

entries!(RunInTree);

/// Runs a command in a worktree, on the streams of this process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunInTree {
    /// By its name or its task; the one that the caller stands in unless given.
    pub tree: Option<String>,
    /// When everything in the run ends.
    pub timeout: Option<SignedDuration>,
    /// As configured unless given.
    pub sandbox: Option<RunSandbox>,
    /// How many bytes of its output are passed on.
    pub max_output: Option<u64>,
    /// The program and its arguments, at least one word.
    pub command: Vec<OsString>,
}

/// A command that ran.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ran {
    /// The command's own, 128 and the signal that ended it, or [`exit::TIMED_OUT`].
    pub exit: u8,
}

impl Operation for RunInTree {
    const NAME: &'static str = "run";
    const TAKES_STREAMS: bool = true;
    type Output = Ran;

    fn run(self, call: &Call<'_>) -> Result<Ran, Failure> {
        self.attempt(call).map_err(as_run_failure)
    }

    fn exit(ran: &Ran) -> u8 {
        ran.exit
    }
}

impl RunInTree {
    fn attempt(self, call: &Call<'_>) -> Result<Ran, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let mut request = trees.prepare_run(self.tree.as_deref(), self.sandbox)?;
        warn_of_sandbox(call, &request);
        let program = self.command.first().ok_or_else(Failure::bug)?;
        trees.allow_login(&mut request, program);
        let program = program.to_string_lossy().into_owned();
        let mut window = call.windows()?.open(&trees)?;
        let passed = window.grant(&mut request)?;
        let guest = Guest::arrive(&ground.engine, &program, &request.tree)?;
        guest.grant(&mut request);
        let authority = guest.authority(&request.tree);
        let tree = trees.begin_run(&request, &program)?;
        let arguments = self.command.iter().skip(1).map(AsRef::as_ref);
        let hidden = named_files_unseen(request.policy.as_ref(), arguments);
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
                ended = held.take().map(|held| held.start(call)?.wait(call));
            };
            window.serve_while(call, &ground, &trees, authority, &mut work)?;
            ended.ok_or_else(Failure::bug).flatten()
        });
        guest.leave(&ground.engine);
        if let Some(failed) = failed {
            call.warn(&failed);
        }
        let after = trees.end_run(&tree, ended.as_ref().ok().copied())?;
        let is_failed = ended
            .as_ref()
            .is_ok_and(|ended| exit::of(*ended) != exit::DONE);
        if let Some(hidden) = hidden.filter(|_| is_failed) {
            call.warn(&hidden);
        }
        if after.diverged {
            call.warn(&format!(
                "branch {} was moved outside weald; to merge both: weald sync {}",
                after.branch, after.name
            ));
        }
        call.tell(&ground.engine);
        Ok(Ran {
            exit: exit::of(ended?),
        })
    }
}

/// Says what the sandbox of a run does not do.
fn warn_of_sandbox(call: &Call<'_>, request: &RunRequest) {
    for note in &request.notes {
        call.warn(note);
    }
    match request.policy.as_ref().map(|policy| policy.level) {
        Some(Level::Full) => {}
        Some(level) => call.warn(&format!(
            "level {} does not cover: {}",
            level.as_str(),
            level.not_covered().join("; ")
        )),
        None => {
            call.warn("running without a sandbox: the command can write everything that you can");
        }
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
