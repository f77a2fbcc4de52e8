//! What may happen to a message: it is sent, read once, and answered once if it is a request.

use jiff::Timestamp;

use crate::event::{Change, EventKind};
use crate::id::MessageId;
use crate::message::{
    Draft, MAX_TEXT, Message, MessageRefusal, MessageType, ReplyDraft, RequestState,
};
use crate::name::SessionName;
use crate::session::Session;

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
    use crate::session_rules::{ended, register};

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
