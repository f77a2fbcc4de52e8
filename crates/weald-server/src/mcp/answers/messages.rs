//! What tools about messages answer.

use schemars::JsonSchema;

use super::super::arguments::TaskRef;

/// One message.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Message {
    /// Its number: what a reply names.
    pub id: u64,
    /// Who wrote it.
    pub from: String,
    /// Whose inbox it is in.
    pub to: String,
    /// message, result, question, answer, plan, plan_verdict, shutdown or shutdown_reply.
    pub r#type: String,
    /// urgent, steer or info.
    pub priority: String,
    /// The words.
    pub text: String,
    /// When it was sent.
    pub sent_at: String,
    /// What it is about.
    pub task: Option<TaskRef>,
    /// What it replies to.
    pub reply_to: Option<u64>,
    /// pending, approved or rejected: where a request stands, or what a reply says.
    pub state: Option<String>,
}

/// Several.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Messages {
    /// In order.
    pub messages: Vec<Message>,
    /// What the sender should know, such as that nobody has that name; the message was sent all the same.
    pub notices: Option<Vec<String>>,
}

/// A question, and its answer if one came.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Asked {
    /// The question, then its answer; nothing if none came in time.
    pub messages: Vec<Message>,
    /// Whether an answer came.
    pub answered: bool,
    /// The question's number.
    pub question: u64,
    /// How to go on without an answer.
    pub next: Option<String>,
    /// What the asker should know, such as that nobody has that name.
    pub notices: Option<Vec<String>>,
}

/// What became of a reply.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Replied {
    /// The reply.
    pub messages: Vec<Message>,
    /// sent, or duplicate: it was answered before.
    pub outcome: String,
}
