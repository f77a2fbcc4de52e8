//! What an agent's supervisor is told: orders in its record, messages in its inbox.
//!
//! The supervisor looks at its orders twice a second, and only if the log grew. So there is no socket to find, and
//! whoever may write the store may give orders.

use std::time::Instant;

use weald_core::agent::Wanted;
use weald_core::agent_rules::AgentInput;
use weald_core::id::Seq;
use weald_core::message::{Message, MessageType, ReplyDraft, RequestState, Urgency};
use weald_sandbox::{Order, Running};

use super::supervising::Watch;
use weald_control::agents::Event;
use weald_control::messages::InboxQuery;

impl Watch<'_, '_> {
    /// Stops its processes, or lets them go on. What does not work now is tried again.
    pub(super) fn obey(&mut self, running: &mut Running, wanted: &Wanted) {
        let (order, done) = match wanted {
            Wanted::Pause => (Order::Stop, AgentInput::Paused),
            Wanted::Run => (Order::Continue, AgentInput::Unpaused),
            Wanted::Stop { .. } => return,
        };
        let obeyed = running.order(order);
        if self.tolerate(obeyed).is_none() {
            self.seen = Seq(0);
            return;
        }
        self.decide(done);
        match (order, self.paused_at.take()) {
            (Order::Stop, _) => self.paused_at = Some(Instant::now()),
            // The time in which it could do nothing is not its own.
            (_, Some(since)) => {
                self.deadline = self.deadline.map(|deadline| deadline + since.elapsed());
                self.excuse();
            }
            _ => {}
        }
    }

    /// Passes messages on to an agent whose input is open; others stay in its inbox. A request to shut down is an order.
    pub(super) fn read_inbox(&mut self) -> Option<Wanted> {
        let engine = self.trees.engine;
        let unread = engine.inbox(&self.agent.session, InboxQuery::default());
        for message in self.tolerate(unread)? {
            match message.kind {
                MessageType::Shutdown => return self.shut_down(&message),
                _ => self.pass_on(&message),
            }
        }
        None
    }

    fn shut_down(&mut self, request: &Message) -> Option<Wanted> {
        let engine = self.trees.engine;
        let reply = ReplyDraft {
            from: self.agent.session.clone(),
            text: format!("{} stops; what it wrote is kept", self.agent.id),
            kind: None,
            verdict: Some(RequestState::Approved),
        };
        let replied = engine.reply(request.id, reply);
        if self.tolerate(replied).is_none() {
            // Nobody tells themselves to stop; it is not asked about again.
            let taken = engine.take_message(&self.agent.session, request.id);
            self.tolerate(taken);
            return None;
        }
        Some(Wanted::Stop {
            why: format!("{} asked it to shut down", request.from),
            release: true,
        })
    }

    /// One reader gets each message: this one takes it out of the inbox first.
    fn pass_on(&mut self, message: &Message) {
        let Some(line) = &self.line else { return };
        let Some(words) = self.driver.say(&told(message)) else {
            return;
        };
        let engine = self.trees.engine;
        let taken = engine.take_message(&self.agent.session, message.id);
        if let Some(Some(_)) = self.tolerate(taken) {
            // One that does not listen any more is about to end.
            let _ = line.send(words);
            self.output.note(Event::Message {
                from: message.from.to_string(),
                text: message.text.clone(),
            });
        }
    }
}

/// A message for an agent: who says it, how soon, and how to reply.
fn told(message: &Message) -> String {
    let soon = match message.priority {
        Urgency::Urgent => "urgent, ",
        Urgency::Steer => "read it before you continue, ",
        Urgency::Info => "",
    };
    let mut text = format!(
        "[{} {} from {}, {soon}by weald]\n{}",
        message.kind.as_str(),
        message.id,
        message.from,
        message.text
    );
    if message.kind.reply().is_some() {
        text.push_str(&format!(
            "\n[reply with: weald msg reply {} \"…\"]",
            message.id
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use weald_core::Timestamp;
    use weald_core::id::MessageId;

    #[test]
    fn s12_a_message_names_its_sender_its_type_and_how_to_reply() {
        let message = |kind, priority| Message {
            id: MessageId(7),
            from: "alice".parse().unwrap(),
            to: "a1".parse().unwrap(),
            kind,
            priority,
            text: "use the new parser".to_owned(),
            task: None,
            reply_to: None,
            state: None,
            sent_at: Timestamp::UNIX_EPOCH,
            read_at: None,
        };
        assert_eq!(
            told(&message(MessageType::Message, Urgency::Steer)),
            "[message 7 from alice, read it before you continue, by weald]\nuse the new parser"
        );
        let question = told(&message(MessageType::Question, Urgency::Info));
        assert!(question.starts_with("[question 7 from alice, by weald]\n"));
        assert!(question.ends_with("[reply with: weald msg reply 7 \"…\"]"));
    }
}
