//! `weald events`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use weald_app::Ask;
use weald_app::{Engine, Failure, JOURNAL_FILE, JournalLine, exit, read_journal, read_journal_end};
use weald_core::cloud_event::{CloudEvent, TYPE_PREFIX};
use weald_core::event::Event;
use weald_core::id::{Seq, TaskId};
use weald_core::name::TreeName;
use weald_core::store::EventFilter;

use super::inside::{Inside, field};
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, clean_line, joined, paint, within};

/// The most that one call prints.
const MOST: u64 = 200;

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
    task: Option<TaskId>,
    /// Only events about this worktree
    #[arg(long, value_name = "NAME")]
    tree: Option<TreeName>,
    /// Maximum number of events (up to 200)
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Read this copy of the log; invalid lines show as parse_error
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    file: Option<PathBuf>,
}

impl Events {
    /// Whether it never ends by itself.
    pub fn follows(&self) -> bool {
        self.follow
    }

    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.limit > MOST {
            context.note(&format!(
                "one call prints at most {MOST} events; continue with --since"
            ));
        }
        if let Some(file) = &self.file {
            return self.print_file(context, file);
        }
        let place = context.place()?;
        let engine = context.engine()?;
        let printer = Printer {
            context,
            source: place.source(),
        };
        let filter = EventFilter {
            since: self.since,
            task: self.task.clone(),
            tree: self.tree.clone(),
            limit: Some(self.limit.min(MOST)),
        };
        // Read before the events: what comes in between is shown by following, not lost.
        let newest = engine.wait_for_events(Seq(0), Duration::ZERO)?;
        let events = engine.events(&filter)?;
        let last = events
            .last()
            .map_or(self.since.unwrap_or(newest), |event| event.seq);
        let mut out = context.ui.out();
        for event in events {
            printer.event(&mut out, event)?;
        }
        if self.since.is_none() && self.task.is_none() && self.tree.is_none() {
            let torn = torn_tail(&place.private().join(JOURNAL_FILE));
            torn.iter()
                .try_for_each(|line| printer.line(&mut out, line))?;
        }
        match self.follow {
            true => follow(&engine, &printer, &mut out, filter, last),
            false => Ok(exit::DONE),
        }
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        if let Some(file) = &self.file {
            return self.print_file(inside.context, file);
        }
        let printer = Printer {
            context: inside.context,
            source: String::new(),
        };
        let mut out = inside.context.ui.out();
        let mut since = self.since;
        loop {
            let reply = inside.ask(Ask::Events {
                since,
                task: self.task.clone(),
                tree: self.tree.clone(),
                limit: self.limit.min(MOST),
            })?;
            let events: Vec<CloudEvent> = field(&reply, "events")?;
            for event in &events {
                printer.envelope(&mut out, event)?;
            }
            since = events.last().map(|event| event.sequence).or(since);
            out.flush()?;
            if !self.follow || inside.context.ui.nobody_reads() {
                return Ok(exit::DONE);
            }
            // Without a place to go on from, the next look would tell the same again.
            since.get_or_insert(Seq(0));
            if events.is_empty() {
                thread::sleep(ROUND);
            }
        }
    }

    /// Prints what the file holds, the last lines if there are too many.
    fn print_file(&self, context: &Context<'_>, file: &Path) -> Result<u8, Failure> {
        let printer = Printer {
            context,
            source: String::new(),
        };
        let failed = |source: io::Error| Failure::file(file, &source);
        let mut lines = Vec::new();
        for line in read_journal(file).map_err(failed)? {
            let line = line.map_err(failed)?;
            let wanted = match &line {
                JournalLine::Torn { .. } => true,
                JournalLine::Event(event) => {
                    self.since.is_none_or(|since| event.sequence > since)
                        && self
                            .task
                            .as_ref()
                            .is_none_or(|task| event.data.task.as_ref() == Some(task))
                        && self
                            .tree
                            .as_ref()
                            .is_none_or(|tree| event.data.tree.as_ref() == Some(tree))
                }
            };
            lines.extend(wanted.then_some(line));
        }
        let most = self.limit.min(MOST) as usize;
        match self.since {
            Some(_) => lines.truncate(most),
            None => drop(lines.drain(..lines.len().saturating_sub(most))),
        }
        let mut out = context.ui.out();
        lines
            .iter()
            .try_for_each(|line| printer.line(&mut out, line))?;
        Ok(exit::DONE)
    }
}

/// Prints events as they come, until nobody reads any more or somebody interrupts.
fn follow(
    engine: &Engine,
    printer: &Printer<'_>,
    out: &mut Out,
    mut filter: EventFilter,
    mut last: Seq,
) -> Result<u8, Failure> {
    filter.limit = Some(MOST);
    out.flush()?;
    loop {
        let newest = engine.wait_for_events(last, ROUND)?;
        loop {
            filter.since = Some(last);
            let events = engine.events(&filter)?;
            let Some(event) = events.last() else { break };
            last = event.seq;
            events
                .into_iter()
                .try_for_each(|event| printer.event(out, event))?;
        }
        last = last.max(newest);
        out.flush()?;
        if printer.context.ui.nobody_reads() {
            return Ok(exit::DONE);
        }
    }
}

struct Printer<'a> {
    context: &'a Context<'a>,
    source: String,
}

impl Printer<'_> {
    fn event(&self, out: &mut Out, event: Event) -> io::Result<()> {
        self.envelope(out, &CloudEvent::wrap(event, &self.source))
    }

    fn line(&self, out: &mut Out, line: &JournalLine) -> io::Result<()> {
        match line {
            JournalLine::Event(event) => self.envelope(out, event),
            JournalLine::Torn { offset, text } if self.context.ui.is_json() => {
                let kind = format!("{TYPE_PREFIX}parse_error");
                let data = json!({"schema_version": 1, "parse_error": true, "offset": offset, "text": text});
                writeln!(
                    out,
                    "{}",
                    json!({"specversion": "1.0", "id": format!("byte-{offset}"), "source": self.source, "type": kind, "data": data})
                )
            }
            JournalLine::Torn { offset, text } => {
                let text = clean_line(text);
                writeln!(out, "parse_error: byte {offset} of the journal: {text}")
            }
        }
    }

    fn envelope(&self, out: &mut Out, event: &CloudEvent) -> io::Result<()> {
        if self.context.ui.is_json() {
            let line = serde_json::to_string(event).expect("events have text keys");
            return writeln!(out, "{line}");
        }
        let time = event.time.strftime("%Y-%m-%d %H:%M:%S");
        let kind = event.kind.strip_prefix(TYPE_PREFIX).unwrap_or(&event.kind);
        write!(
            out,
            "{:>6} {} {}",
            event.sequence,
            paint(DIM, time),
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
        let used = 7 + 20 + kind.chars().count().max(18);
        writeln!(out, "{}", within(&rest, used))
    }
}

/// Whether the subject of an event is that tree.
fn is_named(subject: Option<&str>, tree: &str) -> bool {
    subject.is_some_and(|subject| subject.ends_with(&format!("/{tree}")) || subject == tree)
}

/// Lines of the journal's end that are no events. Others tail that file, so its damage is worth showing here.
fn torn_tail(journal: &Path) -> Vec<JournalLine> {
    let Ok(lines) = read_journal_end(journal) else {
        return Vec::new();
    };
    lines
        .filter_map(Result::ok)
        .filter(|line| matches!(line, JournalLine::Torn { .. }))
        .collect()
}
