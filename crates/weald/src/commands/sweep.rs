//! `weald sweep`

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::{Operation, cleaning};
use weald_app::{Became, Failure, SweepReport};

use crate::context::Context;
use crate::ui::{DIM, Out, clean, paint};

/// Release stale locks and leases and remove leftovers
///
/// Runs one cycle, for cron or a supervisor. Releases a lock only if the worktree's task has been closed for 24 hours, an
/// earlier cycle saw the same, and no session or process that uses it may still be alive. Worktrees are never removed.
///
/// Exits 1 if something could not be removed. WEALD_SWEEP_DISABLE=1 turns it off.
#[derive(Args)]
pub struct Sweep {
    /// Show the changes without making them
    #[arg(long)]
    pub dry_run: bool,
    /// The call that does it, if it is not this command's.
    #[arg(skip)]
    pub again: Option<&'static str>,
}

impl Sweep {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let swept = context.perform(cleaning::Sweep {
            dry_run: self.dry_run,
        })?;
        let again = self.again.unwrap_or("weald sweep");
        context.ui.show(&swept, |out| match swept.sweep.disabled {
            Some(_) => Ok(()),
            None => told(out, &swept.sweep.report, again),
        })?;
        Ok(cleaning::Sweep::exit(&swept))
    }
}

fn told(out: &mut Out, report: &SweepReport, again: &str) -> io::Result<()> {
    let done = |what: &'static str, would: &'static str| match report.applied {
        true => what,
        false => would,
    };
    for tree in &report.locks.unlocked {
        writeln!(out, "{}: {tree}", done("unlocked", "would be unlocked"))?;
    }
    for tree in &report.locks.marked {
        let marked = done("marked", "would be marked");
        writeln!(out, "{marked}: {tree}, for the next cycle to unlock")?;
    }
    for task in &report.leases {
        writeln!(
            out,
            "{}: task {task}",
            done("released", "would be released")
        )?;
    }
    for swept in &report.sessions {
        let became = match swept.became {
            Became::Ended => done("ended: it was dead", "would be ended: it is dead"),
            Became::Stale => done(
                "reported as stale: no recent activity",
                "would be reported as stale: no recent activity",
            ),
        };
        writeln!(out, "session {}: {became}", swept.session)?;
    }
    let counts = [
        (report.ports, "blocks of ports"),
        (report.spares, "spares"),
        (report.runs, "folders of runs"),
        (report.homes, "agents' folders"),
        (report.logins, "agents' logins"),
        (report.caches, "cache layers"),
    ];
    let cleared = done("cleared", "would be cleared");
    for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{cleared}: {count} {what}")?;
    }
    for kept in &report.locks.kept {
        let line = format!("{} stays locked: {}", kept.tree, kept.why);
        writeln!(out, "{}", paint(DIM, clean(&line)))?;
    }
    for failed in &report.failed {
        writeln!(out, "not cleared: {}", clean(failed))?;
    }
    let locks = report.locks.unlocked.len() + report.locks.marked.len();
    let others = report.leases.len() + report.sessions.len() + report.failed.len();
    let cleared: usize = counts.iter().map(|(count, _)| count).sum();
    match (locks + others + cleared, report.applied) {
        (0, _) => writeln!(out, "nothing to sweep"),
        (_, true) => Ok(()),
        (_, false) => writeln!(out, "nothing was changed; to do it: {again}"),
    }
}
