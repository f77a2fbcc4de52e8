//! Messages between sessions: an inbox each, consumed exactly once, with requests that are answered once.
//!
//! A message never carries authority to land. A plan's verdict may release the gate of its task and nothing more.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::choice::words;
use crate::id::{MessageId, TaskId};
use crate::name::SessionName;

/// The longest text of a message, in bytes.
pub const MAX_TEXT: usize = 256 * 1024;

words! {
    /// What kind of message it is.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MessageType {
        Message = "message",
        /// What came out of work.
        Result = "result",
        Question = "question",
        Answer = "answer",
        Plan = "plan",
        /// To a `plan`: approved or rejected, with feedback.
        PlanVerdict = "plan_verdict",
        /// Asks to stop; wants a `shutdown_reply`.
        Shutdown = "shutdown",
        /// To a `shutdown`: approved or rejected.
        ShutdownReply = "shutdown_reply",
    }
}

impl MessageType {
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

/// Why a message was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageRefusal {
    /// Replies go through [`crate::message_rules::reply`], so that they meet a request.
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
