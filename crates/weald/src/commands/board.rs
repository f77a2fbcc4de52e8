//! `weald` alone: the board.

use std::io::{self, Write};

use weald_app::operations::looking::{ShowBoard, ShownBoard};
use weald_app::{Board, Failure};
use weald_core::Timestamp;
use weald_core::agent::Agent;
use weald_core::cost::in_words;
use weald_core::name::SessionName;
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::Tree;

use super::agent;
use crate::context::Context;
use crate::ui::{
    ACCENT, DIM, HEADING, Out, Table, ago, because, clean_line, joined, left, paint, status_style,
    within,
};

pub fn run(context: &Context<'_>) -> Result<u8, Failure> {
    let answer = context.perform(ShowBoard {})?;
    let now = context.now();
    context.ui.show(&answer, |out| print(out, &answer, now))
}

fn print(out: &mut Out, shown: &ShownBoard, now: Timestamp) -> io::Result<()> {
    let board = &shown.board;
    if board.counts.is_empty() && board.trees.is_empty() && board.needs.is_empty() {
        writeln!(
            out,
            "No tasks yet. Begin with: weald task add \"what to do\""
        )?;
        return writeln!(out, "See it work first:  weald demo");
    }
    print_needs(out, board)?;
    let counts = TaskStatus::ALL.into_iter().filter_map(|status| {
        let count = board.counts.get(&status)?;
        Some(format!("{count} {}", paint(status_style(status), status)))
    });
    let counts: Vec<_> = counts.collect();
    let counts = match counts.is_empty() {
        true => "none".to_owned(),
        false => counts.join(", "),
    };
    writeln!(out, "{} {}", paint(HEADING, "tasks:"), counts)?;
    if let Some(used) = &board.used_today {
        writeln!(out, "{} {}", paint(HEADING, "used today:"), in_words(used))?;
    }
    print_agents(out, board)?;
    print_in_progress(out, board, now)?;
    print_ready(out, board)?;
    print_trees(out, shown, now)?;
    print_queue(out, board, now)?;
    print_conflicts(out, board)?;
    print_sessions(out, board, now)
}

/// How many of a kind are named.
const NAMED: usize = 12;

/// How many of those that are ready are named beside agents: a board of ten agents fits a terminal of 24 lines.
const READY_BESIDE_AGENTS: usize = 5;

/// The agent that is on something, so that it is told once.
fn has_agent(board: &Board, is_on: impl Fn(&Agent) -> bool) -> bool {
    board.agents.iter().any(|view| is_on(&view.agent))
}

fn print_needs(out: &mut Out, board: &Board) -> io::Result<()> {
    if board.needs.is_empty() {
        return Ok(());
    }
    let title = format!("needs you ({})", board.needs.len());
    writeln!(out, "{}", paint(HEADING, title))?;
    for need in board.needs.iter().take(NAMED) {
        let room = need.about.len() + 3;
        let what = within(&joined(&need.what), room);
        writeln!(out, "  {} {what}", paint(ACCENT, &need.about))?;
        writeln!(out, "    {}", need.command)?;
    }
    more(out, board.needs.len() as u64, board.needs.len().min(NAMED))?;
    writeln!(out)
}

/// What is in progress without an agent: by people, or waiting.
fn print_in_progress(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    let is_free = |task: &&Task| !has_agent(board, |agent| agent.task == task.id);
    let others: Vec<_> = board.in_progress.iter().filter(is_free).collect();
    if !others.is_empty() {
        writeln!(out, "\n{}", paint(HEADING, "in progress"))?;
    }
    let mut table = Table::below_title(&["TASK", "SUBJECT", "WHO"]);
    for task in others.iter().take(NAMED) {
        let owner = task.owner.as_ref().map_or("nobody", |owner| owner.as_str());
        let lease = task.lease.as_ref().map_or_else(String::new, |lease| {
            format!(" {}", left(lease.expires_at, now))
        });
        table.row(vec![
            (format!("#{}", task.id), ACCENT),
            (clean_line(&task.subject), Default::default()),
            (format!("{owner}{lease}"), DIM),
        ]);
    }
    table.print(out)?;
    more(out, others.len() as u64, others.len().min(NAMED))
}

fn print_ready(out: &mut Out, board: &Board) -> io::Result<()> {
    let room = match board.agents.is_empty() {
        true => NAMED,
        false => READY_BESIDE_AGENTS,
    };
    if board.ready_count > 0 {
        let title = format!("ready ({})", board.ready_count);
        writeln!(out, "\n{}", paint(HEADING, title))?;
    }
    let mut table = Table::below_title(&["TASK", "PRI", "SUBJECT"]);
    for task in board.ready.iter().take(room) {
        table.row(vec![
            (format!("#{}", task.id), ACCENT),
            (task.priority.to_string(), Default::default()),
            (clean_line(&task.subject), Default::default()),
        ]);
    }
    table.print(out)?;
    more(out, board.ready_count, board.ready.len().min(room))
}

