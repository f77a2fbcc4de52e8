//! Messages: send, read once, ask and answer.

use std::time::{Duration, Instant};

use weald_core::id::MessageId;
use weald_core::message::{Draft, Message, MessageRefusal, MessageType, ReplyDraft, RequestState};
use weald_core::message_rules::{self, Replied};
use weald_core::name::SessionName;
use weald_core::store::{Counter, Durability, MessageFilter, SessionSet, StoreError, Write};
use weald_core::task::{PlanApproval, Task};
use weald_core::task_rules::TaskInput;
use weald_sandbox::Cancel;

use crate::engine::Engine;
use crate::sessions::held;
use crate::tasks::{TaskError, decide_task, require_task};

/// How long waiting does not notice that it is to end.
const GLANCE: Duration = Duration::from_millis(250);

/// Why something did not happen to a message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] MessageRefusal),
    /// The task it is about is not there, or does not move.
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error("there is no message {id}")]
    NotFound { id: MessageId },
    /// The request stands, nobody answered in time.
    #[error("message {id} got no answer within {}s", .waited.as_secs())]
    NoAnswer {
        id: MessageId,
        /// How long this one waited.
        waited: Duration,
    },
}

/// What a reply did.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyOutcome {
    Sent(Box<Message>),
    /// Somebody had replied before; nothing was written.
    Duplicate,
}

/// What to look for in an inbox.
#[derive(Debug, Clone, Copy, Default)]
pub struct InboxQuery {
    /// Take the messages out.
    pub consume: bool,
    /// Show those that were taken before, too.
    pub all: bool,
    /// At most so many.
    pub limit: Option<u64>,
}

impl Engine {
    /// Sends one message. A plan about a task is noted there.
    pub fn send(&self, draft: Draft) -> Result<Message, MessageError> {
        let actor = draft.from.clone();
        self.change(Some(&actor), Durability::Process, |tx| {
            if let Some(task) = &draft.task {
                require_task(tx, task)?;
            }
            let message = send_one(tx, draft)?;
            if message.kind == MessageType::Plan {
                submit_plan(tx, &message)?;
            }
            Ok(message)
        })
    }

    /// What to say of a message to this name if nobody may read it.
    pub fn why_unread(&self, to: &SessionName) -> Result<Option<String>, StoreError> {
        self.look(|tx| {
            let works = !held(tx, to)?.is_empty();
            Ok(message_rules::why_unread(
                to,
                tx.session(to)?.as_ref(),
                works,
            ))
        })
    }

    /// Sends the same to every session that has not ended, but for the sender.
    pub fn broadcast(&self, draft: Draft) -> Result<Vec<Message>, MessageError> {
        let actor = draft.from.clone();
        self.change(Some(&actor), Durability::Process, |tx| {
            let sessions = tx.sessions(SessionSet::Open)?;
            let others = sessions.into_iter().filter(|session| session.name != actor);
            others
                .map(|session| {
                    send_one(
                        tx,
                        Draft {
                            to: session.name,
                            ..draft.clone()
                        },
                    )
                })
                .collect()
        })
    }

    /// Replies to a request. The verdict on a plan is noted on its task in the same step.
    pub fn reply(&self, id: MessageId, draft: ReplyDraft) -> Result<ReplyOutcome, MessageError> {
        let actor = draft.from.clone();
        self.change(Some(&actor), Durability::Process, |tx| {
            let request = tx.message(id)?.ok_or(MessageError::NotFound { id })?;
            let number = MessageId(tx.next_number(Counter::Message)?);
            match message_rules::reply(&request, draft, number, tx.now())? {
                // The number stays unused: numbers only have to be different.
                Replied::Duplicate => Ok(ReplyOutcome::Duplicate),
                Replied::Answered { request, reply } => {
                    tx.record(Some(&actor), request.1)?;
                    tx.record(Some(&actor), reply.1)?;
                    if request.0.kind == MessageType::Plan {
                        judge_plan(tx, &request.0, &actor)?;
                    }
                    Ok(ReplyOutcome::Sent(Box::new(reply.0)))
                }
            }
        })
    }

    /// Reads an inbox. What is consumed is given to exactly one reader.
    pub fn inbox(
        &self,
        owner: &SessionName,
        query: InboxQuery,
    ) -> Result<Vec<Message>, MessageError> {
        let filter = MessageFilter {
            to: Some(owner.clone()),
            unread: query.consume || !query.all,
            limit: query.limit,
            ..MessageFilter::default()
        };
        let found = self.look(|tx| tx.messages(&filter).map_err(MessageError::from))?;
        if found.is_empty() || !query.consume {
            return Ok(found);
        }
        self.change(Some(owner), Durability::Process, |tx| {
            consume(tx, owner, &filter)
        })
    }

