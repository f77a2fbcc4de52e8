//! How an agent stands for an observer: its record, its supervisor's process and its open questions together.
//!
//! The record alone is not enough: a supervisor that can't be looked up, or a question that nobody answered, is nowhere
//! in it.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentId, AgentStatus, Outcome};
use crate::choice::words;
use crate::id::TaskId;
use crate::message::Message;
use crate::session::ProcessState;
use crate::task::{Task, TaskStatus};
use crate::tree::{Tree, TreeStatus};

words! {
    /// How an agent stands.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AgentState {
        /// Its supervisor can't be looked up: another machine, another namespace.
        Unknown = "unknown",
        /// It asked a question that nobody answered.
        Waiting = "waiting",
        /// It does nothing for too long.
        Stalled = "stalled",
        /// It waits for a usage limit and continues by itself.
        Limited = "limited",
        /// Its processes are stopped.
        Paused = "paused",
        /// It is being started.
        Starting = "starting",
        Running = "running",
        /// Its command ended; what it left is committed and landed.
        Finishing = "finishing",
        /// Its supervisor is gone.
        Crashed = "crashed",
        /// All of it is over.
        Exited = "exited",
    }

    /// The same in the words of a foreman.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Condition {
        /// It goes on by itself.
        Running = "running",
        /// Somebody has to look.
        Stuck = "stuck",
        /// Somebody stopped it for now, or a usage limit did.
        Paused = "paused",
        /// It did what was asked.
        Done = "done",
        Failed = "failed",
    }
}

/// How an agent stands, from its record, its supervisor's process and whether it waits for an answer.
pub fn state_of(agent: &Agent, supervisor: Option<ProcessState>, waits: bool) -> AgentState {
    match agent.status {
        AgentStatus::Exited => AgentState::Exited,
        AgentStatus::Crashed => AgentState::Crashed,
        // The next command that may write says so in the record.
        _ if supervisor == Some(ProcessState::Gone) => AgentState::Crashed,
        _ if supervisor == Some(ProcessState::Unknown) => AgentState::Unknown,
        AgentStatus::Paused => AgentState::Paused,
        AgentStatus::Limited => AgentState::Limited,
        AgentStatus::Running | AgentStatus::Stalled if waits => AgentState::Waiting,
        AgentStatus::Stalled => AgentState::Stalled,
        AgentStatus::Starting => AgentState::Starting,
        AgentStatus::Running => AgentState::Running,
        AgentStatus::Finishing => AgentState::Finishing,
    }
}

/// The same in the words of a foreman.
pub fn condition_of(state: AgentState, outcome: Option<Outcome>) -> Condition {
    match state {
        AgentState::Starting | AgentState::Running | AgentState::Finishing => Condition::Running,
        AgentState::Waiting | AgentState::Stalled | AgentState::Unknown => Condition::Stuck,
        AgentState::Paused | AgentState::Limited => Condition::Paused,
        AgentState::Exited if outcome == Some(Outcome::Done) => Condition::Done,
        AgentState::Exited | AgentState::Crashed => Condition::Failed,
    }
}

/// The usage limit that an agent waits for, with a time of day that people in `zone` know.
pub fn limit_in_words(agent: &Agent, now: Timestamp, zone: &TimeZone) -> Option<String> {
    let limit = agent.limit?;
    let (until, now) = (
        limit.until.to_zoned(zone.clone()),
        now.to_zoned(zone.clone()),
    );
    let (date, time) = (until.date(), until.time());
    let time = format!("{:02}:{:02}", time.hour(), time.minute());
    let at = match date == now.date() {
        true => time,
        false => format!("{date} {time}"),
    };
    let driver = &agent.driver;
    Some(match limit.is_known {
        true => format!("usage limit of {driver} until {at}"),
        false => format!("usage limit of {driver} without a reset time, next try at {at}"),
    })
}

/// Something that somebody should look at, with the command for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    pub agent: AgentId,
    pub task: TaskId,
    pub kind: AlertKind,
    pub text: String,
    pub command: String,
}

words! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AlertKind {
        Waiting = "waiting",
        Stalled = "stalled",
        Unknown = "unknown",
        Paused = "paused",
        /// It waits for a usage limit and continues by itself.
        Limit = "limit",
        Failed = "failed",
    }
}

/// What an alert is made from.
pub struct Seen<'a> {
    pub agent: &'a Agent,
    /// The usage limit that it waits for, in words.
    pub limit: Option<String>,
    pub state: AgentState,
    /// How long it did nothing.
    pub idle: SignedDuration,
    /// The oldest question that nobody answered.
    pub question: Option<&'a Message>,
    pub task: Option<&'a Task>,
    /// Whether nobody tried the task after it.
    pub is_newest: bool,
}

/// What somebody should do about an agent, if anything.
pub fn alert_for(seen: &Seen<'_>) -> Option<Alert> {
    let Seen { agent, state, .. } = seen;
    let id = agent.id;
    let (kind, text, command) = match (state, seen.question) {
        (AgentState::Waiting, Some(question)) => (
            AlertKind::Waiting,
            format!(
                "asks {}: {}",
                question.to,
                question.text.lines().next().unwrap_or_default()
            ),
            format!("weald msg reply {} \"…\"", question.id),
        ),
        (AgentState::Stalled, _) => (
            AlertKind::Stalled,
            format!("did nothing for {} minutes", seen.idle.as_mins()),
            format!("weald agent pulse {id}"),
        ),
        (AgentState::Unknown, _) => (
            AlertKind::Unknown,
            "its supervisor can't be checked from here".to_owned(),
            format!("weald agent pulse {id}"),
        ),
        (AgentState::Paused, _) => (
            AlertKind::Paused,
            "is paused".to_owned(),
            format!("weald agent resume {id}"),
        ),
        (AgentState::Limited, _) => (
            AlertKind::Limit,
            format!(
                "waits: {}; it continues by itself",
                seen.limit.as_deref().unwrap_or("usage limit")
            ),
            format!("weald agent stop {id}"),
        ),
        (AgentState::Exited | AgentState::Crashed, _) if is_unfinished(seen) => {
            let end = agent.end.as_ref();
            let how = end.map_or("crashed", |end| end.outcome.as_str());
            let why = end
                .and_then(|end| end.why.lines().next())
                .unwrap_or_default();
            let how = how.replace('_', " ");
            let own = format!("{id} ");
            let text = match why.strip_prefix(&own).unwrap_or(why) {
                "" => how,
                // It says the same at greater length.
                why if why.starts_with(&how) => why.to_owned(),
                _ => format!("{how}: {why}"),
            };
            let command = format!("weald resume {}", agent.task);
            (AlertKind::Failed, text, command)
        }
        _ => return None,
    };
    Some(Alert {
        agent: id,
        task: agent.task.clone(),
        kind,
        text,
        command,
    })
}

/// Whether an agent that is over left a task that somebody has to decide on.
fn is_unfinished(seen: &Seen<'_>) -> bool {
    let outcome = seen.agent.end.as_ref().map(|end| end.outcome);
    let status = seen.task.map(|task| task.status);
    let is_settled = matches!(
        status,
        None | Some(TaskStatus::Completed | TaskStatus::Cancelled)
    );
    let is_fine = matches!(outcome, Some(Outcome::Done | Outcome::Superseded));
    seen.is_newest && !is_settled && !is_fine
}

