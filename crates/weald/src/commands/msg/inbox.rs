//! `weald msg inbox`

use clap::Args;
use serde_json::Value;
use weald_app::Ask;
use weald_app::{Failure, InboxQuery};
use weald_core::SignedDuration;
use weald_server::broker::Reply;

use super::super::inside::Inside;
use super::{patiently, print_inside, print_messages, waiting};
use crate::cli::{SessionArg, duration};
use crate::context::Context;

/// Read your messages
///
/// `--consume` removes the messages: each one goes to exactly one reader.
#[derive(Args)]
pub struct Inbox {
    /// Remove the messages from the inbox
    #[arg(long, conflicts_with = "all")]
    consume: bool,
    /// Include messages that were consumed before
    #[arg(long)]
    all: bool,
    /// Maximum number of messages
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Wait this long for a message
    #[arg(long, value_name = "60s", value_parser = duration)]
    wait: Option<SignedDuration>,
    #[command(flatten)]
    session: SessionArg,
}

impl Inbox {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let owner = context.session(&engine, self.session.session.as_ref())?;
        let query = InboxQuery {
            consume: self.consume,
            all: self.all,
            limit: self.limit,
            wait: waiting(self.wait),
        };
        let messages = engine.inbox(&owner, query)?;
        context.tell(&engine);
        print_messages(context, &messages, "no messages")
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let ask = || {
            let ask = Ask::MsgInbox {
                consume: self.consume,
                all: self.all,
                limit: self.limit,
            };
            inside.ask_as(self.session.session.as_ref(), None, ask)
        };
        let is_empty = |answered: &Result<Reply, Failure>| {
            let messages = answered.as_ref().map(|reply| reply.answer.get("messages"));
            messages.is_ok_and(|list| list.and_then(Value::as_array).is_some_and(Vec::is_empty))
        };
        let reply = patiently(waiting(self.wait), ask, is_empty)?;
        print_inside(inside, &reply, "no messages")
    }
}
