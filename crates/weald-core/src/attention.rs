//! What a person is notified of: events after which nothing continues without them.

use serde::{Deserialize, Serialize};

use crate::agent::Outcome;
use crate::choice::words;
use crate::event::{Event, EventKind};
use crate::landing::Landing;
use crate::message::MessageType;
use crate::reading::misleads;

/// The longest text, in characters.
const LONGEST: usize = 200;

words! {
    /// What kind of thing a person is notified of.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AttentionKind {
        /// A task waits for a person, failed or is blocked.
        Parked = "parked",
        /// Tests failed.
        Red = "red",
        Conflict = "conflict",
        Question = "question",
        /// A usage limit.
        Limit = "limit",
        /// Nobody is logged in for a driver.
        Login = "login",
        /// No agent is at work, and no task is ready.
        Finished = "finished",
    }
}

/// One thing that a person is notified of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    pub kind: AttentionKind,
    /// About what: a task, an agent, a landing, a message.
    pub about: String,
    /// In words, on one line, with nothing in it that a terminal obeys.
    pub text: String,
}

impl Attention {
    pub fn new(kind: AttentionKind, about: impl Into<String>, text: &str) -> Self {
        let plain = text
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .filter(|c| !c.is_control() && !misleads(*c));
        Self {
            kind,
            about: about.into(),
            text: plain.take(LONGEST).collect(),
        }
    }
}

/// What a person is notified of by an event. `is_retried` says whether an agent is at work on what a landing is about: then
/// it learns of the failure itself.
pub fn attention_for(event: &Event, is_retried: impl Fn(&Landing) -> bool) -> Option<Attention> {
    use AttentionKind as Kind;
    let after = &event.after;
    let of_task = |kind, text: &str| {
        let about = format!("task {}", after.task.as_ref()?.id);
        let text = format!("{about} {text}");
        Some(Attention::new(kind, about, &text))
    };
    let of_landing = |kind, text: &str| {
        let landing = after
            .landing
            .as_ref()
            .filter(|landing| !is_retried(landing))?;
        let text = format!("{} {text} {}", landing.tree, landing.target);
        Some(Attention::new(
            kind,
            format!("landing {}", landing.id),
            &text,
        ))
    };
    let of_agent = |kind, text: &str| {
        let agent = after.agent.as_ref()?;
        let text = format!("{} on task {} {text}", agent.driver, agent.task);
        Some(Attention::new(kind, agent.id.to_string(), &text))
    };
    match &event.kind {
        kind if *kind == EventKind::TASK_PARKED => {
            let reason = after.task.as_ref()?.parked.clone().unwrap_or_default();
            let kind = match reason.starts_with("its tests failed") {
                true => Kind::Red,
                false => Kind::Parked,
            };
            of_task(kind, &format!("is parked: {reason}"))
        }
        kind if *kind == EventKind::TASK_FAILED || *kind == EventKind::TASK_BLOCKED => {
            let task = after.task.as_ref()?;
            let why = task.report.clone().unwrap_or_default();
            of_task(Kind::Parked, &format!("is {}: {why}", task.status))
        }
        kind if *kind == EventKind::TASK_NEEDS_MERGE => of_task(Kind::Conflict, "does not merge"),
        kind if *kind == EventKind::LANDING_RED => {
            of_landing(Kind::Red, "did not land: tests failed on")
        }
        kind if *kind == EventKind::LANDING_CONFLICT => {
            of_landing(Kind::Conflict, "did not land, it conflicts with")
        }
        kind if *kind == EventKind::MESSAGE_SENT => {
            let message = after.message.as_ref()?;
            let asks = matches!(message.kind, MessageType::Question | MessageType::Plan);
            let text = format!("{} asks: {}", message.from, message.text);
            asks.then(|| Attention::new(Kind::Question, format!("message {}", message.id), &text))
        }
        kind if *kind == EventKind::AGENT_LIMITED => {
            of_agent(Kind::Limit, "waits for a usage limit")
        }
        kind if *kind == EventKind::AGENT_EXITED => {
            let outcome = after.agent.as_ref()?.end.as_ref()?.outcome;
            let is_login = outcome == Outcome::LoggedOut;
            is_login.then(|| of_agent(Kind::Login, "stopped: log in again"))?
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a13_a_text_is_one_short_line_without_anything_a_terminal_obeys() {
        let text = format!("a\u{1b}]0;x\u{7}b\u{202e}c{}\nsecond", "d".repeat(300));
        let found = Attention::new(AttentionKind::Parked, "task 1", &text).text;
        assert!(found.starts_with("a]0;xbcd"), "{found}");
        assert_eq!(found.chars().count(), LONGEST);
    }
}
