//! Messages between sessions: an inbox each, consumed exactly once, with requests that are answered once.
//!
//! A message never carries authority to land. A plan's verdict may release the gate of its task and nothing more.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Change, EventKind};
use crate::id::{MessageId, TaskId};
use crate::name::SessionName;
use crate::session::Session;

/// The longest text of a message, in bytes.
pub const MAX_TEXT: usize = 256 * 1024;

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageType {
    Message,
    /// What came out of work.
    Result,
    Question,
    Answer,
    Plan,
    /// To a `plan`: approved or rejected, with feedback.
    PlanVerdict,
    /// Asks to stop; wants a `shutdown_reply`.
    Shutdown,
    /// To a `shutdown`: approved or rejected.
    ShutdownReply,
}

impl MessageType {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Result => "result",
            Self::Question => "question",
            Self::Answer => "answer",
            Self::Plan => "plan",
            Self::PlanVerdict => "plan_verdict",
            Self::Shutdown => "shutdown",
            Self::ShutdownReply => "shutdown_reply",
        }
    }

    /// The type of the reply a request wants; `None` for what is no request.
    pub fn reply(self) -> Option<Self> {
        match self {
            Self::Question => Some(Self::Answer),
            Self::Plan => Some(Self::PlanVerdict),
            Self::Shutdown => Some(Self::ShutdownReply),
            _ => None,
        }
    }
}

/// How soon a message should be read.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    Urgent,
    Steer,
    /// When there is time.
    #[default]
    Info,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    Pending,
    Approved,
    Rejected,
}

impl RequestState {
    pub fn verdict(approve: bool) -> Self {
        match approve {
            true => Self::Approved,
            false => Self::Rejected,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its number; for a request also the correlation id.
    pub id: MessageId,
    pub from: SessionName,
    /// Whose inbox it is in.
    pub to: SessionName,
    #[serde(rename = "type")]
    pub kind: MessageType,
    pub priority: Urgency,
    pub text: String,
    /// The task it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The request that this replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// For a request, where it stands; for a reply, what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RequestState>,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// When its reader took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// A message before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub from: SessionName,
    pub to: SessionName,
    pub kind: MessageType,
    pub priority: Urgency,
    pub text: String,
    pub task: Option<TaskId>,
}

/// Why a message was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageRefusal {
    /// Replies go through [`reply`], so that they meet a request.
    #[error("a message of type {} is a reply: use `weald msg reply`", .kind.as_str())]
    NeedsRequest {
        /// The type that was asked for.
        kind: MessageType,
    },
    /// The message is no request.
    #[error("message {id} is a {} and takes no reply", .kind.as_str())]
    NotARequest { id: MessageId, kind: MessageType },
    /// The reply's type does not fit the request's.
    #[error("message {id} needs a {}, not a {}", .wanted.as_str(), .given.as_str())]
    WrongType {
        id: MessageId,
        wanted: MessageType,
        given: MessageType,
    },
    /// A plan or a shutdown is approved or rejected, not just answered.
    #[error("message {id} is a {}: approve or reject it", .kind.as_str())]
    VerdictMissing { id: MessageId, kind: MessageType },
    /// The request was addressed to somebody else.
    #[error("message {id} was sent to {to}, not to {replier}")]
    NotYours {
        id: MessageId,
        /// Whose inbox it is in.
        to: SessionName,
        replier: SessionName,
    },
    /// Nobody approves what they asked for themselves.
    #[error("message {id} is your own: another session has to judge it")]
    OwnRequest { id: MessageId },
    /// The text is too long.
    #[error(
        "a message can have at most {MAX_TEXT} bytes, this one has {length}: put it in a file and send the path"
    )]
    TooLong {
        /// How long it is.
        length: usize,
    },
}

/// Writes a message, a request if its type is one.
pub fn send(
    draft: Draft,
    id: MessageId,
    now: Timestamp,
) -> Result<(Message, Change), MessageRefusal> {
    use MessageType::*;
    if matches!(draft.kind, Answer | PlanVerdict | ShutdownReply) {
        return Err(MessageRefusal::NeedsRequest { kind: draft.kind });
    }
    let state = draft.kind.reply().map(|_| RequestState::Pending);
    write(draft, id, None, state, now)
}

/// What a reply did.
#[derive(Debug, Clone, PartialEq)]
pub enum Replied {
    /// The request with its new state, and the reply.
    Answered {
        request: Box<(Message, Change)>,
        reply: Box<(Message, Change)>,
    },
    /// It had been answered before; nothing is written.
    Duplicate,
}

