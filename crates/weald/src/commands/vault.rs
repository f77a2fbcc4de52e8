//! `weald vault …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::operations::vault::{BringBack, ListKeptWork, MaintainVault, ShowVault};
use weald_app::{Failure, KeptWork, Wanted, exit};
use weald_core::{SignedDuration, Timestamp};

use crate::cli::duration;
use crate::context::Context;
use crate::ui::{ACCENT, Out, ago, clean, paint, short, size};

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
    /// Skip the grace period
    ///
    /// Only safe if nothing else uses the repository.
    #[arg(long)]
    pub now: bool,
    /// Set when weald runs this in the background: only if due
    #[arg(long, hide = true, conflicts_with_all = ["now", "grace"])]
    pub background: bool,
}

impl Default for Vault {
    fn default() -> Self {
        Self::Status(Status {})
    }
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
    let answer = context.perform(ShowVault {})?;
    let vault = &answer.vault;
    context.ui.show(&answer, |out| match vault.exists {
        false => writeln!(
            out,
            "there is no vault yet; it is created with the first worktree"
        ),
        true => {
            writeln!(out, "{}", vault.path.display())?;
            writeln!(
                out,
                "  {} packs, {}, {} of them shared with main ({})",
                vault.packs,
                size(vault.bytes),
                size(vault.shared_bytes),
                size(vault.main_bytes)
            )
        }
    })
}

pub fn list(context: &Context<'_>) -> Result<u8, Failure> {
    let answer = context.perform(ListKeptWork {})?;
    context.ui.show(&answer, |out| {
        if answer.kept.is_empty() {
            return writeln!(
                out,
                "nothing is kept of deleted worktrees; for removed ones: weald restore"
            );
        }
        let mut kept = answer.kept.iter();
        kept.try_for_each(|kept| told(out, kept, context.now()))
    })
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
        let tree = self.id;
        let answer = context.perform(BringBack { tree, wanted })?;
        let back = &answer.restored;
        context.ui.show(&answer, |out| {
            let (branch, commit) = (clean(&back.branch), short(&back.commit));
            writeln!(out, "branch {} is at {commit}", paint(ACCENT, &branch))?;
            writeln!(out, "  look at it: git log {branch}")?;
            writeln!(out, "  work on it: weald new NAME --base {branch}")
        })
    }
}

impl Maintain {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.background {
            context.step_back();
            context.perform(MaintainVault {
                grace: self.grace,
                if_due: true,
            })?;
            return Ok(exit::DONE);
        }
        let grace = match self.now {
            true => SignedDuration::ZERO,
            false => self.grace,
        };
        maintain(context, grace)
    }
}

pub fn maintain(context: &Context<'_>, grace: SignedDuration) -> Result<u8, Failure> {
    let if_due = false;
    let answer = context.perform(MaintainVault { grace, if_due })?;
    context.ui.show(&answer, |out| match &answer.vault {
        None => Ok(()),
        Some(done) => writeln!(
            out,
            "{} packs shared, {} dropped, {} to be dropped later",
            done.linked, done.dropped, done.waiting
        ),
    })
}
