//! An agent whose command ended well and that changed nothing. Unless it reported its task done itself, nobody knows that
//! anything was done: the task waits for a person, with the agent's last words.

use crate::{Agents, CheckoutState, TreeView};
use weald_core::agent::{Agent, Stage};
use weald_core::config::OnEmpty;

use super::tail::Tail;
use crate::Failure;
use crate::screen::clean;
use crate::{Call, Ground};

/// How much of the last words stands in the reason.
const WORDS: usize = 300;

/// How many lines of its output are the last words of a command.
const LINES: usize = 3;

/// The main checkout before an agent works in it.
pub fn checkout_before(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
) -> Result<Option<CheckoutState>, Failure> {
    match agent.in_main && agent.begin_at == Stage::Run {
        true => Ok(Some(Agents::new(&ground.trees(call)?).checkout_state()?)),
        false => Ok(None),
    }
}

/// Whether an agent that changed nothing leaves its task undone.
pub fn counts(ground: &Ground, agent: &Agent) -> Result<bool, Failure> {
    if ground.config().work_on_empty == OnEmpty::Complete {
        return Ok(false);
    }
    // One that only lands what others did speaks for them.
    let agents = ground.engine.agents_on(&agent.task)?;
    let speaks = |other: &&Agent| {
        other.id == agent.id || agent.begin_at == Stage::Finish && other.tree_id == agent.tree_id
    };
    let mut reports = agents
        .iter()
        .filter(speaks)
        .filter_map(|one| one.report.as_ref());
    Ok(!reports.any(|report| report.success && !report.inferred))
}

/// Whether an agent whose work does not land left its task undone. An empty worktree is removed.
pub fn is_empty(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    view: Option<&TreeView>,
    before: Option<CheckoutState>,
) -> Result<bool, Failure> {
    if !counts(ground, agent)? {
        return Ok(false);
    }
    let trees = ground.trees(call)?;
    match (view, before) {
        (Some(view), _) => {
            let agents = Agents::new(&trees);
            Ok(agents.holds_nothing(view)?
                && agents.leave_unchanged(&view.tree.name, None).is_none())
        }
        (None, Some(before)) => Ok(Agents::new(&trees).checkout_state()? == before),
        (None, None) => Ok(false),
    }
}

/// Why the task waits, on one line.
pub fn reason(ground: &Ground, agent: &Agent) -> Result<String, Failure> {
    let said = agent.report.as_ref().map(|report| report.report.clone());
    let words = match said.filter(|said| !said.trim().is_empty()) {
        Some(said) => said,
        // A command without a stream has said what it printed last.
        None => {
            String::from_utf8_lossy(&Tail::new(ground, agent.id)?.all_of(Some(LINES))?).into_owned()
        }
    };
    let words = clean(&words);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = words.chars().take(WORDS).collect();
    Ok(match (short.is_empty(), short.len() < words.len()) {
        (true, _) => format!("{} changed nothing and printed nothing", agent.id),
        (false, false) => format!("{} changed nothing; its last output: {short}", agent.id),
        (false, true) => format!("{} changed nothing; its last output: {short}…", agent.id),
    })
}
