//! `weald conflicts`

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use weald_app::operations::conflicts::{FindConflicts, FoundConflicts};
use weald_app::{Clash, Engine, Failure, Radar, Unknown, exit};
use weald_core::SignedDuration;
use weald_core::id::Seq;

use crate::cli::duration;
use crate::completion;
use crate::context::Context;
use crate::ui::{
    ACCENT, DIM, Out, clean, clean_line, nobody_reads, paint, path_within, within, wrapped,
};

/// How long watching waits before it looks whether anybody still reads.
const GLANCE: Duration = Duration::from_millis(500);

/// How many lines of a hunk are printed, of each side.
const LINES: usize = 4;

/// Show conflicts between worktrees and with their target
///
/// Merges the current content of each worktree in memory, committed or not; worktrees and branches are not changed. Exits 0
/// even if there are conflicts. Owners are notified only with --tell or --watch.
#[derive(Args)]
pub struct Conflicts {
    /// Only of these worktrees, tasks, agents (default: all)
    #[arg(value_name = "NAME", add = completion::trees())]
    names: Vec<String>,
    /// Exit 3 on a conflict, 1 if something could not be checked
    #[arg(long, conflicts_with = "watch")]
    exit_code: bool,
    /// Notify the owners of the worktrees, once per conflict
    #[arg(long)]
    tell: bool,
    /// Keep checking, print changes and notify the owners
    #[arg(long)]
    watch: bool,
    /// Longest time between checks; events trigger one at once
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration, requires = "watch")]
    every: SignedDuration,
}

impl Conflicts {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.watch {
            return self.watch(context);
        }
        let answer = context.perform(FindConflicts {
            names: self.names,
            tell: self.tell,
        })?;
        show(context, &answer)?;
        let radar = &answer.radar;
        Ok(match (self.exit_code, radar.pairs.is_empty()) {
            (true, false) => exit::CONFLICT,
            (true, true) if !radar.unknown.is_empty() => exit::REFUSED,
            _ => exit::DONE,
        })
    }

    /// Looks again and again. Each change is a line, or one JSON object for all that there is then.
    fn watch(&self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let mut before: Option<BTreeSet<String>> = None;
        loop {
            let found = context.perform(FindConflicts {
                names: self.names.clone(),
                tell: true,
            })?;
            let now: BTreeSet<String> = headings(&found.radar).collect();
            match &before {
                Some(before) if *before == now => {}
                Some(before) if !context.ui.is_json() => {
                    let mut out = context.ui.out();
                    for gone in before.difference(&now) {
                        writeln!(out, "gone: {gone}")?;
                    }
                    for new in now.difference(before) {
                        writeln!(out, "new: {new}")?;
                    }
                    out.flush()?;
                }
                _ => show(context, &found)?,
            }
            before = Some(now);
            if !self.rest(&engine)? {
                return Ok(exit::DONE);
            }
        }
    }

    /// Waits until something was recorded, or long enough; false when nobody reads any more.
    fn rest(&self, engine: &Engine) -> Result<bool, Failure> {
        let seq = engine.wait_for_events(Seq(0), Duration::ZERO)?;
        let until = Instant::now() + self.every.unsigned_abs();
        loop {
            if nobody_reads() {
                return Ok(false);
            }
            let left = until.saturating_duration_since(Instant::now());
            let newest = engine.wait_for_events(seq, left.min(GLANCE))?;
            if newest > seq || left.is_zero() {
                return Ok(true);
            }
        }
    }
}

fn show(context: &Context<'_>, found: &FoundConflicts) -> Result<(), Failure> {
    context.ui.show(found, |out| print(out, found)).map(drop)
}

/// A line for each conflict and each thing that can't be told.
fn headings(radar: &Radar) -> impl Iterator<Item = String> {
    let clashes = radar.pairs.iter().map(|clash| {
        let paths: Vec<_> = clash.paths.iter().map(|path| clean_line(path)).collect();
        format!("{}: {}", heading(clash), paths.join(", "))
    });
    clashes.chain(radar.unknown.iter().map(unknown))
}

fn heading(clash: &Clash) -> String {
    let state = match clash.uncommitted {
        true => " (including uncommitted work)",
        false => "",
    };
    format!("{} and {} conflict{state}", clash.a, clean(&clash.b))
}

fn unknown(one: &Unknown) -> String {
    let with = one
        .with
        .as_ref()
        .map(|with| format!(" with {}", clean(with)));
    let with = with.unwrap_or_default();
    format!("unknown: {}{with}: {}", one.tree, clean(&one.reason))
}

fn print(out: &mut Out, found: &FoundConflicts) -> io::Result<()> {
    let radar = &found.radar;
    for clash in &radar.pairs {
        writeln!(out, "{}", paint(ACCENT, wrapped(&heading(clash), 2)))?;
        print_paths(out, clash)?;
    }
    for one in &radar.unknown {
        writeln!(out, "{}", wrapped(&unknown(one), 2))?;
    }
    let files = |one: &weald_app::Observed| one.left_out.len();
    let left_out: usize = radar.trees.iter().map(files).sum();
    if left_out > 0 {
        writeln!(
            out,
            "{left_out} files are too large to check (--json lists them)"
        )?;
    }
    for one in &found.told {
        writeln!(out, "notified {} about {}", one.to, one.tree)?;
    }
    if radar.pairs.is_empty() && radar.unknown.is_empty() {
        return writeln!(
            out,
            "no conflicts: {} worktrees, {} pairs",
            radar.trees.len(),
            radar.checked
        );
    }
    Ok(())
}

fn print_paths(out: &mut Out, clash: &Clash) -> io::Result<()> {
    for conflict in &clash.conflicts {
        let kinds = conflict.kinds.join(", ");
        let path = path_within(&clean_line(&conflict.path), 3 + kinds.len());
        writeln!(out, "  {path} {}", paint(DIM, kinds))?;
        for hunk in &conflict.hunks {
            writeln!(out, "    line {}", hunk.line)?;
            for (sign, side) in [("<", &hunk.a), (">", &hunk.b)] {
                for line in side.iter().take(LINES) {
                    let line = clean(line).replace('\t', "    ");
                    writeln!(out, "      {sign} {}", within(&line, 8))?;
                }
                if side.len() > LINES {
                    writeln!(out, "      {sign} …")?;
                }
            }
        }
    }
    Ok(())
}
