//! What became of a task so far, and how to go on with it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentStatus, Outcome, Stage};
use crate::choice::words;
use crate::error_code::ErrorCode;
use crate::landing::{Landing, LandingStatus, Reason};
use crate::task::{Task, TaskStatus};

words! {
    /// What became of a task.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Diagnosis {
        Completed = "completed",
        /// An agent works on it.
        Running = "running",
        /// It waits for a person.
        Blocked = "blocked",
        /// The last agent crashed.
        Crash = "crash",
        /// Somebody stopped the last agent.
        Stopped = "stopped",
        /// The last agent failed.
        Fail = "fail",
        /// The last agent changed nothing.
        #[serde(rename = "changed_nothing")]
        Empty = "changed_nothing",
        /// The last agent was done, but its work did not land.
        NotLanded = "not_landed",
        /// No agent worked on it yet.
        Fresh = "fresh",
    }
}

/// Diagnoses a task by its status and the newest agent that worked on it.
pub fn diagnose(task: &Task, newest: Option<&Agent>, now: Timestamp) -> Diagnosis {
    if let Some(agent) = newest
        && !agent.status.is_over()
    {
        // One that let its claim run out does not answer any more; the agent that continues ends it first.
        let lease = task.lease.as_ref().filter(|lease| lease.is_expired(now));
        return match lease.is_some_and(|lease| lease.token == agent.token) {
            true => Diagnosis::Crash,
            false => Diagnosis::Running,
        };
    }
    match task.status {
        TaskStatus::Completed => return Diagnosis::Completed,
        TaskStatus::Blocked => return Diagnosis::Blocked,
        _ => {}
    }
    let Some(agent) = newest else {
        return Diagnosis::Fresh;
    };
    let outcome = agent.end.as_ref().map(|end| end.outcome);
    match (agent.status, outcome) {
        (AgentStatus::Crashed, _) | (_, Some(Outcome::Crashed)) => Diagnosis::Crash,
        (_, Some(Outcome::Stopped | Outcome::LoggedOut | Outcome::Superseded)) => {
            Diagnosis::Stopped
        }
        (_, Some(Outcome::Empty)) => Diagnosis::Empty,
        (_, Some(Outcome::NotLanded)) => Diagnosis::NotLanded,
        (_, Some(Outcome::OverBudget)) => Diagnosis::Stopped,
        (_, Some(Outcome::NotStarted) | None) => Diagnosis::Fresh,
        // It was opened again after it had been done.
        (_, Some(Outcome::Done)) => Diagnosis::Fresh,
        (_, Some(Outcome::Failed | Outcome::TimedOut)) => Diagnosis::Fail,
    }
}

/// Whether a tree itself was not ready to land: that is the agent's to fix.
fn is_of_the_tree(reason: &Reason) -> bool {
    matches!(
        reason.code,
        ErrorCode::NotReadyToLand
            | ErrorCode::NotCommitted
            | ErrorCode::TreeDirty
            | ErrorCode::TreeInOperation
            | ErrorCode::RebaseDiffers
            | ErrorCode::NotFastForward
            | ErrorCode::PathReserved
    )
}

/// The automatic retries that count for an agent that continues after this one: a crash is no reason to begin counting
/// again, everything else was decided by somebody.
pub fn retries_before(last: &Agent) -> u32 {
    let outcome = last.end.as_ref().map(|end| end.outcome);
    match outcome {
        Some(Outcome::Crashed) => last.retry,
        _ => 0,
    }
}

/// Where the next agent begins: behind what the last one completed. `landing` is how that one's landing ended, if it had
/// one.
pub fn begin_at(newest: Option<&Agent>, landing: Option<&Landing>) -> Stage {
    let Some(agent) = newest else {
        return Stage::Run;
    };
    let outcome = agent.end.as_ref().map(|end| end.outcome);
    let was_successful =
        agent.code == Some(0) && agent.report.as_ref().is_none_or(|report| report.success);
    match outcome {
        // Its command was done; what had to follow was cut short.
        Some(Outcome::Crashed) if was_successful => Stage::Finish,
        Some(Outcome::NotLanded) if landing.is_none_or(may_land_as_it_is) => Stage::Finish,
        _ => Stage::Run,
    }
}

