//! `weald vault …`

use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::json;
use weald_core::SignedDuration;

use crate::cli::duration;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::Fields;

/// See and keep up the repository that trees borrow objects from.
#[derive(Subcommand)]
pub enum Vault {
    Status(Status),
    Maintain(Maintain),
}

/// Say how large the vault is, and how much of it is shared with main
#[derive(Args)]
pub struct Status {}

/// Share main's packs again, and drop packs whose every object is in others
///
/// A pack that became redundant is dropped by a later run, at the earliest after the grace.
#[derive(Args)]
pub struct Maintain {
    /// How long a redundant pack stays
    #[arg(long, value_name = "10m", value_parser = duration, default_value = "10m")]
    grace: SignedDuration,
    /// No grace at all: when nothing else uses the repository
    #[arg(long)]
    now: bool,
}

impl Vault {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Status(_) => status(context),
            Self::Maintain(command) => command.run(context),
        }
    }
}

fn status(context: &Context<'_>) -> Result<u8, Failure> {
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
            false => writeln!(out, "there is no vault yet; the first tree makes it"),
            true => {
                writeln!(out, "{}", vault.path().display())?;
                let kib = |bytes: u64| bytes / 1024;
                writeln!(
                    out,
                    "  {} packs, {} KiB, {} KiB of them shared with main ({} KiB)",
                    status.packs,
                    kib(status.bytes),
                    kib(status.shared_bytes),
                    kib(status.main_bytes)
                )
            }
        },
    )
}

impl Maintain {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let vault = ground.trees(context)?.vault();
        let grace = match self.now {
            true => std::time::Duration::ZERO,
            false => self.grace.unsigned_abs(),
        };
        let now = std::time::SystemTime::from(context.now());
        let progress = context.ui.progress("keeping up the vault");
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
