//! `weald race`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::races::{
    DropRace, DroppedRace, PickEntry, RaceView, ShowRace, StartRace,
};
use weald_core::meant::Word;

use super::work_told;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Out, Table};

/// Give several agents the same task and land the best
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Race {
    #[command(subcommand)]
    command: Option<RaceCommand>,
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "TASK", required = true, add = completion::tasks())]
    task: Option<String>,
    /// Number of agents
    #[arg(short = 'n', long, value_name = "K", value_parser = clap::value_parser!(u8).range(2..=26))]
    count: Option<u8>,
    /// Drivers, one per entry, for example claude,codex
    #[arg(
        long,
        value_name = "DRIVERS",
        value_delimiter = ',',
        conflicts_with = "words"
    )]
    with: Vec<String>,
    /// Model to use
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Return at once; the entries run in the background
    #[arg(long)]
    detach: bool,
    /// Command of every entry; $WEALD_ROLE identifies the entry
    #[arg(last = true, value_name = "CMD")]
    words: Vec<String>,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum RaceCommand {
    /// Compare the results of the entries side by side
    Show {
        /// Task ID, or its worktree, agent, branch or path
        #[arg(value_name = "TASK", add = completion::tasks())]
        task: Word,
    },
    /// Land one entry and trash the others
    Pick {
        /// Task ID, or its worktree, agent, branch or path
        #[arg(value_name = "TASK", add = completion::tasks())]
        task: Word,
        /// Entry: its letter, worktree or agent
        #[arg(value_name = "NAME")]
        entry: String,
        /// Report to record if its agent sent none
        #[arg(long, value_name = "TEXT")]
        report: Option<String>,
    },
    /// End a race without a winner and trash its worktrees
    Drop {
        /// Task ID, or its worktree, agent, branch or path
        #[arg(value_name = "TASK", add = completion::tasks())]
        task: Word,
    },
}

impl Race {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match (self.command, self.task) {
            (Some(RaceCommand::Show { task }), _) => {
                let answer = context.perform(ShowRace { task })?;
                context.ui.show(&answer, |out| print(out, &answer))
            }
            (
                Some(RaceCommand::Pick {
                    task,
                    entry,
                    report,
                }),
                _,
            ) => {
                let answer = context.perform(PickEntry {
                    task,
                    entry,
                    report,
                })?;
                context
                    .ui
                    .show(&answer, |out| work_told::tell(out, &answer))?;
                Ok(PickEntry::exit(&answer))
            }
            (Some(RaceCommand::Drop { task }), _) => {
                let answer = context.perform(DropRace { task })?;
                context.ui.show(&answer, |out| print_dropped(out, &answer))
            }
            (None, Some(task)) => {
                let answer = context.perform(StartRace {
                    task,
                    count: self.count,
                    drivers: self.with,
                    model: self.model,
                    command: self.words,
                    detach: self.detach,
                })?;
                context.ui.show(&answer, |out| print(out, &answer))?;
                Ok(StartRace::exit(&answer))
            }
            (None, None) => Err(Failure::bug()),
        }
    }
}

/// The entries, side by side.
fn print(out: &mut Out, view: &RaceView) -> io::Result<()> {
    let entries = &view.race.entries;
    let heads = [
        "", "WORKTREE", "DRIVER", "END", "EXIT", "TIME", "FILES", "LINES", "CHECKED", "TOKENS",
        "COST", "REPORT",
    ];
    let mut table = Table::new(&heads);
    for entry in entries {
        let plain = |text: String| (text, Default::default());
        let lines = match (entry.added, entry.deleted) {
            (Some(added), Some(deleted)) => format!("+{added} -{deleted}"),
            _ => String::new(),
        };
        let tree = entry.tree.as_ref().map(ToString::to_string);
        let state = match entry.picked {
            true => "picked".to_owned(),
            false => entry.state.replace('_', " "),
        };
        table.row(vec![
            (entry.entry.clone(), ACCENT),
            plain(tree.unwrap_or_default()),
            plain(entry.driver.clone()),
            plain(state),
            plain(entry.exit.map_or(String::new(), |code| code.to_string())),
            plain(format!("{} s", entry.seconds)),
            plain(entry.files.to_string()),
            plain(lines),
            plain(entry.verification.as_str().to_owned()),
            plain(entry.tokens.map_or(String::new(), count)),
            plain(
                entry
                    .cost_usd
                    .map_or(String::new(), |cost| format!("${cost:.2}")),
            ),
            plain(entry.report.clone()),
        ]);
    }
    table.print(out)?;
    if entries.iter().all(|entry| !entry.picked) {
        let id = &view.race.task;
        writeln!(
            out,
            "to see one: weald diff NAME; to land one: weald race pick {id} a; to land none: weald race drop {id}"
        )?;
    }
    Ok(())
}

/// A number of tokens, short: `850`, `12k`, `3.4M`.
fn count(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens / 100_000 % 10),
    }
}

fn print_dropped(out: &mut Out, answer: &DroppedRace) -> io::Result<()> {
    for one in &answer.race.dropped {
        let (name, id) = (&one.tree.name, one.tree.id);
        writeln!(out, "{name} is in the trash: weald restore {id}")?;
    }
    let id = &answer.race.task;
    match &answer.picked {
        Some(tree) => writeln!(out, "the race of task {id} has ended; {tree} was picked"),
        None => writeln!(out, "the race of task {id} has ended; nothing landed"),
    }
}