/// Whoever was in the way may have agreed by now. Red tests, conflicts and what is wrong in the tree need work.
fn may_land_as_it_is(landing: &Landing) -> bool {
    match landing.status {
        // There was nothing on its branch, and something beside it.
        LandingStatus::NothingToLand => false,
        LandingStatus::Conflict | LandingStatus::Red => false,
        LandingStatus::Refused => !landing.reason.as_ref().is_some_and(is_of_the_tree),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{AgentId, End, Post};
    use crate::id::{LandingId, TaskId, Token, TreeId};
    use crate::task::Lease;
    use crate::tree::{Base, Tree};

    fn agent(status: AgentStatus, outcome: Option<Outcome>, code: Option<i32>) -> Agent {
        let now = Timestamp::UNIX_EPOCH;
        let post = Post {
            session: "a1".parse().unwrap(),
            task: TaskId::Number(1),
            token: Token(1),
        };
        Agent {
            status,
            code,
            end: outcome.map(|outcome| End {
                outcome,
                code: None,
                why: String::new(),
                landing: None,
                at: now,
            }),
            ..Agent::new(AgentId(1), post, "command", now)
        }
    }

    #[test]
    fn p2_every_end_has_its_diagnosis() {
        let task = |status| Task {
            status,
            ..Task::new(TaskId::Number(1), "x", Timestamp::UNIX_EPOCH)
        };
        let over = |outcome| Some(agent(AgentStatus::Exited, Some(outcome), None));
        let cases = [
            (TaskStatus::Pending, None, Diagnosis::Fresh),
            (
                TaskStatus::Completed,
                over(Outcome::Done),
                Diagnosis::Completed,
            ),
            (
                TaskStatus::InProgress,
                Some(agent(AgentStatus::Running, None, None)),
                Diagnosis::Running,
            ),
            (
                TaskStatus::Blocked,
                over(Outcome::Failed),
                Diagnosis::Blocked,
            ),
            (
                TaskStatus::Pending,
                Some(agent(AgentStatus::Crashed, Some(Outcome::Crashed), None)),
                Diagnosis::Crash,
            ),
            (
                TaskStatus::Pending,
                over(Outcome::Stopped),
                Diagnosis::Stopped,
            ),
            (TaskStatus::Failed, over(Outcome::Failed), Diagnosis::Fail),
            (TaskStatus::Failed, over(Outcome::TimedOut), Diagnosis::Fail),
            (
                TaskStatus::InProgress,
                over(Outcome::NotLanded),
                Diagnosis::NotLanded,
            ),
            (TaskStatus::Pending, over(Outcome::Done), Diagnosis::Fresh),
        ];
        for (status, newest, expected) in cases {
            let found = diagnose(&task(status), newest.as_ref(), Timestamp::UNIX_EPOCH);
            assert_eq!(
                found,
                expected,
                "{status} {:?}",
                newest.map(|agent| agent.end)
            );
        }
    }

    #[test]
    fn t14_an_agent_that_let_its_claim_run_out_does_not_run() {
        let now = Timestamp::UNIX_EPOCH;
        let running = agent(AgentStatus::Running, None, None);
        let held_until = |expires_at, token| Task {
            status: TaskStatus::InProgress,
            lease: Some(Lease {
                token,
                session: "a1".parse().unwrap(),
                acquired_at: now,
                expires_at,
            }),
            ..Task::new(TaskId::Number(1), "x", now)
        };
        let later = Timestamp::from_second(60).unwrap();
        for (expires_at, token, expected) in [
            (later, Token(1), Diagnosis::Running),
            (now, Token(1), Diagnosis::Crash),
            (now, Token(2), Diagnosis::Running),
        ] {
            let task = held_until(expires_at, token);
            assert_eq!(diagnose(&task, Some(&running), now), expected, "{token}");
        }
    }

    #[test]
    fn w9_work_goes_on_behind_the_last_stage_that_was_completed() {
        let crashed = |code| agent(AgentStatus::Crashed, Some(Outcome::Crashed), code);
        assert_eq!(begin_at(Some(&crashed(Some(0))), None), Stage::Finish);
        assert_eq!(begin_at(Some(&crashed(Some(1))), None), Stage::Run);
        assert_eq!(begin_at(Some(&crashed(None)), None), Stage::Run);
        let kept = agent(AgentStatus::Exited, Some(Outcome::NotLanded), Some(0));
        assert_eq!(begin_at(Some(&kept), None), Stage::Finish);
        let base = Base {
            reference: "main".into(),
            commit: "0".repeat(40),
        };
        let now = Timestamp::UNIX_EPOCH;
        let tree = Tree::new(TreeId(1), "a".parse().unwrap(), "/a".into(), base, now);
        let landing = |status, code: &'static str| Landing {
            status,
            reason: Some(Reason {
                code: code.into(),
                message: String::new(),
                hint: None,
                paths: Vec::new(),
            }),
            ..Landing::new(LandingId(1), &tree, "1".repeat(40), now)
        };
        let begins = |status, code| begin_at(Some(&kept), Some(&landing(status, code)));
        use LandingStatus::{Conflict, NothingToLand, Red, Refused};
        assert_eq!(begins(Refused, "needs_approval"), Stage::Finish);
        assert_eq!(begins(Refused, "target_dirty"), Stage::Finish);
        assert_eq!(begins(Refused, "not_committed"), Stage::Run);
        assert_eq!(begins(Refused, "not_ready_to_land"), Stage::Run);
        assert_eq!(begins(Red, ""), Stage::Run);
        assert_eq!(begins(Conflict, ""), Stage::Run);
        assert_eq!(begins(NothingToLand, ""), Stage::Run);
        assert_eq!(begin_at(None, None), Stage::Run);
    }
}
