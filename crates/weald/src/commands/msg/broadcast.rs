//! `weald msg broadcast`

use clap::Args;
use weald_app::Failure;
use weald_core::message::MessageType;

use super::{About, print_messages};
use crate::cli::SessionArg;
use crate::context::Context;

/// Send a message to every session
#[derive(Args)]
pub struct Broadcast {
    /// Text of the message
    text: String,
    #[command(flatten)]
    about: About,
    #[command(flatten)]
    session: SessionArg,
}

impl Broadcast {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let from = context.session(&engine, self.session.session.as_ref())?;
        // Each copy gets its own reader.
        let draft = self
            .about
            .draft(from.clone(), from, MessageType::Message, self.text);
        let messages = engine.broadcast(draft)?;
        context.tell(&engine);
        print_messages(context, &messages, "there are no other sessions")
    }
}
