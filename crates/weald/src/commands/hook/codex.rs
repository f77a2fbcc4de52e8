//! `weald hook codex EVENT`: Codex took over Claude Code's contract for hooks, so this is the same under its own name.
//!
//! It has no events for worktrees, and its tool for edits names no file, so nothing is judged before a tool: what keeps
//! an agent in its tree is the sandbox.

use clap::Args;

use weald_app::{Failure, exit};

use super::broker_side::BrokerSide;
use super::contract::{Client, Event, Moment, converse, perform};
use super::host_side::HostSide;
use crate::commands::inside::Inside;
use crate::context::Context;

/// Answer a hook of Codex
///
/// Reads one JSON object from stdin and prints the hook's answer. Events: session-start, post-tool-use, stop.
/// `weald install codex` sets them up. In a repository without weald they do nothing.
#[derive(Args)]
pub struct Codex {
    /// Event to answer
    #[arg(value_name = "EVENT")]
    event: String,
}

impl Codex {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let host = |event: Event, hook: &Moment<'_>| match HostSide::find(hook)? {
            Some(side) if event.is_of_conversation() => converse(event, hook, &side),
            _ => Ok(exit::DONE),
        };
        perform(&self.event, Client::Codex, context, host)
    }

    /// The same from inside a tree: by its broker.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let broker = |event: Event, hook: &Moment<'_>| match event.is_of_conversation() {
            true => converse(event, hook, &BrokerSide::new(inside, hook)),
            false => Ok(exit::DONE),
        };
        perform(&self.event, Client::Codex, inside.context, broker)
    }
}
