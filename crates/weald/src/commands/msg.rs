//! `weald msg …`

mod ask;
mod broadcast;
mod inbox;
mod reply;
mod send;

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use weald_app::Ask;
use weald_app::{Engine, Failure};
use weald_core::SignedDuration;
use weald_core::id::TaskId;
use weald_core::message::{Draft, Message, MessageType, Urgency};
use weald_core::name::SessionName;
use weald_server::broker::Reply;

use super::inside::{Inside, field};
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Fields, Out, ago, clean, paint};

/// Send and read messages between sessions.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Msg {
    Send(send::Send),
    Inbox(inbox::Inbox),
    Ask(ask::Ask),
    Reply(reply::Reply),
    Broadcast(broadcast::Broadcast),
}

impl Msg {
    /// Does what was asked.
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

impl Msg {
    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        match self {
            Self::Send(command) => command.inside(inside),
            Self::Inbox(command) => command.inside(inside),
            Self::Ask(command) => command.inside(inside),
            Self::Reply(command) => command.inside(inside),
            other if !inside.context.is_confined() => other.run(inside.context),
            _ => Err(Failure::not_allowed_inside()),
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
    task: Option<TaskId>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Info,
    Steer,
    Urgent,
}

impl About {
    fn draft(self, from: SessionName, to: SessionName, kind: MessageType, text: String) -> Draft {
        Draft {
            from,
            to,
            kind,
            priority: self.urgency(),
            text,
            task: self.task,
        }
    }

    fn urgency(&self) -> Urgency {
        match self.priority {
            Level::Info => Urgency::Info,
            Level::Steer => Urgency::Steer,
            Level::Urgent => Urgency::Urgent,
        }
    }

    fn ask(self, to: SessionName, kind: MessageType, text: String) -> Ask {
        Ask::MsgSend {
            to,
            text,
            kind,
            priority: self.urgency(),
            task: self.task,
        }
    }
}

pub fn print_messages(
    context: &Context<'_>,
    messages: &[Message],
    none: &str,
) -> Result<u8, Failure> {
    context.ui.answer(
        || Fields::new().with("messages", messages),
        |out| print_all(out, messages, none, context),
    )
}

/// Warns of an inbox that nobody may look into, and gives the words for the answer.
fn notice_unread(
    context: &Context<'_>,
    engine: &Engine,
    to: &SessionName,
) -> Result<Option<String>, Failure> {
    let notice = engine.why_unread(to)?;
    if let Some(notice) = &notice {
        context.warn(&format!("{notice} (who is here: weald session list)"));
    }
    Ok(notice)
}

/// The answer: what was sent, with what its sender should know.
fn print_sent(
    context: &Context<'_>,
    messages: &[Message],
    notice: Option<&str>,
) -> Result<u8, Failure> {
    let notices = notice.map(|notice| [notice]);
    context.ui.answer(
        || {
            let fields = Fields::new().with("messages", messages);
            fields.with_some("notices", notices.as_ref())
        },
        |out| print_all(out, messages, "", context),
    )
}

/// The same of a question that nobody answered.
fn with_notice(mut failure: Failure, notice: Option<&str>) -> Failure {
    if let (Some(notice), Some(details)) = (notice, failure.details.as_object_mut()) {
        details.insert("notices".to_owned(), vec![notice].into());
    }
    failure
}

/// The answer of messages that came over the broker.
fn print_inside(inside: &Inside<'_>, reply: &Reply, none: &str) -> Result<u8, Failure> {
    let messages: Vec<Message> = field(reply, "messages")?;
    inside.print(reply, |out| print_all(out, &messages, none, inside.context))
}

fn print_all(
    out: &mut Out,
    messages: &[Message],
    none: &str,
    context: &Context<'_>,
) -> io::Result<()> {
    match messages.is_empty() {
        true => writeln!(out, "{none}"),
        false => messages
            .iter()
            .try_for_each(|message| print_message(out, message, context)),
    }
}

/// How often the broker is asked again while something is waited for.
const AGAIN: Duration = Duration::from_millis(500);

/// Asks again and again, until `wait` is over, for as long as there is `nothing`.
fn patiently(
    wait: Duration,
    ask: impl Fn() -> Result<Reply, Failure>,
    nothing: impl Fn(&Result<Reply, Failure>) -> bool,
) -> Result<Reply, Failure> {
    let deadline = Instant::now() + wait;
    loop {
        let answered = ask();
        if !nothing(&answered) || Instant::now() >= deadline {
            return answered;
        }
        thread::sleep(AGAIN);
    }
}

fn print_message(out: &mut Out, message: &Message, context: &Context<'_>) -> io::Result<()> {
    let about = message
        .task
        .as_ref()
        .map_or_else(String::new, |task| format!(" about {task}"));
    let sent = ago(message.sent_at, context.now());
    let head = format!(
        "{} {} -> {}{about}, {sent} ago",
        message.kind.as_str(),
        message.from,
        message.to
    );
    writeln!(
        out,
        "{} {}",
        paint(ACCENT, format!("[{}]", message.id)),
        paint(DIM, head)
    )?;
    writeln!(out, "  {}", clean(&message.text).replace('\n', "\n  "))
}

fn waiting(time: Option<SignedDuration>) -> Duration {
    time.map_or(Duration::ZERO, SignedDuration::unsigned_abs)
}
