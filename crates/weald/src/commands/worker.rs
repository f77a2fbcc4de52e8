//! `weald worker`
//!
//! A worker prints a line when a task begins and when it has ended, and nothing of its agents' output; `weald agent
//! attach` shows that.

use std::io::{self, Write};

use clap::Args;
use rustix::process::setsid;
use weald_app::Failure;
use weald_app::operations::starts::{RunWorker, StartWorker, StartedWorker};
use weald_core::SignedDuration;

use super::work::How;
use crate::cli::duration;
use crate::context::Context;
use crate::ui::{ACCENT, Out, paint};

/// Run agents on ready tasks, one after another
///
/// Each task runs in its own worktree, with the command after `--` or the configured driver. Prints one line per finished
/// task. Without ready tasks, it waits and exits after --idle-timeout.
///
/// A `shutdown` message stops the worker gracefully, Ctrl-C at once; its task is released. `weald agent stop` stops only the
/// current agent: the worker leaves that task to others and takes the next. If two agents in a row change nothing, the
/// worker exits with code 1, because something prevents them from working.
#[derive(Args)]
pub struct Worker {
    /// Exit after N tasks
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Idle time before exit (default: worker.idle_timeout)
    #[arg(long, value_name = "60s", value_parser = duration)]
    idle_timeout: Option<SignedDuration>,
    /// Return at once; the worker runs in the background
    ///
    /// Stop it with `weald msg send NAME TEXT --type shutdown`.
    #[arg(long)]
    detach: bool,
    /// Set when weald starts the worker in the background
    #[arg(long, hide = true, conflicts_with = "detach")]
    behind: bool,
    #[command(flatten)]
    how: How,
}

impl Worker {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let (how, max, idle_timeout) = (self.how.wish(), self.max, self.idle_timeout);
        if self.detach {
            let answer = context.perform(StartWorker {
                max,
                idle_timeout,
                how,
            })?;
            return context.ui.show(&answer, |out| tell_started(out, &answer));
        }
        if self.behind {
            // Out of the terminal's session: closing it changes nothing here.
            let _ = setsid();
        }
        let ended = context.perform(RunWorker {
            max,
            idle_timeout,
            how,
        })?;
        Ok(ended.exit)
    }
}

fn tell_started(out: &mut Out, started: &StartedWorker) -> io::Result<()> {
    let (name, pid) = (&started.worker.name, started.worker.pid);
    writeln!(
        out,
        "{} is working in the background (process {pid})",
        paint(ACCENT, name)
    )?;
    for view in &started.agents {
        let agent = &view.agent;
        writeln!(out, "  {} on task {}", agent.id, agent.task)?;
    }
    for notice in started.notices.iter().flatten() {
        writeln!(out, "  {notice}")?;
    }
    writeln!(
        out,
        "  to stop it: weald msg send {name} stop --type shutdown"
    )
}
