//! What a worker finished, and what a landing took from the user.

use std::io::{self, Write};

use weald_app::landing::as_json;
use weald_app::progress::FinishedTask;
use weald_core::landing::Landing;
use weald_core::name::SessionName;

use super::{Fields, Out, WARNING, clean_line, joined, paint};

/// A task that a worker finished, for programs.
pub fn finished_fields(done: &FinishedTask) -> Fields {
    Fields::new()
        .with("task", &done.task)
        .with("outcome", done.outcome)
        .with("agent", &done.agent)
        .with("landing", &done.landing.as_ref().map(as_json))
}

/// A task that a worker finished, in one line.
pub fn print_finished(out: &mut Out, worker: &SessionName, done: &FinishedTask) -> io::Result<()> {
    let task = &done.task;
    let tree = done.agent.tree.as_ref();
    let tree = tree.map_or(String::new(), |tree| format!("; worktree {tree}"));
    let ended = done.outcome.replace('_', " ");
    let status = task.status.to_string().replace('_', " ");
    writeln!(
        out,
        "{worker}: task {} ({}): agent {ended}; task {status}{tree}",
        task.id, task.subject,
    )?;
    match &done.landing {
        Some(landing) => print_kept_changes(out, landing),
        None => Ok(()),
    }
}

/// Changes of the user's that the landing took out of a checkout and did not put back.
pub fn print_kept_changes(out: &mut Out, landing: &Landing) -> io::Result<()> {
    for kept in &landing.kept_changes {
        writeln!(
            out,
            "{}: {}",
            paint(WARNING, "warning"),
            joined(&kept.text())
        )?;
        writeln!(out, "  get it back: {}", clean_line(&kept.command))?;
    }
    Ok(())
}
