//! `weald msg ask`

use clap::Args;
use weald_app::Failure;
use weald_core::SignedDuration;
use weald_core::message::{Message, MessageType};
use weald_core::name::SessionName;

use super::super::inside::{Inside, field};
use super::{About, notice_unread, patiently, print_inside, print_sent, waiting, with_notice};
use crate::cli::{SessionArg, duration};
use crate::completion;
use crate::context::Context;

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
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let from = context.session(&engine, self.session.session.as_ref())?;
        let question =
            engine.send(
                self.about
                    .draft(from, self.to, MessageType::Question, self.text),
            )?;
        context.tell(&engine);
        let notice = notice_unread(context, &engine, &question.to)?;
        let mut messages = vec![question];
        if self.wait.is_some() {
            let answered = engine.await_reply(messages[0].id, waiting(self.wait));
            messages.push(answered.map_err(|error| with_notice(error.into(), notice.as_deref()))?);
        }
        print_sent(context, &messages, notice.as_deref())
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let (session, wait) = (self.session.session, self.wait);
        let question = self.about.ask(self.to, MessageType::Question, self.text);
        let mut reply = inside.ask_as(session.as_ref(), None, question)?;
        if wait.is_some() {
            let asked: Vec<Message> = field(&reply, "messages")?;
            let id = asked[0].id;
            let unanswered = |answered: &Result<_, Failure>| {
                answered.as_ref().is_err_and(|it| it.code == "no_answer")
            };
            let ask = || inside.ask(weald_app::Ask::MsgAnswer { id });
            let notice = reply.answer.get("notices");
            let notice = notice.and_then(|notices| notices[0].as_str());
            let answered = patiently(waiting(wait), ask, unanswered);
            let answered = answered.map_err(|failure| with_notice(failure, notice))?;
            let answer: Vec<Message> = field(&answered, "messages")?;
            reply = reply.with("messages", &[asked, answer].concat());
        }
        print_inside(inside, &reply, "")
    }
}
