//! `weald trash …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde::Serialize;
use weald_app::{Failure, PurgeRequest, TrashEntry, TreeError, exit};
use weald_core::SignedDuration;
use weald_core::error_code::ErrorCode;
use weald_core::id::TreeId;

use super::status;
use crate::cli::age;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Fields, Out, Table, ago, clean, size};

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
        let ground = context.ground()?;
        let progress = context.stage("restoring the worktree");
        let trees = ground.trees(context)?;
        let view = match trees.restore(&self.id) {
            Err(error) => return Err(self.refused(error, &trees.trash()?)),
            Ok(view) => view,
        };
        drop(progress);
        context.tell(&ground.engine);
        status::print(context, &view)
    }

    /// A name that is taken has to be freed. Then the name stands for what had it last, so the number is given.
    fn refused(&self, error: TreeError, trash: &[TrashEntry]) -> Failure {
        let TreeError::Exists { name, .. } = &error else {
            return error.into();
        };
        let mut newest = trash.iter().rev();
        let named = newest.find(|entry| entry.name == self.id);
        let id = named.map_or(self.id.clone(), |entry| entry.id.to_string());
        let hint = format!("to free the name: weald rm {name}; then: weald restore {id}");
        Failure::from(error).hint(hint)
    }
}

impl Purge {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.apply {
            context.refuse_agent("purging the trash")?;
        }
        let ground = context.ground()?;
        let progress = context.stage("deleting");
        let request = PurgeRequest {
            older_than: self.older_than,
            apply: self.apply,
            discard: self.discard,
        };
        let mut purged = ground.trees(context)?.purge(&request)?;
        drop(progress);
        context.tell(&ground.engine);
        // Where there is nothing else to tell, it is a refusal.
        if purged.trash.is_empty()
            && purged.failed.len() == 1
            && let Some((_, error)) = purged.failed.pop()
        {
            return Err(self.refused(error));
        }
        let failed = purged.failed.into_iter();
        let failed = failed.map(|(entry, error)| NotPurged::new(entry, self.refused(error)));
        let failed: Vec<_> = failed.collect();
        for one in &failed {
            let kept = format!("{} ({}) was kept: {}", one.name, one.id, one.message);
            context.warn(&clean(&kept));
        }
        context.ui.answer(
            || {
                let fields = Fields::new()
                    .with("trash", &purged.trash)
                    .with("applied", &purged.applied);
                match failed.is_empty() {
                    true => fields,
                    false => fields.with("failed", &failed),
                }
            },
            |out| {
                if purged.trash.is_empty() {
                    let nothing = ["nothing in the trash is that old", "nothing was deleted"];
                    return writeln!(out, "{}", nothing[usize::from(!failed.is_empty())]);
                }
                print(out, &purged.trash, context)?;
                match purged.applied {
                    true => writeln!(
                        out,
                        "deleted; commits that the target lacks: weald restore --purged"
                    ),
                    false => writeln!(out, "nothing was deleted; to delete, add --apply"),
                }
            },
        )?;
        Ok(match failed.is_empty() {
            true => exit::DONE,
            false => exit::REFUSED,
        })
    }

    /// A hint to purge again means what is as old as was asked for.
    fn refused(&self, error: TreeError) -> Failure {
        let mut failure = Failure::from(error);
        let age = format!("{:#}", self.older_than).replace(' ', "");
        let again = format!("clean --trash --older-than {age}");
        failure.hint = failure
            .hint
            .map(|hint| hint.replace("clean --trash", &again));
        failure
    }
}

/// A tree that could not be deleted.
#[derive(Serialize)]
struct NotPurged {
    id: TreeId,
    name: String,
    code: ErrorCode,
    message: String,
    hint: Option<String>,
}

impl NotPurged {
    fn new(entry: TrashEntry, failure: Failure) -> Self {
        Self {
            id: entry.id,
            name: entry.name,
            code: failure.code,
            message: failure.message,
            hint: failure.hint,
        }
    }
}
