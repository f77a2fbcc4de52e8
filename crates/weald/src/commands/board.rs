//! `weald` alone: the board.

use std::io::{self, Write};

use serde_json::{Map, Value};
use weald_core::Timestamp;
use weald_core::task::TaskStatus;
use weald_engine::Board;

use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{ACCENT, DIM, Fields, HEADING, Out, ago, left, paint, status_style};

/// Prints the board.
pub fn run(context: &Context<'_>) -> Result<u8, Failure> {
    let board = context.engine()?.board()?;
    let now = context.now();
    context
        .ui
        .answer(|| fields(&board), |out| print(out, &board, now))
}

fn fields(board: &Board) -> Fields {
    let counts: Map<String, Value> = board
        .counts
        .iter()
        .map(|(status, count)| (status.to_string(), (*count).into()))
        .collect();
    Fields::new()
        .with("counts", &counts)
        .with("ready_count", &board.ready_count)
        .with("ready", &board.ready)
        .with("in_progress", &board.in_progress)
        .with("trees", &board.trees)
        .with("sessions", &board.sessions)
}

fn print(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    if board.counts.is_empty() && board.trees.is_empty() {
        writeln!(
            out,
            "No tasks yet. Begin with: weald task add \"what to do\""
        )?;
        return writeln!(out, "See it work first:  weald demo");
    }
    let counts: Vec<_> = board
        .counts
        .iter()
        .map(|(status, count)| format!("{count} {}", paint(status_style(*status), status)))
        .collect();
    writeln!(out, "{} {}", paint(HEADING, "tasks:"), counts.join(", "))?;
    if !board.in_progress.is_empty() {
        writeln!(out, "\n{}", paint(HEADING, "in progress"))?;
    }
    for task in &board.in_progress {
        let owner = task.owner.as_ref().map_or("nobody", |owner| owner.as_str());
        let lease = task
            .lease
            .as_ref()
            .map_or_else(String::new, |lease| left(lease.expires_at, now));
        writeln!(
            out,
            "  {} {} {}",
            paint(ACCENT, format!("#{}", task.id)),
            task.subject,
            paint(DIM, format!("{owner} {lease}"))
        )?;
    }
    let in_progress = board
        .counts
        .iter()
        .find(|(status, _)| *status == TaskStatus::InProgress)
        .map_or(0, |(_, count)| *count);
    more(out, in_progress, board.in_progress.len())?;
    if board.ready_count > 0 {
        writeln!(
            out,
            "\n{}",
            paint(HEADING, format!("ready ({})", board.ready_count))
        )?;
    }
    for task in &board.ready {
        writeln!(
            out,
            "  {} {} {}",
            paint(ACCENT, format!("#{}", task.id)),
            task.priority,
            task.subject
        )?;
    }
    more(out, board.ready_count, board.ready.len())?;
    print_trees(out, board, now)?;
    if !board.sessions.is_empty() {
        writeln!(out, "\n{}", paint(HEADING, "sessions"))?;
    }
    for view in &board.sessions {
        let seen = ago(view.session.last_seen, now);
        writeln!(
            out,
            "  {} {}, seen {seen} ago",
            paint(ACCENT, &view.session.name),
            view.liveness.as_str()
        )?;
    }
    Ok(())
}

/// How many trees are named.
const TREES: usize = 12;

fn print_trees(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    if board.trees.is_empty() {
        return Ok(());
    }
    let title = format!("trees ({})", board.trees.len());
    writeln!(out, "\n{}", paint(HEADING, title))?;
    for tree in board.trees.iter().take(TREES) {
        let task = tree
            .task
            .as_ref()
            .map_or_else(String::new, |task| format!("#{task} "));
        let running = if tree.runs.is_empty() {
            ""
        } else {
            ", running"
        };
        let used = ago(tree.last_used_at, now);
        let state = format!("{task}{}{running}, used {used} ago", tree.status.as_str());
        writeln!(out, "  {} {}", paint(ACCENT, &tree.name), paint(DIM, state))?;
    }
    more(out, board.trees.len() as u64, board.trees.len().min(TREES))
}

/// Says how many are not named.
fn more(out: &mut Out, all: u64, named: usize) -> io::Result<()> {
    match all.saturating_sub(named as u64) {
        0 => Ok(()),
        rest => writeln!(out, "  {}", paint(DIM, format!("and {rest} more"))),
    }
}