fn print_agents(out: &mut Out, board: &Board) -> io::Result<()> {
    if board.agents.is_empty() {
        return Ok(());
    }
    let title = format!("agents ({})", board.agents.len());
    writeln!(out, "\n{}", paint(HEADING, title))?;
    let mut table = Table::below_title(&["AGENT", "FACTS", "LAST"]);
    for view in board.agents.iter().take(NAMED) {
        let name = agent::own_name(&view.agent);
        let name = name.map_or(String::new(), |name| format!("{name} "));
        let (task, state, idle) = (&view.agent.task, agent::state(view), agent::idle(view));
        let facts = format!("{name}#{task} {state}, idle {idle}");
        let subject = board.in_progress.iter().find(|known| known.id == *task);
        let subject = subject.map_or("", |task| task.subject.as_str());
        let doing = because(subject.to_owned(), agent::last(view));
        table.row(vec![
            (view.agent.id.to_string(), ACCENT),
            (facts, Default::default()),
            (joined(&doing), DIM),
        ]);
    }
    table.print(out)?;
    more(
        out,
        board.agents.len() as u64,
        board.agents.len().min(NAMED),
    )
}

/// Trees without an agent.
fn print_trees(out: &mut Out, shown: &ShownBoard, now: Timestamp) -> io::Result<()> {
    let board = &shown.board;
    let is_free = |tree: &&Tree| !has_agent(board, |agent| agent.tree_id == Some(tree.id));
    let trees: Vec<_> = board.trees.iter().filter(is_free).collect();
    if trees.is_empty() {
        return Ok(());
    }
    let title = format!("worktrees ({})", trees.len());
    writeln!(out, "\n{}", paint(HEADING, title))?;
    let mut table = Table::below_title(&["NAME", "FACTS"]);
    for tree in trees.iter().take(NAMED) {
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
        let unimported = match shown.unimported.contains(&tree.name) {
            true => ", unimported",
            false => "",
        };
        let status = tree.status.as_str();
        let state = format!("{task}{status}{running}{unimported}, used {used} ago");
        table.row(vec![(tree.name.to_string(), ACCENT), (state, DIM)]);
    }
    table.print(out)?;
    more(out, trees.len() as u64, trees.len().min(NAMED))
}

fn print_queue(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    if let Some(pause) = &board.queue_paused {
        let why = within(&joined(&pause.reason), 21);
        writeln!(out, "\nthe queue is paused: {why}")?;
        writeln!(out, "  weald queue resume")?;
    }
    if board.queue.is_empty() {
        return Ok(());
    }
    let title = format!("queue ({})", board.queue.len());
    writeln!(out, "\n{}", paint(HEADING, title))?;
    let mut table = Table::below_title(&["NAME", "FACTS"]);
    for landing in board.queue.iter().take(NAMED) {
        let state = format!(
            "{} onto {}, {} ago",
            landing.status.as_str(),
            landing.target,
            ago(landing.queued_at, now)
        );
        table.row(vec![(landing.tree.to_string(), ACCENT), (state, DIM)]);
    }
    table.print(out)?;
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
        paint(
            DIM,
            "(as of the last check; to check again: weald conflicts)"
        )
    )?;
    let mut table = Table::below_title(&["NAME", "TARGET", "PATHS"]);
    for one in board.conflicts.iter().take(NAMED) {
        table.row(vec![
            (one.tree.to_string(), ACCENT),
            (format!("with {}", one.target), ACCENT),
            (clean_line(&one.paths.join(", ")), DIM),
        ]);
    }
    table.print(out)?;
    more(
        out,
        board.conflicts.len() as u64,
        board.conflicts.len().min(NAMED),
    )
}

fn print_sessions(out: &mut Out, board: &Board, now: Timestamp) -> io::Result<()> {
    let is_agent = |name: &SessionName| board.agents.iter().any(|view| view.agent.session == *name);
    // What a race waits for is a pick, not its session.
    let waits_for_pick = |name: &SessionName| {
        let mut held = board.in_progress.iter();
        held.any(|task| task.owner.as_ref() == Some(name) && task.parked.is_some())
    };
    let mut others = board
        .sessions
        .iter()
        .filter(|view| !is_agent(&view.session.name) && !waits_for_pick(&view.session.name))
        .peekable();
    if others.peek().is_some() {
        writeln!(out, "\n{}", paint(HEADING, "sessions"))?;
    }
    let mut table = Table::below_title(&["NAME", "FACTS"]);
    for view in others {
        let seen = ago(view.session.last_seen, now);
        let state = format!("{}, seen {seen} ago", view.liveness.as_str());
        table.row(vec![
            (view.session.name.to_string(), ACCENT),
            (state, Default::default()),
        ]);
    }
    table.print(out)
}

/// Says how many are not named.
fn more(out: &mut Out, all: u64, named: usize) -> io::Result<()> {
    match all.saturating_sub(named as u64) {
        0 => Ok(()),
        rest => writeln!(out, "  {}", paint(DIM, format!("and {rest} more"))),
    }
}
