//! `weald agent logs`

use clap::Args;

use weald_app::operations::orders::ReadLog;
use weald_app::{Failure, exit};

use super::Which;
use crate::context::Context;
use crate::following::Log;

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
            })?;
            return context.ui.show(&answer, |_| Ok(()));
        }
        let ground = context.ground()?;
        let agent = self.which.find(&ground)?;
        let mut tail = Log::new(context.ui, &ground, agent.id)?.whole(self.raw);
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
