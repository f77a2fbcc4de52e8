//! Messages between sessions.

use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::error_code::ErrorCode;
use weald_core::id::{MessageId, TaskId};
use weald_core::meant::Word;
use weald_core::message::{Draft, Message, MessageType, ReplyDraft, RequestState, Urgency};
use weald_core::name::SessionName;

use super::{Broker, Caller, Inside, Operation, asked, parsed, within_reason};
use crate::{Ask, Call, Engine, Failure, Ground, InboxQuery, MessageError, ReplyOutcome};

entries!(
    SendMessage,
    AskQuestion,
    ReadInbox,
    ReplyToMessage,
    Broadcast
);

/// How often the broker is asked again while something is waited for.
const AGAIN: Duration = Duration::from_millis(500);

/// Messages in order; of a question, itself and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Messages {
    /// What was sent, or what is in the inbox.
    pub messages: Vec<Message>,
    /// Why nobody may read what was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// Sends a message. Questions, plans and shutdown requests stay open until they get a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// Whose inbox it goes to.
    pub to: SessionName,
    /// What it says.
    pub text: String,
    /// Whether it wants a reply, and which.
    pub kind: MessageType,
    /// How soon it should be read.
    #[serde(default)]
    pub priority: Urgency,
    /// What it is about.
    #[serde(default)]
    pub task: Option<Word>,
}

impl SendMessage {
    /// Puts it into the inbox, in the name of `from`.
    pub fn send(
        self,
        engine: &Engine,
        from: SessionName,
        task: Option<TaskId>,
    ) -> Result<Messages, Failure> {
        let message = engine.send(Draft {
            from,
            to: self.to,
            kind: self.kind,
            priority: self.priority,
            text: self.text,
            task,
        })?;
        Ok(Messages {
            notices: engine.why_unread(&message.to)?.into_iter().collect(),
            messages: vec![message],
        })
    }

    /// The same for the caller, who is warned of what it should know.
    fn send_for(self, call: &Call<'_>, ground: &Ground) -> Result<Messages, Failure> {
        let engine = &ground.engine;
        let from = call.session(engine)?;
        let task = about(call, ground, self.task.as_ref())?;
        let sent = self.send(engine, from, task)?;
        call.tell(engine);
        for notice in &sent.notices {
            call.warn(&format!("{notice} (who is here: weald session list)"));
        }
        Ok(sent)
    }
}

/// The task that a message is about.
fn about(call: &Call<'_>, ground: &Ground, task: Option<&Word>) -> Result<Option<TaskId>, Failure> {
    task.map(|word| ground.task_by_id(call, word)).transpose()
}

impl Operation for SendMessage {
    const NAME: &'static str = "msg_send";
    type Output = Messages;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Messages, Failure> {
        self.send_for(call, &call.ground()?)
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Messages> {
        let task = self.task.as_ref();
        let task = task.map(|word| word.anywhere(call.directory()));
        let message = Self {
            task,
            ..self.clone()
        };
        Some(asked(broker, call, Ask::MsgSend(message)))
    }
}

/// Asks another session, and may wait for what it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskQuestion {
    /// Who is asked.
    pub to: SessionName,
    /// The question.
    pub text: String,
    /// How soon it should be read.
    pub priority: Urgency,
    /// What it is about.
    pub task: Option<Word>,
    /// How long to wait for the answer, if at all.
    pub wait: Option<SignedDuration>,
}

impl AskQuestion {
    fn question(&self) -> SendMessage {
        SendMessage {
            to: self.to.clone(),
            text: self.text.clone(),
            kind: MessageType::Question,
            priority: self.priority,
            task: self.task.clone(),
        }
    }

    /// The question with its answer, if that is waited for. Without one the question stays open.
    fn answered(
        &self,
        mut asked: Messages,
        answer: impl FnOnce(MessageId, Duration) -> Result<Message, Failure>,
    ) -> Result<Messages, Failure> {
        let (Some(wait), Some(question)) = (self.wait, asked.messages.first()) else {
            return Ok(asked);
        };
        match answer(question.id, wait.unsigned_abs()) {
            Ok(answer) => {
                asked.messages.push(answer);
                Ok(asked)
            }
            Err(mut failure) => {
                let details = failure.details.as_object_mut();
                if let Some(details) = details.filter(|_| !asked.notices.is_empty()) {
                    details.insert("notices".to_owned(), asked.notices.into());
                }
                Err(failure)
            }
        }
    }
}

impl Operation for AskQuestion {
    const NAME: &'static str = "msg_ask";
    type Output = Messages;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), Failure> {
        within_reason("wait", self.wait)
    }

    fn run(self, call: &Call<'_>) -> Result<Messages, Failure> {
        let ground = call.ground()?;
        let engine = &ground.engine;
        let sent = self.question().send_for(call, &ground)?;
        self.answered(sent, |id, wait| {
            let _stage = call.stage("waiting for the answer");
            Ok(engine.await_reply(id, wait, call.cancel)?)
        })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Messages> {
        let sent = self.question().run_inside(broker, call)?;
        Some(sent.and_then(|sent| self.answered_inside(sent, broker, call)))
    }
}

