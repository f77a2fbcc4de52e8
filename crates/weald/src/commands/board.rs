//! `weald` alone: the board.

use std::io::{self, Write};

use serde_json::{Map, Value};
use weald_core::Timestamp;
use weald_core::name::SessionName;
use weald_core::task::TaskStatus;
use weald_engine::Board;

use super::agent;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{
    ACCENT, DIM, Fields, HEADING, Out, ago, clean_line, fitting, left, paint, status_style,
};

/// Prints the board.
pub fn run(context: &Context<'_>) -> Result<u8, Failure> {
    let ground = context.ground()?;
    let me = context.actor(&ground.engine, None)?;
    let board = ground.engine.board(&ground.place, me.as_ref())?;
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
        .with("agents", &board.agents)
        .with("queue", &board.queue)
        .with("queue_paused", &board.queue_paused)
        .with("conflicts", &board.conflicts)
        .with("needs", &board.needs)
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
    print_needs(out, board)?;
    let counts: Vec<_> = board
        .counts
        .iter()
        .map(|(status, count)| format!("{count} {}", paint(status_style(*status), status)))
        .collect();
    writeln!(out, "{} {}", paint(HEADING, "tasks:"), counts.join(", "))?;
    print_tasks(out, board, now)?;
    print_agents(out, board)?;
    print_trees(out, board, now)?;
    print_queue(out, board, now)?;
    print_conflicts(out, board)?;
    print_sessions(out, board, now)
}

/// How many of a kind are named.
const NAMED: usize = 12;

fn print_needs(out: &mut Out, board: &Board) -> io::Result<()> {
    if board.needs.is_empty() {
        return Ok(());
    }
    let title = format!("needs you ({})", board.needs.len());
    writeln!(out, "{}", paint(HEADING, title))?;
    for need in board.needs.iter().take(NAMED) {
        let room = need.about.len() + 3;
        let what = fitting(&clean_line(&need.what), room);
        writeln!(out, "  {} {what}", paint(ACCENT, &need.about))?;
        writeln!(out, "    {}", need.command)?;
    }
    more(out, board.needs.len() as u64, board.needs.len().min(NAMED))?;
    writeln!(out)
}

fn print_tasks(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    if !board.in_progress.is_empty() {
        writeln!(out, "\n{}", paint(HEADING, "in progress"))?;
    }
    for task in &board.in_progress {
        let id = format!("#{}", task.id);
        let owner = task.owner.as_ref().map_or("nobody", |owner| owner.as_str());
        let lease = task.lease.as_ref().map_or_else(String::new, |lease| {
            format!(" {}", left(lease.expires_at, now))
        });
        let who = format!("{owner}{lease}");
        let subject = fitting(&clean_line(&task.subject), id.len() + who.len() + 4);
        writeln!(out, "  {} {subject} {}", paint(ACCENT, id), paint(DIM, who))?;
    }
    let in_progress = board
        .counts
        .iter()
        .find(|(status, _)| *status == TaskStatus::InProgress)
        .map_or(0, |(_, count)| *count);
    more(out, in_progress, board.in_progress.len())?;
    if board.ready_count > 0 {
        let title = format!("ready ({})", board.ready_count);
        writeln!(out, "\n{}", paint(HEADING, title))?;
    }
    for task in &board.ready {
        let id = format!("#{}", task.id);
        let subject = fitting(&clean_line(&task.subject), id.len() + 6);
        let priority = task.priority;
        writeln!(out, "  {} {priority} {subject}", paint(ACCENT, id))?;
    }
    more(out, board.ready_count, board.ready.len())
}

fn print_agents(out: &mut Out, board: &Board) -> io::Result<()> {
    if board.agents.is_empty() {
        return Ok(());
    }
    let title = format!("agents ({})", board.agents.len());
    writeln!(out, "\n{}", paint(HEADING, title))?;
    for view in board.agents.iter().take(NAMED) {
        let id = view.agent.id.to_string();
        let facts = format!(
            "#{} {}, active {} ago",
            view.agent.task,
            agent::state(view),
            agent::idle(view)
        );
        let last = fitting(&clean_line(agent::last(view)), id.len() + facts.len() + 5);
        writeln!(out, "  {} {facts}  {}", paint(ACCENT, id), paint(DIM, last))?;
    }
    more(
        out,
        board.agents.len() as u64,
        board.agents.len().min(NAMED),
    )
}

fn print_trees(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    if board.trees.is_empty() {
        return Ok(());
    }
    let title = format!("trees ({})", board.trees.len());
    writeln!(out, "\n{}", paint(HEADING, title))?;
    for tree in board.trees.iter().take(NAMED) {
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
    more(out, board.trees.len() as u64, board.trees.len().min(NAMED))
}

fn print_queue(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    if let Some(pause) = &board.queue_paused {
        let why = fitting(&clean_line(&pause.reason), 20);
        writeln!(out, "\nthe queue is paused: {why}")?;
        writeln!(out, "  weald queue resume")?;
    }
    if board.queue.is_empty() {
        return Ok(());
    }
    let title = format!("queue ({})", board.queue.len());
    writeln!(out, "\n{}", paint(HEADING, title))?;
    for landing in board.queue.iter().take(NAMED) {
        let state = format!(
            "{} onto {}, {} ago",
            landing.status.as_str(),
            landing.target,
            ago(landing.queued_at, now)
        );
        writeln!(
            out,
            "  {} {}",
            paint(ACCENT, &landing.tree),
            paint(DIM, state)
        )?;
    }
    more(out, board.queue.len() as u64, board.queue.len().min(NAMED))
}

fn print_conflicts(out: &mut Out, board: &Board) -> io::Result<()> {
    if board.conflicts.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{} {}",
        paint(HEADING, "conflicts"),
        paint(DIM, "(as last tried; look again: weald conflicts)")
    )?;
    for one in board.conflicts.iter().take(NAMED) {
        let head = format!("{} with {}", one.tree, one.target);
        let paths = fitting(&clean_line(&one.paths.join(", ")), head.len() + 4);
        writeln!(out, "  {} {}", paint(ACCENT, head), paint(DIM, paths))?;
    }
    more(
        out,
        board.conflicts.len() as u64,
        board.conflicts.len().min(NAMED),
    )
}

fn print_sessions(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    let is_agent = |name: &SessionName| board.agents.iter().any(|view| view.agent.session == *name);
    let mut others = board
        .sessions
        .iter()
        .filter(|view| !is_agent(&view.session.name))
        .peekable();
    if others.peek().is_some() {
        writeln!(out, "\n{}", paint(HEADING, "sessions"))?;
    }
    for view in others {
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

/// Says how many are not named.
fn more(out: &mut Out, all: u64, named: usize) -> io::Result<()> {
    match all.saturating_sub(named as u64) {
        0 => Ok(()),
        rest => writeln!(out, "  {}", paint(DIM, format!("and {rest} more"))),
    }
}
