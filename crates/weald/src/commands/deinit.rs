//! `weald deinit`

use std::io::{self, IsTerminal, Write};

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::deinit::RemoveWeald;

use crate::context::Context;
use crate::ui::{WARNING, clean_line, paint};

/// Remove weald from this repository
///
/// Removes worktrees, branches that weald made, registrations, entries of `weald install --project`, lines in info/exclude, and
/// weald's state, tasks included. What landed stays, as do weald.toml and your own settings. Refuses while work would be lost
/// and while anything runs. Without --apply it lists what goes; on a terminal it then asks.
#[derive(Args)]
pub struct Deinit {
    /// Remove it without asking
    #[arg(long, short = 'y', visible_alias = "yes")]
    apply: bool,
    /// Remove it even with work that never landed
    #[arg(long)]
    discard: bool,
}

impl Deinit {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let at_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let answer = context.perform(RemoveWeald {
            apply: self.apply,
            ask: !self.apply && at_terminal && !context.ui.is_json(),
            discard: self.discard,
        })?;
        let deinit = &answer.deinit;
        context.ui.show(&answer, |out| {
            if !deinit.in_the_way.is_empty() {
                writeln!(out, "{}", paint(WARNING, "nothing was removed:"))?;
                for one in &deinit.in_the_way {
                    writeln!(out, "  {}", clean_line(&one.what))?;
                    writeln!(out, "    {}", clean_line(&one.hint))?;
                }
                return Ok(());
            }
            if deinit.removes.is_empty() {
                return writeln!(out, "weald is not used in this repository");
            }
            writeln!(
                out,
                "{}",
                if deinit.applied {
                    "removed:"
                } else {
                    "would remove:"
                }
            )?;
            deinit
                .removes
                .iter()
                .try_for_each(|what| writeln!(out, "  {}", clean_line(what)))?;
            if !deinit.keeps.is_empty() {
                writeln!(
                    out,
                    "{}",
                    if deinit.applied {
                        "kept:"
                    } else {
                        "would keep:"
                    }
                )?;
            }
            deinit
                .keeps
                .iter()
                .try_for_each(|what| writeln!(out, "  {}", clean_line(what)))?;
            match deinit.applied {
                true => writeln!(out, "weald is no longer used in this repository"),
                false => writeln!(out, "to remove it: weald deinit --apply"),
            }
        })?;
        Ok(RemoveWeald::exit(&answer))
    }
}