impl AskQuestion {
    fn answered_inside(
        &self,
        sent: Messages,
        broker: &dyn Broker,
        call: &Call<'_>,
    ) -> Result<Messages, Failure> {
        self.answered(sent, |id, wait| {
            let look = || -> Result<Messages, Failure> {
                parsed(broker.ask(&Caller::default(), Ask::MsgAnswer { id })?)
            };
            let is_open = |looked: &Result<Messages, Failure>| {
                looked
                    .as_ref()
                    .is_err_and(|it| it.code == ErrorCode::NoAnswer)
            };
            let answer = patiently(call, wait, look, is_open)?;
            let mut answers = answer.messages.into_iter();
            let none = MessageError::NoAnswer { id, waited: wait };
            answers.next().ok_or_else(|| none.into())
        })
    }
}

/// Shows what others wrote to the caller.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadInbox {
    /// Take the messages out: each goes to exactly one reader.
    pub consume: bool,
    /// Those that were taken out before, too.
    pub all: bool,
    /// At most so many.
    pub limit: Option<u64>,
    /// How long to wait for the first one, if at all.
    pub wait: Option<SignedDuration>,
}

impl ReadInbox {
    fn patience(&self) -> Duration {
        self.wait
            .map_or(Duration::ZERO, SignedDuration::unsigned_abs)
    }
}

impl Operation for ReadInbox {
    const NAME: &'static str = "msg_inbox";
    type Output = Messages;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), Failure> {
        within_reason("wait", self.wait)
    }

    fn run(self, call: &Call<'_>) -> Result<Messages, Failure> {
        let engine = call.engine()?;
        let owner = call.session(&engine)?;
        let query = InboxQuery {
            consume: self.consume,
            all: self.all,
            limit: self.limit,
        };
        let _stage = self.wait.map(|_| call.stage("waiting for a message"));
        let look = || engine.inbox(&owner, query);
        let messages =
            engine.look_until(self.patience(), call.cancel, look, |it| !it.is_empty())?;
        call.tell(&engine);
        Ok(Messages {
            messages,
            notices: Vec::new(),
        })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Messages> {
        let look = || -> Result<Messages, Failure> {
            let ask = Ask::MsgInbox {
                consume: self.consume,
                all: self.all,
                limit: self.limit,
            };
            asked(broker, call, ask)
        };
        let is_empty = |looked: &Result<Messages, Failure>| {
            looked.as_ref().is_ok_and(|it| it.messages.is_empty())
        };
        Some(patiently(call, self.patience(), look, is_empty))
    }
}

/// Looks again and again, until `wait` is over or the call is cancelled, for as long as there is `nothing`.
fn patiently<T>(
    call: &Call<'_>,
    wait: Duration,
    look: impl Fn() -> T,
    nothing: impl Fn(&T) -> bool,
) -> T {
    let deadline = Instant::now() + wait;
    loop {
        let looked = look();
        if !nothing(&looked) || Instant::now() >= deadline {
            return looked;
        }
        thread::sleep(AGAIN);
        // Another look might take a message that nobody gets.
        if call.cancel.asked().is_some() {
            return looked;
        }
    }
}

/// Replies to a question, plan or shutdown request. A second reply is ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyToMessage {
    /// The request.
    pub id: MessageId,
    /// What the asker gets.
    pub text: String,
    /// Which type of reply is meant; refused if the request expects another one.
    #[serde(default)]
    pub kind: Option<MessageType>,
    /// For plans and shutdown requests: approved or rejected.
    #[serde(default)]
    pub verdict: Option<RequestState>,
}

/// What became of a reply.
#[derive(Debug, Serialize, Deserialize)]
pub struct Replied {
    /// The reply; none if there was one before.
    pub messages: Vec<Message>,
    /// Whether it was sent.
    pub outcome: Reply,
}

/// Whether a reply was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is in the asker's inbox.
    Sent,
    /// There was one before; nothing was sent.
    Duplicate,
}

impl ReplyToMessage {
    /// Sends it, in the name of `from`.
    pub fn reply(self, engine: &Engine, from: SessionName) -> Result<Replied, Failure> {
        let draft = ReplyDraft {
            from,
            text: self.text,
            kind: self.kind,
            verdict: self.verdict,
        };
        let (outcome, messages) = match engine.reply(self.id, draft)? {
            ReplyOutcome::Sent(message) => (Reply::Sent, vec![*message]),
            ReplyOutcome::Duplicate => (Reply::Duplicate, Vec::new()),
        };
        Ok(Replied { messages, outcome })
    }
}

impl Operation for ReplyToMessage {
    const NAME: &'static str = "msg_reply";
    type Output = Replied;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Replied, Failure> {
        let engine = call.engine()?;
        let from = call.session(&engine)?;
        let replied = self.reply(&engine, from)?;
        call.tell(&engine);
        Ok(replied)
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Replied> {
        Some(asked(broker, call, Ask::MsgReply(self.clone())))
    }
}

/// Sends a message to every other session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broadcast {
    /// The same for everybody.
    pub text: String,
    /// How soon it should be read.
    pub priority: Urgency,
    /// What it is about.
    pub task: Option<Word>,
}

impl Operation for Broadcast {
    const NAME: &'static str = "msg_broadcast";
    type Output = Messages;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Messages, Failure> {
        let ground = call.ground()?;
        let engine = &ground.engine;
        let from = call.session(engine)?;
        let task = about(call, &ground, self.task.as_ref())?;
        let messages = engine.broadcast(Draft {
            // Each copy gets its own reader.
            to: from.clone(),
            from,
            kind: MessageType::Message,
            priority: self.priority,
            text: self.text,
            task,
        })?;
        call.tell(engine);
        Ok(Messages {
            messages,
            notices: Vec::new(),
        })
    }
}
