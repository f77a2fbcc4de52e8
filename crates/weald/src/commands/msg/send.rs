//! `weald msg send`

use clap::{Args, ValueEnum};
use weald_app::Failure;
use weald_core::message::MessageType;
use weald_core::name::SessionName;

use super::super::inside::Inside;
use super::{About, notice_unread, print_inside, print_sent};
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Send a message to another session
///
/// Questions, plans and shutdown requests stay open until they get a reply.
#[derive(Args)]
pub struct Send {
    /// Session to send to
    #[arg(value_name = "TO", add = completion::sessions())]
    to: SessionName,
    /// Text of the message
    text: String,
    /// Type of message
    #[arg(long = "type", value_name = "TYPE", default_value = "message")]
    kind: Kind,
    #[command(flatten)]
    about: About,
    #[command(flatten)]
    session: SessionArg,
}

/// Types that begin something; replies go through `weald msg reply`.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Message,
    Result,
    Question,
    Plan,
    Shutdown,
}

impl Send {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let from = context.session(&engine, self.session.session.as_ref())?;
        let kind = self.kind();
        let message = engine.send(self.about.draft(from, self.to, kind, self.text))?;
        context.tell(&engine);
        let notice = notice_unread(context, &engine, &message.to)?;
        print_sent(context, &[message], notice.as_deref())
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let kind = self.kind();
        let ask = self.about.ask(self.to, kind, self.text);
        let reply = inside.ask_as(self.session.session.as_ref(), None, ask)?;
        print_inside(inside, &reply, "")
    }

    fn kind(&self) -> MessageType {
        match self.kind {
            Kind::Message => MessageType::Message,
            Kind::Result => MessageType::Result,
            Kind::Question => MessageType::Question,
            Kind::Plan => MessageType::Plan,
            Kind::Shutdown => MessageType::Shutdown,
        }
    }
}
