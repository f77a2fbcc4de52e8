//! `weald sweep`

use std::io::{self, Write};

use clap::Args;
use weald_app::{Failure, SweepMode, SweepReport, Upkeep, exit};
use weald_core::kill_switch::SWEEP;

use crate::context::Context;
use crate::ui::{DIM, Fields, Out, clean, paint};

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
        let ground = context.ground()?;
        if let Some(variable) =
            context.switched_off("sweep", SWEEP, &ground.config().sweep_kill_switches)
        {
            let answer = || {
                let report = SweepReport::default();
                let mut report = serde_json::to_value(&report).unwrap_or_default();
                report["disabled"] = variable.as_str().into();
                Fields::new().with("sweep", &report)
            };
            return context.ui.answer(answer, |_| Ok(()));
        }
        let mode = match self.dry_run {
            true => SweepMode::DryRun,
            false => SweepMode::Apply,
        };
        let trees = ground.trees(context)?;
        let progress = context.stage("sweeping");
        let report = Upkeep::new(&trees).sweep(mode)?;
        drop(progress);
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("sweep", &report),
            |out| told(out, &report, self.again.unwrap_or("weald sweep")),
        )?;
        Ok(match report.failed.is_empty() {
            true => exit::DONE,
            false => exit::REFUSED,
        })
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
            "ended" => done("ended: it was dead", "would be ended: it is dead"),
            _ => done(
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
