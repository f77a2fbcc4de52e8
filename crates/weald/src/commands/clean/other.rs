//! What `weald clean` frees other than finished worktrees. Each has an older command of its own.

use clap::Args;
use weald_app::{Failure, exit};
use weald_core::SignedDuration;
use weald_core::config::parse_size;

use crate::cli::age;
use crate::commands::{sweep, trash, usage, vault};
use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// The heading of these options.
const HEADING: &str = "Instead of worktrees";

/// What the options of worktrees do not go with.
const WORKTREES: [&str; 4] = ["min_age", "tasks", "orphans", "fetch"];

#[derive(Args, Default)]
#[command(next_help_heading = HEADING)]
pub struct Other {
    /// Permanently delete old worktrees from the trash
    #[arg(long, conflicts_with_all = WORKTREES, conflicts_with_all = ["usage", "free", "leftovers", "vault"])]
    trash: bool,
    /// Only worktrees removed longer ago than this; 0 for all
    #[arg(long, value_name = "7d", value_parser = age, default_value = "7d", requires = "trash")]
    older_than: SignedDuration,
    /// Also delete worktrees that could not be inspected
    #[arg(long, requires = "trash")]
    discard: bool,
    /// Show the disk usage of worktrees (default: all)
    #[arg(long, value_name = "NAME", num_args = 0.., add = completion::trees(), conflicts_with_all = WORKTREES)]
    usage: Option<Vec<String>>,
    /// Delete build directories until SIZE is free
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with_all = WORKTREES)]
    free: Option<u64>,
    /// Release stale locks and leases and remove leftovers
    #[arg(long, conflicts_with_all = WORKTREES, conflicts_with_all = ["usage", "free", "vault"])]
    leftovers: bool,
    /// Share main's packs again and drop redundant packs
    #[arg(long, conflicts_with_all = WORKTREES, conflicts_with_all = ["usage", "free"])]
    vault: bool,
    /// Time to keep a redundant pack
    ///
    /// 0 is only safe if nothing else uses the repository.
    #[arg(long, value_name = "10m", value_parser = age, default_value = "10m", requires = "vault")]
    grace: SignedDuration,
}

impl Other {
    /// Does it, if one of these was asked for.
    pub fn run(self, apply: bool, context: &Context<'_>) -> Option<Result<u8, Failure>> {
        if !self.is_asked_for() {
            return None;
        }
        match apply.then(|| self.refused(context)).transpose() {
            Ok(None | Some(None)) => {}
            Ok(Some(Some(code))) => return Some(Ok(code)),
            Err(failure) => return Some(Err(failure)),
        }
        let done = match self {
            Self {
                trash: true,
                older_than,
                discard,
                ..
            } => trash::Purge {
                older_than,
                apply,
                discard,
            }
            .run(context),
            Self {
                leftovers: true, ..
            } => sweep::Sweep {
                dry_run: !apply,
                again: Some("weald clean --leftovers --apply"),
            }
            .run(context),
            Self {
                vault: true, grace, ..
            } if apply => vault::maintain(context, grace),
            Self { vault: true, .. } => vault::status(context),
            Self { usage, free, .. } if usage.is_some() || free.is_some() => usage::Usage {
                names: usage.unwrap_or_default(),
                free,
                apply,
            }
            .run(context),
            _ => return None,
        };
        Some(done)
    }

    fn is_asked_for(&self) -> bool {
        let shows = self.usage.is_some() || self.free.is_some();
        self.trash || self.leftovers || self.vault || shows
    }

    /// Where nothing may be changed, or nothing would be.
    fn refused(&self, context: &Context<'_>) -> Result<Option<u8>, Failure> {
        if self.usage.is_some() && self.free.is_none() {
            let message = "--usage only shows the disk usage; there is nothing to apply";
            let failure = Failure::new("usage", exit::USAGE, message);
            return Err(failure.hint("weald clean --free SIZE --apply"));
        }
        let Some(variable) = context.clean_is_off()? else {
            return Ok(None);
        };
        let fields = || {
            let fields = Fields::new().with("applied", &false);
            fields.with("disabled", &variable)
        };
        context.ui.answer(fields, |_| Ok(())).map(Some)
    }

    /// Whether nothing is changed without --apply. Looking for leftovers takes the lock of the pool.
    pub fn only_reads(&self) -> bool {
        !self.leftovers
    }
}
