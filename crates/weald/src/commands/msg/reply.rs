//! `weald msg reply`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use weald_app::Ask;
use weald_app::{Failure, ReplyOutcome};
use weald_core::id::MessageId;
use weald_core::message::{Message, MessageType, ReplyDraft, RequestState};

use super::super::inside::{Inside, field};
use super::print_message;
use crate::cli::SessionArg;
use crate::context::Context;
use crate::ui::{Fields, Out};

/// Reply to a question, plan or shutdown request
///
/// A second reply to the same request is ignored.
#[derive(Args)]
pub struct Reply {
    /// Message to reply to
    #[arg(value_name = "ID")]
    id: MessageId,
    /// Text of the reply
    #[arg(default_value = "")]
    text: String,
    /// Approve the plan or shutdown
    #[arg(long, conflicts_with = "reject")]
    approve: bool,
    /// Reject the plan or shutdown
    #[arg(long)]
    reject: bool,
    /// Fail unless the request expects this type of reply
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<Kind>,
    #[command(flatten)]
    session: SessionArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Answer,
    #[value(name = "plan_verdict", alias = "plan-verdict")]
    PlanVerdict,
    #[value(name = "shutdown_reply", alias = "shutdown-reply")]
    ShutdownReply,
}

impl Reply {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let from = context.session(&engine, self.session.session.as_ref())?;
        let (verdict, kind) = (self.verdict(), self.kind());
        let outcome = engine.reply(
            self.id,
            ReplyDraft {
                from,
                text: self.text,
                kind,
                verdict,
            },
        )?;
        context.tell(&engine);
        let (word, messages): (_, Vec<Message>) = match outcome {
            ReplyOutcome::Sent(message) => ("sent", vec![*message]),
            ReplyOutcome::Duplicate => ("duplicate", Vec::new()),
        };
        context.ui.answer(
            || {
                Fields::new()
                    .with("messages", &messages)
                    .with("outcome", word)
            },
            |out| print_reply(out, self.id, &messages, context),
        )
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let ask = Ask::MsgReply {
            id: self.id,
            kind: self.kind(),
            verdict: self.verdict(),
            text: self.text,
        };
        let reply = inside.ask_as(self.session.session.as_ref(), None, ask)?;
        let messages: Vec<Message> = field(&reply, "messages")?;
        inside.print(&reply, |out| {
            print_reply(out, self.id, &messages, inside.context)
        })
    }

    fn verdict(&self) -> Option<RequestState> {
        match (self.approve, self.reject) {
            (true, _) => Some(RequestState::Approved),
            (_, true) => Some(RequestState::Rejected),
            _ => None,
        }
    }

    fn kind(&self) -> Option<MessageType> {
        self.kind.map(|kind| match kind {
            Kind::Answer => MessageType::Answer,
            Kind::PlanVerdict => MessageType::PlanVerdict,
            Kind::ShutdownReply => MessageType::ShutdownReply,
        })
    }
}

fn print_reply(
    out: &mut Out,
    id: MessageId,
    messages: &[Message],
    context: &Context<'_>,
) -> io::Result<()> {
    match messages.first() {
        Some(message) => print_message(out, message, context),
        None => writeln!(out, "message {id} was already answered; nothing was sent"),
    }
}
