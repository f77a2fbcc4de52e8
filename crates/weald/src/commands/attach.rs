//! `weald attach`, and what follows when an agent's own interface ends: its work is shown, and a person decides.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use weald_app::operations::Caller;
use weald_app::operations::landing::LandTrees;
use weald_app::operations::looking::DiffTree;
use weald_app::operations::orders::AttachAgent;
use weald_app::operations::works::Worked;
use weald_app::{DiffStyle, Failure, OnConflict, exit};
use weald_core::agent::AgentId;
use weald_core::git_diff::DiffOptions;
use weald_core::needs::TO_DECIDE;

use super::{diff, land, work_told};
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
    let is_asked = worked.agent.interactive
        && worked.task.parked.as_deref() == Some(TO_DECIDE)
        && !context.ui.is_json()
        && io::stdin().is_terminal()
        && io::stderr().is_terminal();
    if is_asked && let Some(code) = offer(context, worked)? {
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

/// What a person does with work that is done.
enum Decision {
    Land,
    Show,
    Keep,
}

/// Shows what changed and asks whether it lands; `None` if it is kept.
fn offer(context: &Context<'_>, worked: &Worked) -> Result<Option<u8>, Failure> {
    let Some(view) = &worked.tree else {
        return Ok(None);
    };
    let name = view.tree.name.to_string();
    let show = |style| -> Result<u8, Failure> {
        let shown = context.perform(DiffTree {
            tree: Some(name.clone()),
            against_target: false,
            style,
            options: DiffOptions::default(),
            reader: context.ui.reader(),
        })?;
        diff::print(context, &shown)
    };
    show(DiffStyle::Stat)?;
    loop {
        match ask(context, &name, &view.tree.target)? {
            Decision::Show => drop(show(DiffStyle::Patch)?),
            Decision::Keep => return Ok(None),
            Decision::Land => {
                let request = LandTrees {
                    names: vec![name],
                    strategy: None,
                    no_wait: false,
                    dry_run: false,
                    keep: false,
                    force: false,
                    stop_on_conflict: false,
                    at_conflict: OnConflict::Abort,
                    commit: None,
                    message: None,
                    report: None,
                };
                return land::answer(context, &Caller::default(), request).map(Some);
            }
        }
    }
}

/// Nothing lands but by a plain yes: the end of the input and Ctrl-C keep.
fn ask(context: &Context<'_>, name: &str, target: &str) -> Result<Decision, Failure> {
    // What was typed into the interface is no answer.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    loop {
        let mut err = io::stderr().lock();
        write!(
            err,
            "Land {name} on {target}? [l]and, [d]iff, [k]eep (default: keep): "
        )?;
        err.flush()?;
        drop(err);
        let Some(line) = typed_line(context)? else {
            writeln!(io::stderr())?;
            return Ok(Decision::Keep);
        };
        match line.trim().to_ascii_lowercase().as_str() {
            "l" | "land" => return Ok(Decision::Land),
            "d" | "diff" => return Ok(Decision::Show),
            "" | "k" | "keep" => return Ok(Decision::Keep),
            _ => {}
        }
    }
}

/// A line from the terminal; none at the end of the input or after Ctrl-C.
fn typed_line(context: &Context<'_>) -> Result<Option<String>, Failure> {
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    let stdin = io::stdin();
    while context.cancel.asked().is_none() {
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        // An interrupted wait is looked at like any other.
        let ready = poll(&mut polled, Some(&tick)).unwrap_or_default();
        if ready > 0 {
            let mut line = String::new();
            let count = stdin.lock().read_line(&mut line)?;
            return Ok((count > 0).then_some(line));
        }
    }
    Ok(None)
}
