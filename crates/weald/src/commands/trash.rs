//! `weald trash …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_core::SignedDuration;
use weald_engine::TrashEntry;

use super::status;
use crate::cli::duration;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{ACCENT, DIM, Fields, Out, Table, ago};

/// See and restore removed trees, or delete them for good.
#[derive(Subcommand)]
pub enum Trash {
    List(List),
    Restore(Restore),
    Purge(Purge),
}

/// List removed trees
#[derive(Args)]
pub struct List {}

/// Bring a removed tree back
#[derive(Args)]
pub struct Restore {
    /// Its number or its name
    #[arg(value_name = "ID")]
    id: String,
}

/// Delete old trees in the trash for good
///
/// Says what it would delete; only --apply does it. Their commits stay in the vault.
#[derive(Args)]
pub struct Purge {
    /// Only what has been there for longer
    #[arg(long, value_name = "7d", value_parser = duration, default_value = "7d")]
    older_than: SignedDuration,
    /// Really delete
    #[arg(long)]
    apply: bool,
}

impl Trash {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::List(_) => list(context),
            Self::Restore(command) => command.run(context),
            Self::Purge(command) => command.run(context),
        }
    }
}

fn list(context: &Context<'_>) -> Result<u8, Failure> {
    let ground = context.ground()?;
    let entries = ground.trees(context)?.trash()?;
    context.ui.answer(
        || Fields::new().with("trash", &entries),
        |out| match entries.is_empty() {
            true => writeln!(out, "the trash is empty"),
            false => print(out, &entries, context),
        },
    )
}

fn print(out: &mut Out, entries: &[TrashEntry], context: &Context<'_>) -> io::Result<()> {
    let mut table = Table::new(&["ID", "NAME", "AGE", "SIZE", "BRANCH", "PATH"]);
    for entry in entries {
        let size = match entry.exists {
            true => format!("{} KiB", entry.bytes / 1024),
            false => "gone".to_owned(),
        };
        table.row(vec![
            (entry.id.to_string(), ACCENT),
            (entry.name.clone(), Default::default()),
            (ago(entry.trashed_at, context.now()), Default::default()),
            (size, Default::default()),
            (entry.branch.clone(), Default::default()),
            (entry.path.display().to_string(), DIM),
        ]);
    }
    table.print(out)
}

impl Restore {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let progress = context.ui.progress("bringing it back");
        let view = ground.trees(context)?.restore(&self.id)?;
        drop(progress);
        context.tell(&ground.engine);
        status::print(context, &view)
    }
}

impl Purge {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let progress = context.ui.progress("deleting");
        let purged = ground.trees(context)?.purge(self.older_than, self.apply)?;
        drop(progress);
        context.tell(&ground.engine);
        context.ui.answer(
            || {
                Fields::new()
                    .with("trash", &purged.trash)
                    .with("applied", &purged.applied)
            },
            |out| {
                if purged.trash.is_empty() {
                    return writeln!(out, "nothing in the trash is that old");
                }
                print(out, &purged.trash, context)?;
                match purged.applied {
                    true => writeln!(out, "deleted"),
                    false => writeln!(out, "nothing was deleted; do it with --apply"),
                }
            },
        )
    }
}
