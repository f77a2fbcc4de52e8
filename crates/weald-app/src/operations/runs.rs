//! A command that a person runs in a worktree.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::error_code::ErrorCode;
use weald_core::tree::Tree;

use super::Operation;
use crate::agents::by_hand::ByHand;
use crate::agents::drivers::Meant;
use crate::foreground::Held;
use crate::hidden_files::named_files_unseen;
use crate::supervision::Guest;
use crate::{Agents, Call, Failure, Ground, LandWish, Mandate, RunRequest, RunSandbox, exit};

entries!(RunInTree);

/// Runs a command in a worktree, on the streams of this process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunInTree {
    /// The one that the caller stands in unless given.
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
        let attempt = || self.attempt(call, &call.ground()?, Mandate::Run);
        let run = attempt().map_err(as_run_failure)?;
        Ok(Ran { exit: run.exit })
    }

    fn exit(ran: &Ran) -> u8 {
        ran.exit
    }
}

/// A command that ran, and what it asked to land where its person decides about that.
pub(super) struct Finished {
    pub exit: u8,
    pub tree: Tree,
    pub wish: Option<LandWish>,
}

impl RunInTree {
    pub(super) fn attempt(
        self,
        call: &Call<'_>,
        ground: &Ground,
        mandate: Mandate,
    ) -> Result<Finished, Failure> {
        let trees = ground.trees(call)?;
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let mut request = trees.prepare_run(name.as_deref(), self.sandbox)?;
        warn_of_sandbox(call, &request);
        let program = self.command.first().ok_or_else(Failure::bug)?;
        let agents = Agents::new(&trees);
        let meant = agents.meant_by(&self.command)?;
        let agent = match &meant {
            Meant::Agent(agent) => Some(*agent),
            Meant::Command(note) => {
                note.iter().for_each(|note| call.note(note));
                None
            }
        };
        let by_hand = match agent {
            Some(agent) => agents.prepare_by_hand(agent, &self.command, &mut request)?,
            None => None,
        };
        by_hand
            .iter()
            .flat_map(|agent| &agent.notes)
            .for_each(|note| call.note(note));
        if by_hand.is_none() {
            trees.allow_login(&mut request, program);
        }
        let program = program.to_string_lossy().into_owned();
        let window = call.windows()?.open(&trees)?;
        window.grant(&mut request);
        let guest = Guest::arrive(&ground.engine, agent, &request.tree)?;
        guest.grant(&mut request);
        let authority = guest.authority(&request.tree, mandate);
        let tree = trees.begin_run(&request, &program)?;
        let arguments = self.command.iter().skip(1).map(AsRef::as_ref);
        let hidden = named_files_unseen(request.policy.as_ref(), arguments);
        let held = Held {
            policy: request.policy,
            command: typed_or(by_hand.as_ref(), self.command),
            directory: request.directory,
            environment: request.environment,
            timeout: self.timeout,
            max_output: self.max_output,
        };
        let mut wish = None;
        let run = || {
            let (mut held, mut ended) = (Some(held), None);
            let mut work = || {
                ended = held.take().map(|held| held.start(call)?.wait(call));
            };
            wish = window.serve_while(call, ground, &trees, authority, &mut work)?;
            ended.ok_or_else(Failure::bug).flatten()
        };
        let (ended, failed) = trees.with_fresh_target(&tree, || trees.with_snapshots(&tree, run));
        guest.leave(&ground.engine);
        let kept = by_hand.map(ByHand::end).unwrap_or_default();
        kept.iter().for_each(|failed| call.warn(failed));
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
        Ok(Finished {
            exit: exit::of(ended?),
            tree: after,
            wish,
        })
    }
}

/// The command as its driver starts it, else as it was typed.
pub(super) fn typed_or(by_hand: Option<&ByHand>, typed: Vec<OsString>) -> Vec<OsString> {
    by_hand.map_or(typed, |agent| agent.command.clone())
}

/// Says what the sandbox of a run does not do.
fn warn_of_sandbox(call: &Call<'_>, request: &RunRequest) {
    for note in &request.notes {
        call.warn(note);
    }
    if request.policy.is_none() {
        call.warn("running without a sandbox: the command can write everything that you can");
    }
}

/// A run's exit code is the command's; what is weald's own has codes that commands rarely use.
pub(super) fn as_run_failure(mut failure: Failure) -> Failure {
    failure = failure.accepting_by("--sandbox landlock");
    failure.exit = match failure.code {
        ErrorCode::SandboxUnavailable => exit::NOT_EXECUTABLE,
        ErrorCode::NotExecutable => failure.exit,
        _ => exit::NOT_RUN,
    };
    failure
}
