//! `weald agent logs`

use clap::Args;

use weald_app::operations::orders::{FollowLog, ReadLog};
use weald_app::{Failure, exit};

use super::Which;
use crate::context::Context;

/// Show what an agent did and said
///
/// Each line begins with the time since the agent's start. `<` is what the agent was given, `>` a tool that it used, with
/// the first lines of the result below. `--json` has complete results and absolute times. The output of a plain command is
/// printed as it is.
#[derive(Args)]
pub struct Logs {
    #[command(flatten)]
    which: Which,
    /// Keep printing until the agent ends
    #[arg(long, short)]
    follow: bool,
    /// Only the last N lines
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Print all lines of results and prompts
    #[arg(long, conflicts_with = "raw")]
    full: bool,
    /// Print the raw bytes, except to a terminal
    #[arg(long)]
    raw: bool,
}

impl Logs {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if context.ui.is_json() {
            if self.follow {
                return Err(Failure::new(
                    "usage",
                    exit::USAGE,
                    "-f can't be combined with --json here",
                )
                .hint("weald agent logs -f without --json, or weald events -f --json"));
            }
            let answer = context.perform(ReadLog {
                agent: self.which.id,
                tail: self.tail,
                raw: self.raw,
                full: self.full,
            })?;
            return context.ui.show(&answer, |_| Ok(()));
        }
        context.perform(FollowLog {
            agent: self.which.id,
            tail: self.tail,
            raw: self.raw,
            full: self.full,
            follow: self.follow,
        })?;
        Ok(exit::DONE)
    }
}