/// A reply before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyDraft {
    pub from: SessionName,
    pub text: String,
    /// The type, if the writer named one; it must be the one the request wants.
    pub kind: Option<MessageType>,
    /// Approved or rejected; `None` for an answer.
    pub verdict: Option<RequestState>,
}

/// Replies to `request`. A second reply is ignored; a wrong type or a wrong replier is refused.
pub fn reply(
    request: &Message,
    draft: ReplyDraft,
    id: MessageId,
    now: Timestamp,
) -> Result<Replied, MessageRefusal> {
    let wanted = request.kind.reply().ok_or(MessageRefusal::NotARequest {
        id: request.id,
        kind: request.kind,
    })?;
    let given = draft.kind.unwrap_or(wanted);
    if given != wanted {
        return Err(MessageRefusal::WrongType {
            id: request.id,
            wanted,
            given,
        });
    }
    if draft.from == request.from && request.kind != MessageType::Question {
        return Err(MessageRefusal::OwnRequest { id: request.id });
    }
    if draft.from != request.to {
        let (to, replier) = (request.to.clone(), draft.from);
        return Err(MessageRefusal::NotYours {
            id: request.id,
            to,
            replier,
        });
    }
    if request.state != Some(RequestState::Pending) {
        return Ok(Replied::Duplicate);
    }
    let state = match (wanted, draft.verdict) {
        (_, Some(verdict)) => verdict,
        (MessageType::Answer, None) => RequestState::Approved,
        (_, None) => {
            return Err(MessageRefusal::VerdictMissing {
                id: request.id,
                kind: request.kind,
            });
        }
    };
    let answer = Draft {
        from: draft.from,
        to: request.from.clone(),
        kind: wanted,
        priority: request.priority,
        text: draft.text,
        task: request.task.clone(),
    };
    let reply = write(answer, id, Some(request.id), Some(state), now)?;
    let answered = Message {
        state: Some(state),
        read_at: request.read_at.or(Some(now)),
        ..request.clone()
    };
    let change = Change::message(EventKind::MESSAGE_ANSWERED, answered.clone());
    Ok(Replied::Answered {
        request: Box::new((answered, change)),
        reply: Box::new(reply),
    })
}

/// Takes a message out of its inbox; `None` if it was taken before.
pub fn consume(message: &Message, now: Timestamp) -> Option<(Message, Change)> {
    if message.read_at.is_some() {
        return None;
    }
    let read = Message {
        read_at: Some(now),
        ..message.clone()
    };
    Some((read.clone(), Change::message(EventKind::MESSAGE_READ, read)))
}

/// What to say of an inbox that nobody may look into. What is sent there waits all the same.
pub fn why_unread(to: &SessionName, reader: Option<&Session>, works: bool) -> Option<String> {
    let waits = "the message waits until a session takes that name";
    match reader {
        Some(session) if session.ended_at.is_none() => None,
        // Who never registered is known by what it works on.
        _ if works => None,
        Some(_) => Some(format!("session {to} has ended; {waits}")),
        None => Some(format!("there is no session {to}; {waits}")),
    }
}

fn write(
    draft: Draft,
    id: MessageId,
    reply_to: Option<MessageId>,
    state: Option<RequestState>,
    now: Timestamp,
) -> Result<(Message, Change), MessageRefusal> {
    let Draft {
        from,
        to,
        kind,
        priority,
        text,
        task,
    } = draft;
    if text.len() > MAX_TEXT {
        return Err(MessageRefusal::TooLong { length: text.len() });
    }
    let message = Message {
        id,
        from,
        to,
        kind,
        priority,
        text,
        task,
        reply_to,
        state,
        sent_at: now,
        read_at: None,
    };
    Ok((
        message.clone(),
        Change::message(EventKind::MESSAGE_SENT, message),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{ended, register};

    #[test]
    fn an_inbox_is_read_by_whoever_is_here_or_works() {
        let now = Timestamp::UNIX_EPOCH;
        let name: SessionName = "bob".parse().unwrap();
        let (open, _) = register(None, name.clone(), None, now).unwrap();
        let (over, _) = ended(&open, now);
        for (reader, works, said) in [
            (Some(&open), false, None),
            (Some(&over), true, None),
            (None, true, None),
            (Some(&over), false, Some("session bob has ended")),
            (None, false, Some("there is no session bob")),
        ] {
            let why = why_unread(&name, reader, works);
            let begins = why.as_deref().map(|why| why.split(';').next().unwrap());
            assert_eq!(begins, said);
        }
    }
}
