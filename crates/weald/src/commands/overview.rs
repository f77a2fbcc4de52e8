//! `weald status --all`: everything that goes on, once or live.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use weald_app::{Dirty, Failure, Freshness, Ground, Overview, TreeOverview, Upkeep, exit};
use weald_core::Timestamp;
use weald_core::store::Store;

use super::agent;
use super::list::nothing;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Fields, Out, Table, ago, nobody_reads, paint};

/// How often a live view looks again; sooner when something was written.
const EVERY: Duration = Duration::from_secs(2);

/// How long a Ctrl-C may have to wait.
const TURN: Duration = Duration::from_millis(200);

/// Everything that goes on, for people.
pub fn told(out: &mut Out, found: &Overview, now: Timestamp) -> io::Result<()> {
    let progress = found.progress;
    if progress.total > 0 {
        let text = format!(
            "{} of {} tasks completed",
            progress.completed, progress.total
        );
        writeln!(out, "{}", paint(DIM, text))?;
    }
    if found.trees.is_empty() {
        return nothing(out);
    }
    let mut table = Table::new(&["NAME", "PHASE", "STATUS", "AGENT", "DISK", "USED", "TASK"]);
    for one in &found.trees {
        let tree = &one.view.tree;
        table.row(vec![
            (tree.name.to_string(), ACCENT),
            (one.phase.clone(), Default::default()),
            (status(one), Default::default()),
            (agent_of(one), Default::default()),
            (disk(one), Default::default()),
            (ago(tree.last_used_at, now), DIM),
            (
                tree.task
                    .as_ref()
                    .map_or(String::new(), |task| format!("#{task}")),
                DIM,
            ),
        ]);
    }
    table.print(out)?;
    if found.agents.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    agent::print_table(out, &found.agents)
}

fn status(one: &TreeOverview) -> String {
    let view = &one.view;
    let mut words = vec![view.tree.status.as_str().to_owned()];
    match (view.exists, view.dirty) {
        (false, _) if view.is_replaced() => words.push("replaced".to_owned()),
        (false, _) => words.push("gone".to_owned()),
        (true, Dirty::Known(true)) => words.push("dirty".to_owned()),
        (true, Dirty::Known(false)) => words.push("clean".to_owned()),
        (true, Dirty::Unknown) => words.push("?".to_owned()),
    }
    for (count, sign) in [(view.ahead, '+'), (view.behind, '-')] {
        words.extend(
            count
                .filter(|count| *count > 0)
                .map(|count| format!("{sign}{count}")),
        );
    }
    words.join(" ")
}

fn agent_of(one: &TreeOverview) -> String {
    match (one.agent, one.agent_state) {
        (Some(id), Some(state)) => format!("{id} {}", state.as_str()),
        _ => "-".to_owned(),
    }
}

fn disk(one: &TreeOverview) -> String {
    let Some(bytes) = one.bytes else {
        return "?".to_owned();
    };
    let more = if one.bytes_whole { "" } else { ">" };
    match bytes {
        0..1_048_576 => format!("{more}{}K", bytes / 1_024),
        1_048_576..1_073_741_824 => format!("{more}{}M", bytes / 1_048_576),
        _ => format!("{more}{:.1}G", bytes as f64 / 1_073_741_824.0),
    }
}

/// The same again and again: a screen that is drawn anew, or one line a change. Trees are looked into once; later it
/// tells what is known.
pub fn watch(context: &Context<'_>, ground: &Ground) -> Result<u8, Failure> {
    context.cancel.catch();
    let trees = ground.trees(context)?;
    let draws = io::stdout().is_terminal() && !context.ui.is_json();
    let mut found = Upkeep::new(&trees).overview(Freshness::Now)?;
    let sizes: BTreeMap<_, _> = found
        .trees
        .iter()
        .map(|one| (one.view.tree.id, (one.bytes, one.bytes_whole)))
        .collect();
    let mut shown = BTreeMap::new();
    loop {
        match draws {
            true => draw(context, &found)?,
            false => stream(context, &found, &mut shown)?,
        }
        if rest(context, ground)? {
            return Ok(exit::DONE);
        }
        ground.engine.reap_agents()?;
        found = Upkeep::new(&trees).overview(Freshness::Known)?;
        for one in &mut found.trees {
            if let Some(size) = sizes.get(&one.view.tree.id) {
                (one.bytes, one.bytes_whole) = *size;
            }
        }
    }
}

/// Waits until it is time for the next look; true when nobody wants one.
fn rest(context: &Context<'_>, ground: &Ground) -> Result<bool, Failure> {
    let store: &dyn Store = ground.engine.store();
    let before = store.read()?.last_seq()?;
    let mut left = EVERY;
    loop {
        if context.cancel.asked().is_some() || nobody_reads() {
            return Ok(true);
        }
        if left.is_zero() || store.wait(before, TURN.min(left))? != before {
            return Ok(false);
        }
        left = left.saturating_sub(TURN);
    }
}

fn draw(context: &Context<'_>, found: &Overview) -> Result<(), Failure> {
    let mut out = context.ui.out();
    // Home, and everything below it away.
    out.control("\x1b[H\x1b[2J")?;
    told(&mut out, found, context.now())?;
    writeln!(out, "{}", paint(DIM, "press Ctrl-C to quit"))?;
    out.flush()?;
    Ok(())
}

/// One line for each tree and agent that is not as it was.
fn stream(
    context: &Context<'_>,
    found: &Overview,
    shown: &mut BTreeMap<String, String>,
) -> Result<(), Failure> {
    let mut lines = BTreeMap::new();
    for one in &found.trees {
        let name = one.view.tree.name.to_string();
        let line = format!("{} {} {}", one.phase, status(one), agent_of(one));
        lines.insert(name, line);
    }
    for view in &found.agents {
        let task = &view.agent.task;
        let line = format!("{} on task {task}", agent::state(view));
        lines.insert(view.agent.id.to_string(), line);
    }
    let is_new = |(name, line): &(&String, &String)| shown.get(*name) != Some(*line);
    let changed: Vec<_> = lines.iter().filter(is_new).collect();
    let gone: Vec<_> = shown
        .keys()
        .filter(|name| !lines.contains_key(*name))
        .collect();
    let mut out = context.ui.out();
    if context.ui.is_json() && !(changed.is_empty() && gone.is_empty()) {
        writeln!(out, "{}", Fields::of_answer(found).finish())?;
    }
    if !context.ui.is_json() {
        let time = context.now().strftime("%H:%M:%SZ");
        for (name, line) in changed {
            writeln!(out, "{time} {name}: {line}")?;
        }
        for name in gone {
            writeln!(out, "{time} {name}: ended")?;
        }
    }
    out.flush()?;
    *shown = lines;
    Ok(())
}