/// Whether a tree of a finished task waits for somebody to decide on it.
pub fn is_abandoned(tree: &Tree, task: &Task) -> bool {
    let is_finished = matches!(task.status, TaskStatus::Completed | TaskStatus::Cancelled);
    let is_bound = tree.task.as_ref() == Some(&task.id);
    let is_decided =
        matches!(tree.status, TreeStatus::Kept | TreeStatus::Landed) || tree.locked.is_some();
    is_finished && is_bound && tree.is_live() && !tree.removing && !is_decided
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{End, Post};
    use crate::id::Token;

    fn agent(status: AgentStatus) -> Agent {
        let post = Post {
            session: "alice".parse().unwrap(),
            task: TaskId::Number(1),
            token: Token(3),
        };
        Agent {
            status,
            ..Agent::new(AgentId(1), post, "command", Timestamp::UNIX_EPOCH)
        }
    }

    #[test]
    fn s10_a_state_comes_from_record_process_and_questions() {
        use AgentStatus::*;
        use ProcessState as P;
        let cases = [
            (Starting, None, false, AgentState::Starting),
            (Running, Some(P::Running), false, AgentState::Running),
            (Running, Some(P::Running), true, AgentState::Waiting),
            (Stalled, Some(P::Running), true, AgentState::Waiting),
            (Stalled, Some(P::Running), false, AgentState::Stalled),
            (Running, Some(P::Unknown), true, AgentState::Unknown),
            (Paused, Some(P::Running), true, AgentState::Paused),
            (Finishing, Some(P::Running), true, AgentState::Finishing),
            (Exited, Some(P::Unknown), true, AgentState::Exited),
            (Crashed, Some(P::Gone), false, AgentState::Crashed),
            (Running, Some(P::Gone), true, AgentState::Crashed),
            (Starting, Some(P::Gone), false, AgentState::Crashed),
        ];
        for (status, process, waits, expected) in cases {
            let found = state_of(&agent(status), process, waits);
            assert_eq!(found, expected, "{status} {process:?} {waits}");
        }
    }

    #[test]
    fn s10_conditions_are_five() {
        use AgentState::*;
        let cases = [
            (Running, None, "running"),
            (Finishing, None, "running"),
            (Waiting, None, "stuck"),
            (Stalled, None, "stuck"),
            (Paused, None, "paused"),
            (Exited, Some(Outcome::Done), "done"),
            (Exited, Some(Outcome::NotLanded), "failed"),
            (Exited, Some(Outcome::Stopped), "failed"),
            (Crashed, Some(Outcome::Crashed), "failed"),
        ];
        for (state, outcome, expected) in cases {
            assert_eq!(condition_of(state, outcome).as_str(), expected, "{state:?}");
        }
    }

    #[test]
    fn s10_alerts_are_for_what_somebody_has_to_decide() {
        let alert = |agent: &Agent, state, status, is_newest| {
            let task = Task {
                status,
                ..Task::new(TaskId::Number(1), "x", Timestamp::UNIX_EPOCH)
            };
            let seen = Seen {
                agent,
                limit: None,
                state,
                idle: SignedDuration::from_mins(25),
                question: None,
                task: Some(&task),
                is_newest,
            };
            alert_for(&seen).map(|alert| alert.kind.as_str())
        };
        let ended = |outcome| Agent {
            end: Some(End {
                outcome,
                code: None,
                why: String::new(),
                landing: None,
                at: Timestamp::UNIX_EPOCH,
            }),
            ..agent(AgentStatus::Exited)
        };
        use TaskStatus::*;
        let running = agent(AgentStatus::Running);
        let open = |state| alert(&running, state, InProgress, true);
        assert_eq!(open(AgentState::Running), None);
        assert_eq!(open(AgentState::Stalled), Some("stalled"));
        assert_eq!(open(AgentState::Paused), Some("paused"));
        let over = |outcome, status, is_newest| {
            alert(&ended(outcome), AgentState::Exited, status, is_newest)
        };
        assert_eq!(over(Outcome::Failed, Failed, true), Some("failed"));
        assert_eq!(over(Outcome::Failed, Failed, false), None);
        assert_eq!(over(Outcome::Failed, Completed, true), None);
        assert_eq!(over(Outcome::Stopped, Pending, true), Some("failed"));
        assert_eq!(over(Outcome::Stopped, Failed, true), Some("failed"));
        assert_eq!(over(Outcome::Crashed, Pending, true), Some("failed"));
        assert_eq!(over(Outcome::Done, Completed, true), None);
    }
}
