//! `weald msg …`

use std::io::{self, Write};

use clap::{Args, Subcommand, ValueEnum};
use weald_app::Failure;
use weald_app::operations::messages::{
    AskQuestion, Broadcast as BroadcastMessage, Messages, ReadInbox, ReplyToMessage, SendMessage,
};
use weald_core::id::MessageId;
use weald_core::meant::Word;
use weald_core::message::{Message, MessageType, RequestState, Urgency};
use weald_core::name::SessionName;
use weald_core::{SignedDuration, Timestamp};

use crate::cli::{SessionArg, duration};
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, ago, clean, paint};

/// Send and read messages between sessions.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Msg {
    Send(Send),
    Inbox(Inbox),
    Ask(Ask),
    Reply(Reply),
    Broadcast(Broadcast),
}

impl Default for Msg {
    fn default() -> Self {
        Self::Inbox(Inbox::default())
    }
}

impl Msg {
    /// Does what was asked, on the host or inside a sandbox.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Send(command) => command.run(context),
            Self::Inbox(command) => command.run(context),
            Self::Ask(command) => command.run(context),
            Self::Reply(command) => command.run(context),
            Self::Broadcast(command) => command.run(context),
        }
    }
}

/// How soon it should be read, and what it is about.
#[derive(Args)]
struct About {
    /// Urgency of the message
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    priority: Level,
    /// Task the message is about
    #[arg(long, value_name = "ID", add = completion::tasks())]
    task: Option<Word>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Info,
    Steer,
    Urgent,
}

impl Level {
    fn urgency(self) -> Urgency {
        match self {
            Self::Info => Urgency::Info,
            Self::Steer => Urgency::Steer,
            Self::Urgent => Urgency::Urgent,
        }
    }
}

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
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = SendMessage {
            to: self.to,
            text: self.text,
            kind: match self.kind {
                Kind::Message => MessageType::Message,
                Kind::Result => MessageType::Result,
                Kind::Question => MessageType::Question,
                Kind::Plan => MessageType::Plan,
                Kind::Shutdown => MessageType::Shutdown,
            },
            priority: self.about.priority.urgency(),
            task: self.about.task,
        };
        let answer = context.perform_as(&self.session.caller(), request)?;
        print_messages(context, &answer, "")
    }
}

/// Read your messages
///
/// `--consume` removes the messages: each one goes to exactly one reader.
#[derive(Args, Default)]
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
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = ReadInbox {
            consume: self.consume,
            all: self.all,
            limit: self.limit,
            wait: self.wait,
        };
        let answer = context.perform_as(&self.session.caller(), request)?;
        print_messages(context, &answer, "no messages")
    }
}

/// Ask another session a question
///
/// With --wait, waits for the answer.
#[derive(Args)]
pub struct Ask {
    /// Session to ask
    #[arg(value_name = "TO", add = completion::sessions())]
    to: SessionName,
    /// Text of the question
    text: String,
    /// Wait this long for the answer
    #[arg(long, value_name = "60s", value_parser = duration)]
    wait: Option<SignedDuration>,
    #[command(flatten)]
    about: About,
    #[command(flatten)]
    session: SessionArg,
}

impl Ask {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = AskQuestion {
            to: self.to,
            text: self.text,
            priority: self.about.priority.urgency(),
            task: self.about.task,
            wait: self.wait,
        };
        let answer = context.perform_as(&self.session.caller(), request)?;
        print_messages(context, &answer, "")
    }
}

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
    kind: Option<ReplyKind>,
    #[command(flatten)]
    session: SessionArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum ReplyKind {
    Answer,
    #[value(name = "plan_verdict", alias = "plan-verdict")]
    PlanVerdict,
    #[value(name = "shutdown_reply", alias = "shutdown-reply")]
    ShutdownReply,
}

impl Reply {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = ReplyToMessage {
            id: self.id,
            text: self.text,
            kind: self.kind.map(|kind| match kind {
                ReplyKind::Answer => MessageType::Answer,
                ReplyKind::PlanVerdict => MessageType::PlanVerdict,
                ReplyKind::ShutdownReply => MessageType::ShutdownReply,
            }),
            verdict: match (self.approve, self.reject) {
                (true, _) => Some(RequestState::Approved),
                (_, true) => Some(RequestState::Rejected),
                _ => None,
            },
        };
        let id = self.id;
        let answer = context.perform_as(&self.session.caller(), request)?;
        let none = format!("message {id} was already answered; nothing was sent");
        let now = context.now();
        let print = |out: &mut Out| print_all(out, &answer.messages, &none, now);
        context.ui.show(&answer, print)
    }
}

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
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = BroadcastMessage {
            text: self.text,
            priority: self.about.priority.urgency(),
            task: self.about.task,
        };
        let answer = context.perform_as(&self.session.caller(), request)?;
        print_messages(context, &answer, "there are no other sessions")
    }
}

pub fn print_messages(context: &Context<'_>, answer: &Messages, none: &str) -> Result<u8, Failure> {
    let now = context.now();
    let print = |out: &mut Out| print_all(out, &answer.messages, none, now);
    context.ui.show(answer, print)
}

fn print_all(out: &mut Out, messages: &[Message], none: &str, now: Timestamp) -> io::Result<()> {
    match messages.is_empty() {
        true => writeln!(out, "{none}"),
        false => messages
            .iter()
            .try_for_each(|message| print_message(out, message, now)),
    }
}

fn print_message(out: &mut Out, message: &Message, now: Timestamp) -> io::Result<()> {
    let about = message
        .task
        .as_ref()
        .map_or_else(String::new, |task| format!(" about {task}"));
    let head = format!(
        "{} {} -> {}{about}, {} ago",
        message.kind.as_str(),
        message.from,
        message.to,
        ago(message.sent_at, now)
    );
    writeln!(
        out,
        "{} {}",
        paint(ACCENT, format!("[{}]", message.id)),
        paint(DIM, head)
    )?;
    writeln!(out, "  {}", clean(&message.text).replace('\n', "\n  "))
}
