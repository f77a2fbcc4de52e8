//! What a task's tree needs before it lands: the report of the agent that worked in it.

use crate::agent::{Agent, Verification};
use crate::choice::choice;
use crate::id::TreeId;
use crate::phases::{newest_verdicts, since_landing};
use crate::task::{Task, TaskStatus};

choice! {
    /// What is asked of a report.
    pub enum Requirement {
        /// Nothing: a worktree lands when a command says so.
        Nothing = "nothing",
        /// A task that is done, and what was done.
        Report = "report",
    }
}

/// What speaks against a landing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Nobody said that it is done.
    #[error("the task was not reported as done")]
    Done,
    /// Nobody said what was done.
    #[error("there is no report of what was done")]
    Report,
    /// Its agent checked, and something was not well.
    #[error("{agent} checked its work, and the check failed")]
    Verification { agent: String },
    /// A phase did not pass.
    #[error("phase {phase} reported FAIL: {items}")]
    Verdict {
        phase: String,
        /// What it wants fixed.
        items: String,
    },
}

/// What speaks against landing a tree of a task, by the agents that worked on it, from the first to the last, and by what
/// is said with the landing: landing with a report says that it is done.
pub fn missing(
    requirement: Requirement,
    task: &Task,
    tree: TreeId,
    agents: &[Agent],
    said: Option<&str>,
) -> Vec<Missing> {
    let here: Vec<Agent> = since_landing(agents)
        .iter()
        .filter(|agent| agent.tree_id == Some(tree))
        .cloned()
        .collect();
    let newest = here
        .iter()
        .rev()
        .find_map(|agent| Some((agent, agent.report.as_ref()?)));
    let mut missing = Vec::new();
    if requirement == Requirement::Report {
        let is_word = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
        let is_done = task.status == TaskStatus::Completed
            || newest.is_some_and(|(_, report)| report.success)
            || is_word(said);
        // Why something failed is no report of what was done.
        let spoken = newest.filter(|(_, report)| report.success);
        let spoken = spoken.map(|(_, report)| report.report.as_str());
        let written = task.report.as_deref();
        let written = written.filter(|_| !task.status.has_reason());
        let is_reported = [spoken, written, said].into_iter().any(is_word);
        missing.extend((!is_done).then_some(Missing::Done));
        missing.extend((!is_reported).then_some(Missing::Report));
    }
    if let Some((agent, report)) = newest
        && report.verification == Verification::Failed
    {
        let agent = agent.id.to_string();
        missing.push(Missing::Verification { agent });
    }
    let failing = newest_verdicts(&here)
        .into_iter()
        .filter(|(_, _, verdict)| !verdict.passes())
        .map(|(_, phase, verdict)| Missing::Verdict {
            phase: phase.to_owned(),
            items: verdict.must_fix.join("; "),
        })
        .collect::<Vec<_>>();
    missing.extend(failing);
    missing
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::agent::{AgentId, FinalReport, Goal, Post};
    use crate::id::{TaskId, Token};
    use crate::verdict::{Ruling, Verdict};

    fn agent(id: u64, report: Option<(bool, &str, Verification)>) -> Agent {
        let now = Timestamp::UNIX_EPOCH;
        let post = Post {
            session: "a1".parse().unwrap(),
            task: TaskId::Number(1),
            token: Token(1),
        };
        let report = report.map(|(success, text, verification)| FinalReport {
            success,
            report: text.to_owned(),
            files_changed: Vec::new(),
            verification,
            verified_by: String::new(),
            inferred: false,
            at: now,
        });
        Agent {
            tree_id: Some(TreeId(1)),
            goal: Goal::Stay,
            report,
            ..Agent::new(AgentId(id), post, "command", now)
        }
    }

    #[test]
    fn m15_a_landing_needs_what_is_configured_and_never_a_failed_check() {
        use Verification::{Failed, None as Unsaid, Passed};
        let task = |status, report: Option<&str>| Task {
            status,
            report: report.map(str::to_owned),
            ..Task::new(TaskId::Number(1), "x", Timestamp::UNIX_EPOCH)
        };
        let open = || task(TaskStatus::InProgress, None);
        let done = || task(TaskStatus::Completed, Some("all of it"));
        let (nothing, report) = (Requirement::Nothing, Requirement::Report);
        let cases = [
            (nothing, open(), vec![], ""),
            (report, open(), vec![], "Done Report"),
            (report, done(), vec![], ""),
            (
                report,
                open(),
                vec![agent(1, Some((true, "did it", Unsaid)))],
                "",
            ),
            (
                report,
                open(),
                vec![agent(1, Some((true, "did it", Passed)))],
                "",
            ),
            (
                report,
                open(),
                vec![agent(1, Some((true, " ", Unsaid)))],
                "Report",
            ),
            (
                report,
                open(),
                vec![agent(1, Some((false, "no", Unsaid)))],
                "Done Report",
            ),
            (
                report,
                done(),
                vec![agent(1, Some((true, "x", Failed)))],
                "Verification",
            ),
            (
                nothing,
                open(),
                vec![agent(1, Some((true, "x", Failed)))],
                "Verification",
            ),
            (
                nothing,
                open(),
                vec![
                    agent(1, Some((true, "x", Failed))),
                    agent(2, Some((true, "x", Passed))),
                ],
                "",
            ),
        ];
        for (requirement, task, agents, expected) in cases {
            let found = missing(requirement, &task, TreeId(1), &agents, None);
            assert_eq!(
                words(&found),
                expected,
                "{requirement:?} {task:?} {agents:?}"
            );
        }
        let elsewhere = [agent(1, Some((true, "x", Failed)))];
        assert_eq!(missing(nothing, &open(), TreeId(2), &elsewhere, None), []);
        let landing = |said| words(&missing(report, &open(), TreeId(1), &[], Some(said)));
        assert_eq!(
            (landing("did it"), landing(" ")),
            (String::new(), "Done Report".to_owned())
        );
        let checked = [agent(1, Some((true, "x", Failed)))];
        let found = missing(report, &open(), TreeId(1), &checked, Some("did it"));
        assert_eq!(words(&found), "Verification");
    }

    #[test]
    fn m15_why_a_task_failed_is_no_report() {
        let task = Task {
            status: TaskStatus::Failed,
            report: Some("it can't be done".to_owned()),
            ..Task::new(TaskId::Number(1), "x", Timestamp::UNIX_EPOCH)
        };
        let agents = [agent(1, Some((true, "", Verification::None)))];
        let found = missing(Requirement::Report, &task, TreeId(1), &agents, None);
        assert_eq!(words(&found), "Report");
    }

    #[test]
    fn m15_a_phase_that_failed_has_to_pass() {
        let judged = |id, phase: &str, ruling| Agent {
            role: Some(phase.to_owned()),
            verdict: Some(Verdict {
                ruling,
                must_fix: vec!["it".to_owned()],
                notes: String::new(),
            }),
            ..agent(id, None)
        };
        let task = Task::new(TaskId::Number(1), "x", Timestamp::UNIX_EPOCH);
        let nothing = Requirement::Nothing;
        let check = |agents: &[Agent]| words(&missing(nothing, &task, TreeId(1), agents, None));
        let failed = judged(1, "review", Ruling::Fail);
        let built = judged(2, "build", Ruling::Pass);
        let passed = judged(3, "review", Ruling::Pass);
        assert_eq!(check(&[failed.clone(), built.clone()]), "Verdict");
        assert_eq!(check(&[failed, built, passed]), "");
    }

    fn words(found: &[Missing]) -> String {
        let word = |one: &Missing| match one {
            Missing::Done => "Done",
            Missing::Report => "Report",
            Missing::Verification { .. } => "Verification",
            Missing::Verdict { .. } => "Verdict",
        };
        found.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}