    /// Takes one message out of an inbox; `None` if somebody was faster.
    pub fn take_message(
        &self,
        owner: &SessionName,
        id: MessageId,
    ) -> Result<Option<Message>, MessageError> {
        self.change(Some(owner), Durability::Process, |tx| {
            let found = tx.message(id)?.filter(|found| found.to == *owner);
            let Some((message, change)) =
                found.and_then(|found| message_rules::consume(&found, tx.now()))
            else {
                return Ok(None);
            };
            tx.record(Some(owner), change)?;
            Ok(Some(message))
        })
    }

    /// The reply to a request, for which it waits unless `cancel` asks for the end.
    pub fn await_reply(
        &self,
        request: MessageId,
        wait: Duration,
        cancel: &Cancel,
    ) -> Result<Message, MessageError> {
        let filter = MessageFilter {
            reply_to: Some(request),
            ..MessageFilter::default()
        };
        let look = || self.look(|tx| tx.messages(&filter).map_err(MessageError::from));
        let found = self.look_until(wait, cancel, look, |found| !found.is_empty())?;
        found.into_iter().next().ok_or(MessageError::NoAnswer {
            id: request,
            waited: wait,
        })
    }

    /// Looks again whenever something was written, until it saw `enough`, the time is over or `cancel` asks for the end. A
    /// look may consume what it finds, so there is none after that: nobody would get it.
    pub fn look_until<T, E: From<StoreError>>(
        &self,
        wait: Duration,
        cancel: &Cancel,
        look: impl Fn() -> Result<T, E>,
        enough: impl Fn(&T) -> bool,
    ) -> Result<T, E> {
        let deadline = Instant::now() + wait;
        loop {
            let last = self.look(|tx| tx.last_seq())?;
            let found = look()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if enough(&found) || left.is_zero() {
                return Ok(found);
            }
            self.store().wait(last, left.min(GLANCE))?;
            if cancel.asked().is_some() {
                return Ok(found);
            }
        }
    }
}

fn send_one(tx: &mut dyn Write, draft: Draft) -> Result<Message, MessageError> {
    let id = MessageId(tx.next_number(Counter::Message)?);
    let actor = draft.from.clone();
    let (message, change) = message_rules::send(draft, id, tx.now())?;
    tx.record(Some(&actor), change)?;
    Ok(message)
}

fn consume(
    tx: &mut dyn Write,
    owner: &SessionName,
    filter: &MessageFilter,
) -> Result<Vec<Message>, MessageError> {
    let mut taken = Vec::new();
    for message in tx.messages(filter)? {
        if let Some((message, change)) = message_rules::consume(&message, tx.now()) {
            tx.record(Some(owner), change)?;
            taken.push(message);
        }
    }
    Ok(taken)
}

/// Notes a plan on its task: a task that wants none, or is closed, takes none.
fn submit_plan(tx: &mut dyn Write, plan: &Message) -> Result<(), MessageError> {
    let Some(id) = &plan.task else { return Ok(()) };
    let task = require_task(tx, id)?;
    match task.plan_approval.is_some() && !task.status.is_closed() {
        true => record_plan(tx, &plan.from, &task, PlanApproval::Submitted, plan.id),
        false => Ok(()),
    }
}

/// Notes a verdict, if it is the one on the newest plan of the task.
fn judge_plan(tx: &mut dyn Write, plan: &Message, judge: &SessionName) -> Result<(), MessageError> {
    let Some(id) = &plan.task else { return Ok(()) };
    let task = require_task(tx, id)?;
    let verdict = match plan.state {
        Some(RequestState::Approved) => PlanApproval::Approved,
        _ => PlanApproval::Rejected,
    };
    match task.plan_message == Some(plan.id) {
        true => record_plan(tx, judge, &task, verdict, plan.id),
        false => Ok(()),
    }
}

fn record_plan(
    tx: &mut dyn Write,
    actor: &SessionName,
    task: &Task,
    state: PlanApproval,
    message: MessageId,
) -> Result<(), MessageError> {
    let input = TaskInput::Plan { state, message };
    decide_task(tx, Some(actor), task, input)?;
    Ok(())
}
