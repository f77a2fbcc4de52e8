//! `weald vault …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::json;
use weald_app::{Failure, KeptWork, Wanted};
use weald_core::{SignedDuration, Timestamp};

use super::land::short;
use crate::cli::duration;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, ago, clean, paint, size};

/// Show and maintain the shared object store.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Vault {
    Status(Status),
    List(List),
    Restore(Restore),
    Maintain(Maintain),
}

/// Show the size of the vault and how much main shares
#[derive(Args)]
pub struct Status {}

/// List saved work of permanently deleted worktrees
///
/// Shows unlanded commits and snapshots, each with the command that creates a branch from it.
#[derive(Args)]
pub struct List {}

/// Create a branch from the work of a deleted worktree
///
/// Only for worktrees that were permanently deleted. The branch has the name of the worktree's branch, with a number if that
/// name is taken. The vault is not changed.
#[derive(Args)]
pub struct Restore {
    /// Number or name of the worktree
    #[arg(value_name = "ID")]
    pub id: String,
    /// Commit to use instead of its last one (see `weald restore --purged`)
    #[arg(value_name = "COMMIT")]
    pub commit: Option<String>,
    /// Use the files of this snapshot, including untracked files
    #[arg(long, value_name = "N", conflicts_with = "commit")]
    pub snapshot: Option<u64>,
}

/// Share main's packs again and drop redundant packs
///
/// A pack is redundant if other packs contain all of its objects. A later run drops it, after the grace period at the
/// earliest.
#[derive(Args)]
pub struct Maintain {
    /// Time to keep a redundant pack
    #[arg(long, value_name = "10m", value_parser = duration, default_value = "10m")]
    pub grace: SignedDuration,
    /// Skip the grace period; only if nothing else uses the repository
    #[arg(long)]
    pub now: bool,
    /// Set when weald runs this in the background: only if due
    #[arg(long, hide = true, conflicts_with_all = ["now", "grace"])]
    pub background: bool,
}

impl Vault {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Status(_) => status(context),
            Self::List(_) => list(context),
            Self::Restore(command) => command.run(context),
            Self::Maintain(command) => command.run(context),
        }
    }
}

pub fn status(context: &Context<'_>) -> Result<u8, Failure> {
    let ground = context.ground()?;
    let vault = ground.trees(context)?.vault();
    let status = vault.status();
    let answer = json!({
        "path": vault.path(),
        "exists": status.exists,
        "packs": status.packs,
        "bytes": status.bytes,
        "shared_bytes": status.shared_bytes,
        "main_bytes": status.main_bytes,
    });
    context.ui.answer(
        || Fields::new().with("vault", &answer),
        |out| match status.exists {
            false => writeln!(
                out,
                "there is no vault yet; it is created with the first worktree"
            ),
            true => {
                writeln!(out, "{}", vault.path().display())?;
                writeln!(
                    out,
                    "  {} packs, {}, {} of them shared with main ({})",
                    status.packs,
                    size(status.bytes),
                    size(status.shared_bytes),
                    size(status.main_bytes)
                )
            }
        },
    )
}

pub fn list(context: &Context<'_>) -> Result<u8, Failure> {
    let ground = context.ground()?;
    let found = ground.trees(context)?.kept_work()?;
    context.ui.answer(
        || Fields::new().with("kept", &found),
        |out| {
            if found.is_empty() {
                return writeln!(
                    out,
                    "nothing is kept of deleted worktrees; for removed ones: weald restore"
                );
            }
            found
                .iter()
                .try_for_each(|kept| told(out, kept, context.now()))
        },
    )
}

fn told(out: &mut Out, kept: &KeptWork, now: Timestamp) -> io::Result<()> {
    let id = kept.id;
    writeln!(
        out,
        "{} {} ({})",
        paint(ACCENT, id),
        kept.name,
        clean(&kept.branch)
    )?;
    for (place, known) in kept.commits.iter().enumerate() {
        let commit = short(&known.commit);
        let names = clean(&known.names.join(", "));
        let which = match place {
            0 => String::new(),
            _ => format!(" --commit {commit}"),
        };
        writeln!(
            out,
            "  {commit} {names}: weald restore {id} --purged{which}"
        )?;
    }
    for view in &kept.snapshots {
        let (number, why) = (view.id, clean(&view.reason));
        let age = ago(view.taken_at, now);
        writeln!(
            out,
            "  snapshot {number}, {age} ago ({why}): weald restore {id} --purged --snapshot {number}"
        )?;
    }
    Ok(())
}

impl Restore {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let wanted = match (self.snapshot, self.commit) {
            (Some(number), _) => Wanted::Snapshot(number),
            (None, Some(commit)) => Wanted::Commit(commit),
            (None, None) => Wanted::Head,
        };
        let ground = context.ground()?;
        let back = ground.trees(context)?.bring_back(&self.id, &wanted)?;
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("restored", &back),
            |out| {
                let (branch, commit) = (clean(&back.branch), short(&back.commit));
                writeln!(out, "branch {} is at {commit}", paint(ACCENT, &branch))?;
                writeln!(out, "  look at it: git log {branch}")?;
                writeln!(out, "  work on it: weald new NAME --base {branch}")
            },
        )
    }
}

impl Maintain {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.background {
            context.step_back();
        }
        let ground = context.ground()?;
        let vault = ground.trees(context)?.vault();
        if self.background {
            vault.maintain_if_wanted(std::time::SystemTime::from(context.now()))?;
            return Ok(0);
        }
        let grace = match self.now {
            true => std::time::Duration::ZERO,
            false => self.grace.unsigned_abs(),
        };
        let now = std::time::SystemTime::from(context.now());
        let progress = context.stage("keeping up the vault");
        let done = vault.maintain(now, grace)?;
        drop(progress);
        let answer = json!({
            "linked": done.linked, "dropped": done.dropped, "waiting": done.waiting,
        });
        context.ui.answer(
            || Fields::new().with("vault", &answer),
            |out| {
                writeln!(
                    out,
                    "{} packs shared, {} dropped, {} to be dropped later",
                    done.linked, done.dropped, done.waiting
                )
            },
        )
    }
}
