//! `weald attach`, and what follows when an agent's own interface ends: its work is shown, and a person decides.

use clap::Args;
use weald_app::operations::Caller;
use weald_app::operations::orders::AttachAgent;
use weald_app::operations::works::Worked;
use weald_app::{Failure, LandWish, exit};
use weald_core::agent::AgentId;
use weald_core::needs::TO_DECIDE;

use super::deciding::{can_ask, decide};
use super::work_told;
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Attach to an agent's terminal, or follow its output
///
/// An interactive agent (weald work -i) shows its own interface; Ctrl-\ detaches and leaves it running. Several terminals can
/// attach at once; the one that typed last decides the size. When the agent ends, its changes are shown and you decide
/// whether they land.
///
/// Any other agent shows its output until it ends. Each line you type goes to its inbox; Ctrl-C detaches.
#[derive(Args)]
pub struct Attach {
    /// Agent ID or name, or its task, worktree, branch or path
    #[arg(value_name = "ID", add = completion::agents())]
    id: String,
    /// Start with the last N lines of output
    #[arg(long, value_name = "N", default_value_t = 20)]
    tail: usize,
    /// Start with all of its output
    #[arg(long, conflicts_with = "tail")]
    all: bool,
    #[command(flatten)]
    session: SessionArg,
}

impl Attach {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let tail = (!self.all).then_some(self.tail);
        attach(context, &self.session.caller(), self.id, tail)
    }
}

/// Attaches to an interactive agent that was just started.
pub fn attach_new(context: &Context<'_>, agent: AgentId) -> Result<u8, Failure> {
    attach(context, &Caller::default(), agent.to_string(), None)
}

fn attach(
    context: &Context<'_>,
    caller: &Caller,
    agent: String,
    tail: Option<usize>,
) -> Result<u8, Failure> {
    let attached = context.perform_as(caller, AttachAgent { agent, tail })?;
    let Some(worked) = &attached.ended else {
        return Ok(exit::DONE);
    };
    let is_open = worked.agent.interactive && worked.task.parked.as_deref() == Some(TO_DECIDE);
    if let Some(view) = worked.tree.as_ref().filter(|_| is_open)
        && can_ask(context)
        && let Some(code) = decide(context, &view.tree, LandWish::default())?
    {
        return Ok(code);
    }
    context
        .ui
        .show(worked, |out| work_told::tell(out, worked))?;
    Ok(match worked.agent.interactive {
        true => own_code(worked),
        false => worked.exit_code(),
    })
}

/// How its interface ended: with the exit code of its program.
fn own_code(worked: &Worked) -> u8 {
    let code = worked.agent.code.unwrap_or_default();
    match worked.exit_code() {
        exit::DONE => u8::try_from(code).unwrap_or(exit::REFUSED),
        code => code,
    }
}
