//! `weald trash …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::operations::Operation;
use weald_app::operations::trash::{ListTrash, PurgeTrash, RestoreTree};
use weald_app::{Failure, TrashEntry};
use weald_core::SignedDuration;

use super::status;
use crate::cli::age;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, Table, ago, size};

/// List, restore or permanently delete removed worktrees.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Trash {
    List(List),
    Restore(Restore),
    Purge(Purge),
}

/// List removed worktrees
#[derive(Args)]
pub struct List {}

/// Restore a removed worktree
#[derive(Args)]
pub struct Restore {
    /// Number or name of the worktree
    #[arg(value_name = "ID")]
    pub id: String,
}

/// Permanently delete old worktrees from the trash
///
/// Without --apply, only lists them; agents may not use --apply. Their commits stay in the vault, which imports missing ones
/// first.
#[derive(Args)]
pub struct Purge {
    /// Only worktrees removed longer ago than this; 0 for all
    #[arg(long, value_name = "7d", value_parser = age, default_value = "7d")]
    pub older_than: SignedDuration,
    /// Delete the listed worktrees
    #[arg(long)]
    pub apply: bool,
    /// Also purge worktrees that could not be inspected
    #[arg(long)]
    pub discard: bool,
}

impl Default for Trash {
    fn default() -> Self {
        Self::List(List {})
    }
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

pub fn list(context: &Context<'_>) -> Result<u8, Failure> {
    let answer = context.perform(ListTrash {})?;
    context
        .ui
        .show(&answer, |out| match answer.trash.is_empty() {
            true => writeln!(out, "the trash is empty"),
            false => print(out, &answer.trash, context),
        })
}

fn print(out: &mut Out, entries: &[TrashEntry], context: &Context<'_>) -> io::Result<()> {
    let mut table = Table::new(&["ID", "NAME", "AGE", "SIZE", "BRANCH", "PATH"]);
    for entry in entries {
        let takes = match entry.exists {
            true => size(entry.bytes),
            false => "gone".to_owned(),
        };
        table.row(vec![
            (entry.id.to_string(), ACCENT),
            (entry.name.clone(), Default::default()),
            (ago(entry.trashed_at, context.now()), Default::default()),
            (takes, Default::default()),
            (entry.branch.clone(), Default::default()),
            (entry.path.display().to_string(), DIM),
        ]);
    }
    table.print(out)
}

impl Restore {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(RestoreTree { tree: self.id })?;
        status::print(context, &answer)
    }
}

impl Purge {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let purged = context.perform(PurgeTrash {
            older_than: self.older_than,
            apply: self.apply,
            discard: self.discard,
        })?;
        context.ui.show(&purged, |out| {
            if purged.trash.is_empty() {
                return match purged.failed.is_empty() {
                    true => writeln!(out, "nothing in the trash is that old"),
                    false => writeln!(out, "nothing was deleted"),
                };
            }
            print(out, &purged.trash, context)?;
            match purged.applied {
                true => writeln!(
                    out,
                    "deleted; commits that the target lacks: weald restore --purged"
                ),
                false => writeln!(out, "nothing was deleted; to delete, add --apply"),
            }
        })?;
        Ok(PurgeTrash::exit(&purged))
    }
}
