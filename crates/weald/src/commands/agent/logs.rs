//! `weald agent logs`

use clap::Args;

use weald_app::{Failure, exit};

use super::Which;
use crate::context::Context;
use crate::following::Log;
use crate::ui::Fields;

/// Show an agent's output
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
    /// Print the raw bytes, except to a terminal
    #[arg(long)]
    raw: bool,
}

impl Logs {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let agent = self.which.find(&ground)?;
        let mut tail = Log::new(context, &ground, agent.id)?.whole(self.raw);
        if context.ui.is_json() {
            if self.follow {
                return Err(Failure::new(
                    "usage",
                    exit::USAGE,
                    "-f can't be combined with --json here",
                )
                .hint("weald agent logs -f without --json, or weald events -f --json"));
            }
            let text = tail.text(self.tail)?;
            return context.ui.answer(
                || Fields::new().with("agent", &agent.id).with("text", &text),
                |_| Ok(()),
            );
        }
        tail.show_last(self.tail)?;
        while self.follow && !context.ui.nobody_reads() {
            ground.engine.reap_agents()?;
            let is_over = ground.engine.agent(agent.id)?.status.is_over();
            tail.show()?;
            if is_over {
                break;
            }
            std::thread::sleep(super::POLL);
        }
        Ok(exit::DONE)
    }
}
