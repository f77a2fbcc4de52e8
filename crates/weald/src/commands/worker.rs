//! `weald worker`
//!
//! A worker prints a line when a task begins and when it has ended, and nothing of its agents' output; `weald agent
//! attach` shows that.

use std::io::{self, Write};

use clap::Args;
use rustix::process::setsid;
use weald_app::operations::starts::{StartWorker, StartedWorker};
use weald_app::{Failure, Ground, Landings, supervision};
use weald_core::SignedDuration;
use weald_core::agent::Agent;
use weald_core::name::SessionName;

use super::land;
use super::work::How;
use crate::cli::duration;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, paint};

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
    /// Exit after this time without work (default: worker.idle_timeout)
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
        context.cancel.catch();
        let ground = context.ground()?;
        let worker = supervision::Worker::new(context, &ground, &how, max, idle_timeout)?;
        let name = worker.name.clone();
        let report = &mut |ground: &Ground, agent: &Agent| print(context, &name, ground, agent);
        worker.work(context, ground, report)
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

/// One line a finished task.
fn print(
    context: &Context<'_>,
    name: &SessionName,
    ground: &Ground,
    agent: &Agent,
) -> Result<(), Failure> {
    let task = ground.engine.task(&agent.task)?.task;
    let landing = match agent.end.as_ref().and_then(|end| end.landing) {
        Some(id) => Some(Landings::new(&ground.trees(context)?).landing(id)?),
        None => None,
    };
    let outcome = agent
        .end
        .as_ref()
        .map_or("unknown", |end| end.outcome.as_str());
    let mut out = context.ui.out();
    if context.ui.is_json() {
        let fields = Fields::new()
            .with("task", &task)
            .with("outcome", &outcome)
            .with("agent", agent)
            .with(
                "landing",
                &landing.as_ref().map(weald_app::landing::as_json),
            );
        writeln!(out, "{}", fields.finish())?;
    } else {
        let tree = agent.tree.as_ref();
        let tree = tree.map_or(String::new(), |tree| format!("; worktree {tree}"));
        let (ended, status) = (outcome.replace('_', " "), task.status.to_string());
        writeln!(
            out,
            "{}: task {} ({}): agent {ended}; task {}{tree}",
            name,
            task.id,
            task.subject,
            status.replace('_', " ")
        )?;
        if let Some(landing) = &landing {
            land::told_kept_changes(&mut out, landing)?;
        }
    }
    Ok(out.flush()?)
}
