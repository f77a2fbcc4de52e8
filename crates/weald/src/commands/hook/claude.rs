//! `weald hook claude EVENT`: what Claude Code calls, worktrees included.

use clap::Args;

use weald_app::{Failure, exit};

use super::broker_side::BrokerSide;
use super::contract::{Client, Event, converse, perform};
use super::host_side::HostSide;
use super::worktree;
use crate::commands::inside::Inside;
use crate::context::Context;

/// Answer a hook of Claude Code
///
/// Reads one JSON object from stdin and prints the hook's answer. Events: worktree-create, worktree-remove, session-start,
/// pre-tool-use, post-tool-use, stop. `weald install claude` sets them up, and docs/claude-code.md explains each. In a
/// repository without weald they do nothing.
#[derive(Args)]
pub struct Claude {
    /// Event to answer
    #[arg(value_name = "EVENT")]
    event: String,
}

impl Claude {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        perform(
            &self.event,
            Client::Claude,
            context,
            |event, hook| match event {
                Event::WorktreeCreate => worktree::create(hook),
                Event::WorktreeRemove => worktree::remove(hook),
                event => match HostSide::find(hook)? {
                    Some(side) => converse(event, hook, &side),
                    None => Ok(exit::DONE),
                },
            },
        )
    }

    /// The same from inside a tree: by its broker. Trees come and go outside.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        perform(
            &self.event,
            Client::Claude,
            inside.context,
            |event, hook| match event {
                Event::WorktreeCreate if inside.context.is_confined() => {
                    Err(Failure::nested_tree())
                }
                Event::WorktreeCreate => worktree::create(hook),
                Event::WorktreeRemove if inside.context.is_confined() => {
                    hook.context.note(
                        "a worktree can't be removed from inside a sandbox; nothing was changed",
                    );
                    Ok(exit::DONE)
                }
                Event::WorktreeRemove => worktree::remove(hook),
                event => converse(event, hook, &BrokerSide::new(inside, hook)),
            },
        )
    }
}
