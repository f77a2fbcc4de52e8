//! `weald agent wait`

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use weald_app::{AgentQuery, AgentView, Failure, Ground, exit};
use weald_core::SignedDuration;
use weald_core::agent::AgentId;

use super::{POLL, print_table};
use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Wait until agents have ended
///
/// Exits 0 when all of them have ended (with --any, one of them), successfully or not, and 5 on timeout. A timeout does
/// not stop the agents.
#[derive(Args)]
pub struct Wait {
    /// Agent IDs, tasks, names or worktrees (default: all running agents)
    #[arg(value_name = "ID", add = completion::agents())]
    ids: Vec<String>,
    /// Return when the first agent ends
    #[arg(long)]
    any: bool,
    /// Maximum time to wait, 30s to 1800s
    #[arg(long, value_name = "TIME", default_value = "1800s", value_parser = patience)]
    timeout: SignedDuration,
}

/// A time that is neither too short to be more than a poll nor too long for whoever waits.
fn patience(text: &str) -> Result<SignedDuration, String> {
    let time = crate::cli::duration(text)?;
    match time.as_secs() {
        30..=1800 => Ok(time),
        _ => Err("from 30s to 1800s".to_owned()),
    }
}

impl Wait {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let ids = self.meant(&ground)?;
        let deadline = Instant::now() + self.timeout.unsigned_abs();
        let timed_out = loop {
            ground.engine.reap_agents()?;
            let mut over = 0;
            for id in &ids {
                over += usize::from(ground.engine.agent(*id)?.status.is_over());
            }
            if over == ids.len() || (self.any && over > 0) {
                break false;
            }
            if Instant::now() >= deadline {
                break true;
            }
            std::thread::sleep(POLL.max(Duration::from_millis(200)));
        };
        let views: Vec<AgentView> = ids
            .iter()
            .map(|id| Ok(ground.engine.agent_view(&ground.place, *id)?))
            .collect::<Result<_, Failure>>()?;
        context.ui.answer(
            || {
                Fields::new()
                    .with("agents", &views)
                    .with("timed_out", &timed_out)
            },
            |out| {
                match views.is_empty() {
                    true => writeln!(out, "no agents are running")?,
                    false => print_table(out, &views)?,
                }
                match timed_out {
                    true => writeln!(out, "timed out; the agents keep running"),
                    false => Ok(()),
                }
            },
        )?;
        Ok(if timed_out { exit::BUSY } else { exit::DONE })
    }

    /// Those that are named, or all that are at work now.
    fn meant(&self, ground: &Ground) -> Result<Vec<AgentId>, Failure> {
        if self.ids.is_empty() {
            let list = ground
                .engine
                .agent_list(&ground.place, &AgentQuery::default())?;
            return Ok(list.agents.iter().map(|view| view.agent.id).collect());
        }
        let find = |name: &String| Ok(ground.engine.find_agent(name)?.id);
        self.ids.iter().map(find).collect()
    }
}
