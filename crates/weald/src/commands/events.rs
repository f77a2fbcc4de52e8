//! `weald events`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use weald_app::operations::Operation;
use weald_app::operations::events::{Line, ListEvents};
use weald_app::{Engine, Failure, JournalLine, exit, read_journal};
use weald_core::cloud_event::{CloudEvent, TYPE_PREFIX};
use weald_core::id::Seq;
use weald_core::meant::Word;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, clean_line, joined, line_width, nobody_reads, paint, within};

/// How long following waits before it looks whether anybody still reads.
const ROUND: Duration = Duration::from_secs(1);

/// Show the event log
///
/// With --json, prints one CloudEvents object per line.
#[derive(Args)]
pub struct Events {
    /// Keep printing new events
    #[arg(short, long)]
    follow: bool,
    /// Only events after this sequence number
    #[arg(long, value_name = "SEQ")]
    since: Option<Seq>,
    /// Only events about this task
    #[arg(long, value_name = "ID", add = completion::all_tasks())]
    task: Option<Word>,
    /// Only events about this worktree
    #[arg(long, value_name = "NAME", add = completion::trees())]
    tree: Option<Word>,
    /// Maximum number of events (up to 200)
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Read this copy of the log; invalid lines show as parse_error
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    file: Option<PathBuf>,
}

impl Events {
    /// Also from a file, and following.
    pub const READS: bool = ListEvents::READS;

    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.limit > ListEvents::MOST {
            context.note(&format!(
                "one call prints at most {} events; continue with --since",
                ListEvents::MOST
            ));
        }
        let request = ListEvents {
            since: self.since,
            task: self.task,
            tree: self.tree,
            limit: self.limit,
        };
        match (&self.file, self.follow) {
            (Some(file), _) => print_file(context, &request, file)?,
            (None, true) => follow(context, request)?,
            (None, false) => {
                let mut out = context.ui.out();
                print_all(context, &mut out, &context.perform(request)?.events)?;
                out.flush()?;
            }
        }
        Ok(exit::DONE)
    }
}

/// Prints what the file holds, the last lines if there are too many.
fn print_file(context: &Context<'_>, wanted: &ListEvents, file: &Path) -> Result<(), Failure> {
    let failed = |source: io::Error| Failure::file(file, &source);
    let mut lines = Vec::new();
    for line in read_journal(file).map_err(failed)? {
        let line = line.map_err(failed)?;
        let is_wanted = match &line {
            JournalLine::Torn { .. } => true,
            JournalLine::Event(event) => wanted.matches(event),
        };
        lines.extend(is_wanted.then(|| Line::of(line, "")));
    }
    let most = wanted.limit.min(ListEvents::MOST) as usize;
    match wanted.since {
        Some(_) => lines.truncate(most),
        None => drop(lines.drain(..lines.len().saturating_sub(most))),
    }
    Ok(print_all(context, &mut context.ui.out(), &lines)?)
}

/// Prints events as they come, until nobody reads any more or somebody interrupts.
fn follow(context: &Context<'_>, mut request: ListEvents) -> Result<(), Failure> {
    // In a run there is no log to wait at: its broker is asked again and again.
    let engine = match context.broker() {
        Some(_) => None,
        None => Some(context.engine()?),
    };
    // Read before the events: what comes in between is shown next, not lost.
    let mut newest = engine.as_ref().map_or(Ok(Seq(0)), Engine::last_seq)?;
    let mut out = context.ui.out();
    loop {
        let shown = context.perform(request.clone())?.events;
        print_all(context, &mut out, &shown)?;
        out.flush()?;
        if nobody_reads() {
            return Ok(());
        }
        request.limit = ListEvents::MOST;
        let last = shown.iter().rev().find_map(Line::sequence);
        if last.is_some() {
            request.since = last;
            continue;
        }
        let seen = request.since.unwrap_or(newest).max(newest);
        request.since = Some(seen);
        match &engine {
            None => thread::sleep(ROUND),
            Some(engine) => loop {
                newest = engine.wait_for_events(seen, ROUND)?;
                if newest > seen {
                    break;
                }
                if nobody_reads() {
                    return Ok(());
                }
            },
        }
    }
}

fn print_all(context: &Context<'_>, out: &mut Out, lines: &[Line]) -> io::Result<()> {
    let is_json = context.ui.is_json();
    lines.iter().try_for_each(|line| match line {
        _ if is_json => {
            let text = serde_json::to_string(line).expect("events have text keys");
            writeln!(out, "{text}")
        }
        Line::Event(event) => print_event(out, event),
        Line::Torn(torn) => writeln!(
            out,
            "parse_error: byte {} of the journal: {}",
            torn.data.offset,
            clean_line(&torn.data.text)
        ),
    })
}

fn print_event(out: &mut Out, event: &CloudEvent) -> io::Result<()> {
    // In a narrow terminal the year is known, and what happened is wanted.
    let time = match line_width() {
        Some(..100) => event.time.strftime("%m-%d %H:%M"),
        _ => event.time.strftime("%Y-%m-%d %H:%M:%S"),
    };
    let time = time.to_string();
    let kind = event.kind.strip_prefix(TYPE_PREFIX).unwrap_or(&event.kind);
    write!(
        out,
        "{:>6} {} {}",
        event.sequence,
        paint(DIM, &time),
        paint(ACCENT, format!("{kind:<18}"))
    )?;
    let mut rest = String::new();
    if let Some(subject) = &event.subject {
        rest.push_str(&format!(" {subject}"));
    }
    let tree = event.data.tree.as_ref().map(ToString::to_string);
    if let Some(tree) = tree.filter(|tree| !is_named(event.subject.as_deref(), tree)) {
        rest.push_str(&format!(" in {tree}"));
    }
    if let Some(actor) = &event.data.actor {
        rest.push_str(&format!(" by {actor}"));
    }
    if let Some(token) = event.data.token {
        rest.push_str(&format!(" token {token}"));
    }
    if let Some(note) = &event.data.note {
        rest.push_str(&format!(": {}", joined(note)));
    }
    if let Some(error) = &event.data.error {
        rest.push_str(&format!(": {}", joined(error)));
    }
    // The number, the time and the kind, each with a space behind it.
    let used = 7 + time.len() + 1 + kind.chars().count().max(18);
    writeln!(out, "{}", within(&rest, used))
}

/// Whether the subject of an event is that tree.
fn is_named(subject: Option<&str>, tree: &str) -> bool {
    subject.is_some_and(|subject| subject.ends_with(&format!("/{tree}")) || subject == tree)
}
