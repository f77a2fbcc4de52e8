//! `weald agent steer`, `pause`, `resume`, `stop` and `wait`

use std::io::Write;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::orders::{
    PauseAgent, ResumeAgent, SteerAgent, StopAgent, WaitForAgents,
};
use weald_core::SignedDuration;

use super::{Which, print_agent, print_table};
use crate::cli::SessionArg;
use crate::commands::msg::print_messages;
use crate::completion;
use crate::context::Context;

/// Send instructions to an agent
///
/// The text goes to its inbox, ahead of less urgent messages. An agent whose input is open reads it at once; any other
/// reads it when it next checks its inbox.
#[derive(Args)]
pub struct Steer {
    #[command(flatten)]
    which: Which,
    /// Text of the message
    text: String,
    /// Deliver it before all other messages
    #[arg(long)]
    urgent: bool,
    #[command(flatten)]
    session: SessionArg,
}

/// Pause an agent and all its processes
///
/// Continue it with `weald agent resume`. Meanwhile it keeps its claim and name, and its time limit does not run.
#[derive(Args)]
pub struct Pause {
    #[command(flatten)]
    which: Which,
}

/// Resume a paused agent
#[derive(Args)]
pub struct Resume {
    #[command(flatten)]
    which: Which,
}

/// Stop an agent and keep its worktree
///
/// The agent is asked to exit; after one second all its processes are killed. Its task is marked as failed, or released
/// with --release.
#[derive(Args)]
pub struct Stop {
    #[command(flatten)]
    which: Which,
    /// Release the task so that another agent can claim it
    #[arg(long)]
    release: bool,
    /// Reason to record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Wait until the agent has ended
    #[arg(long)]
    wait: bool,
}

/// Wait until agents have ended
///
/// Exits 0 when all of them have ended (with --any, one of them), successfully or not, and 5 on timeout. A timeout does
/// not stop the agents.
#[derive(Args)]
pub struct Wait {
    /// Agents, tasks, names or worktrees (default: all that run)
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

impl Steer {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = SteerAgent {
            agent: self.which.id,
            text: self.text,
            urgent: self.urgent,
        };
        let answer = context.perform_as(&self.session.caller(), request)?;
        print_messages(context, &answer, "")
    }
}

impl Pause {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let agent = self.which.id;
        let answer = context.perform(PauseAgent { agent })?;
        let id = answer.view().agent.id;
        let told = format!("is paused; to continue it: weald agent resume {id}");
        print_agent(context, &answer, &told)
    }
}

impl Resume {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let agent = self.which.id;
        print_agent(
            context,
            &context.perform(ResumeAgent { agent })?,
            "continues",
        )
    }
}

impl Stop {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let told = match self.wait {
            true => "is stopped; its worktree is kept",
            false => "was asked to stop; its worktree is kept",
        };
        let answer = context.perform(StopAgent {
            agent: self.which.id,
            release: self.release,
            reason: self.reason,
            wait: self.wait,
        })?;
        print_agent(context, &answer, told)
    }
}

impl Wait {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(WaitForAgents {
            agents: self.ids,
            any: self.any,
            timeout: self.timeout,
        })?;
        context.ui.show(&answer, |out| {
            match answer.agents.is_empty() {
                true => writeln!(out, "no agents are running")?,
                false => print_table(out, &answer.agents)?,
            }
            match answer.timed_out {
                true => writeln!(out, "timed out; the agents keep running"),
                false => Ok(()),
            }
        })?;
        Ok(WaitForAgents::exit(&answer))
    }
}
