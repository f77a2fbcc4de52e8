//! What is written down of an agent when its command has ended: its report, the files git says it changed, its verdict.

use crate::{Agents, Trees};
use weald_core::agent::{Agent, FinalReport, Verification};
use weald_core::agent_rules::AgentInput;
use weald_core::verdict::{Ruling, Verdict};

use crate::Failure;
use crate::{Call, Ground};

/// How a command ended.
pub struct Ending {
    /// Of its command.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What its stream said of success.
    pub ok: Option<bool>,
    /// What it said last.
    pub words: String,
    /// The files that git says it changed, if it has a worktree.
    pub changed: Option<Result<Vec<String>, String>>,
}

/// Writes it down. An agent that did not report itself is reported by what its stream and its exit code say.
pub fn write_down(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    ending: Ending,
) -> Result<Agent, Failure> {
    let (engine, trees) = (&ground.engine, ground.trees(call)?);
    let (code, signal) = (ending.code, ending.signal);
    if agent.report.is_none() {
        let report = FinalReport {
            success: code == 0 && ending.ok != Some(false),
            report: ending.words,
            files_changed: Vec::new(),
            verification: Verification::None,
            verified_by: String::new(),
            inferred: true,
            at: engine.now()?,
        };
        // Somebody who took the task over speaks for it now; what this one left is kept all the same.
        if let Err(error) = engine.report_agent(agent.id, agent.token, report) {
            call.warn(&error.to_string());
        }
    }
    match ending.changed {
        Some(Ok(files)) => drop(engine.decide_agent(agent.id, AgentInput::Changed { files })?),
        Some(Err(error)) => call.warn(&format!(
            "could not determine what {} changed: {error}",
            agent.id
        )),
        None => {}
    }
    let agent = engine.agent(agent.id)?;
    // A phase that something killed has no verdict: it is done again.
    match verdict(&trees, &agent, code).filter(|_| signal.is_none()) {
        Some(verdict) => Ok(engine.decide_agent(agent.id, AgentInput::Judged(verdict))?),
        None => Ok(agent),
    }
}

/// The verdict of a phase.
fn verdict(trees: &Trees<'_>, agent: &Agent, code: i32) -> Option<Verdict> {
    agent.phase()?;
    let verdict = Verdict::of(Agents::new(trees).written_verdict(agent), code);
    let refusal = agent.report.as_ref().filter(|report| !report.success);
    match refusal.filter(|_| verdict.passes()) {
        Some(report) => Some(Verdict {
            ruling: Ruling::Fail,
            must_fix: vec![format!("it reported a failure: {}", report.report)],
            ..verdict
        }),
        None => Some(verdict),
    }
}
