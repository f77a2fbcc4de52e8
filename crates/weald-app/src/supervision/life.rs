//! A supervisor's life: watch the command, then do what follows from its end.
//!
//! A command that a signal ended has crashed, it has not failed: its task is given back for another worker, and is
//! blocked after three crashes in a row. Work that waits for a person is parked, in progress and without a lease: a
//! lease would expire, and another worker would do the work again.

use crate::agents::drivers::{Form, driver_for};
use crate::{Agents, CheckoutState, CommitScope, Found, LandRequest, Landings, TreeView, Watched};
use std::time::Duration;

use weald_core::agent::{Agent, AgentId, AgentStatus, Barrier, End, Goal, Outcome, Stage};
use weald_core::agent_rules::AgentInput;
use weald_core::config::Leftovers;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::needs::{NOTHING_YET, TO_DECIDE, to_land_again};
use weald_core::retrying::{in_short, is_solvable};
use weald_core::task_rules::TaskInput;
use weald_terminal::Size;

use super::empty;
use super::holding::holding;
use super::limit::{self, Limits, Waited};
use super::reporting::{Ending, write_down};
use super::retrying::retry;
use crate::Failure;
use crate::authority::{Authority, Mandate};
use crate::hidden_files::named_files_unseen;
use crate::landing::{Mode, work_landings};
use crate::progress::WordsAlone;
use crate::{Call, Ground};

/// Supervises an agent from its beginning to its end. Whatever goes wrong is in its record.
/// `size` is that of the terminal from which it was started, for one that gets a terminal.
pub fn live(call: &Call<'_>, id: AgentId, size: Option<Size>) -> Result<u8, Failure> {
    let ground = call.landing_ground()?;
    let me = Agents::new(&ground.trees(call)?).identity()?;
    let agent = ground.engine.decide_agent(id, AgentInput::Supervised(me))?;
    let ended = work(call, &ground, &agent, size);
    let end = match ended {
        Ok(end) => end,
        Err(failure) => {
            call.warn(&failure.message);
            broken_off(&ground, &agent, failure)?
        }
    };
    let end = superseded(&ground, &agent, end)?;
    if let Err(end) = retry(call, &ground, &agent, end)? {
        ground.engine.decide_agent(id, AgentInput::End(end))?;
    }
    if agent.entry().is_some() {
        ground.engine.await_pick(&agent.task, agent.token)?;
    }
    call.tell(&ground.engine);
    Ok(0)
}

fn work(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    size: Option<Size>,
) -> Result<End, Failure> {
    let before = empty::checkout_before(call, ground, agent)?;
    let (watched, code, found) = match agent.begin_at {
        Stage::Run => watch(call, ground, agent, size)?,
        Stage::Finish => (None, agent.code.or(Some(0)), None),
    };
    let finishing = AgentInput::Finishing { code };
    let agent = ground.engine.decide_agent(agent.id, finishing)?;
    match watched {
        None => holding(ground, &agent, || {
            succeeded(call, ground, &agent, before, found)
        })
        .or_else(|failure| not_landed(call, ground, &agent, &failure)),
        Some((outcome, why)) => unsuccessful(ground, &agent, outcome, why),
    }
}

/// What went wrong on weald's side. An agent that never began gives its task back; one that did counts as crashed, so
/// that the next one goes on behind what it completed, and a task that breaks everybody waits for a person.
fn broken_off(ground: &Ground, agent: &Agent, failure: Failure) -> Result<End, Failure> {
    let why = failure.in_words();
    let current = ground.engine.agent(agent.id)?;
    if current.status == AgentStatus::Starting {
        if agent.goal != Goal::Stay {
            release(ground, agent);
        }
        return ended_as(ground, Outcome::NotStarted, why);
    }
    if agent.goal != Goal::Stay {
        // It may be finished, or somebody else's.
        let _ = ground.engine.give_back_crashed(&current);
    }
    ended_as(ground, Outcome::Crashed, why)
}

/// Whatever kept an agent from its end: if somebody else has its task, that is why.
fn superseded(ground: &Ground, agent: &Agent, end: End) -> Result<End, Failure> {
    let token = ground.engine.task(&agent.task)?.task.token;
    Ok(match end.outcome {
        Outcome::Failed
        | Outcome::Empty
        | Outcome::NotLanded
        | Outcome::NotStarted
        | Outcome::Crashed
            if token != agent.token =>
        {
            End {
                outcome: Outcome::Superseded,
                why: format!("another session holds the task; {}", end.why),
                ..end
            }
        }
        _ => end,
    })
}

/// How it went wrong, if it did; its exit code; and what was found in its worktree at its end.
type Watch = (Option<(Outcome, String)>, Option<i32>, Option<Found>);

/// Runs the command, again as soon as its provider serves it again. What its stream says of that may be forged, so the
/// time that it may work is that of all its runs.
fn watch(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    size: Option<Size>,
) -> Result<Watch, Failure> {
    let (mut limits, mut is_renewed) = (Limits::default(), false);
    // The time of an interactive one is that of the person who sits there.
    let timeout = ground.config().agent_timeout;
    let timeout = timeout.filter(|_| !agent.interactive);
    let mut time_left = timeout.map(|timeout| timeout.unsigned_abs());
    loop {
        let current = ground.engine.agent(agent.id)?;
        let trees = ground.trees(call)?;
        let login = || Agents::new(&trees).login_trace(&agent.driver);
        let before = login();
        let run = run(call, ground, &current, size, &mut time_left)?;
        let Watched::Barred { barrier, words } = &run.watched else {
            return after(call, ground, agent, run);
        };
        let current = ground.engine.agent(agent.id)?;
        let ended = match barrier {
            // The user logged in again while it worked.
            Barrier::Login if !is_renewed && login() != before => {
                is_renewed = true;
                continue;
            }
            Barrier::Login => (Outcome::LoggedOut, limit::words(agent, *barrier, words)),
            Barrier::Limit { until } => match limits.wait(call, ground, &current, *until)? {
                Waited::Reset => continue,
                Waited::TooOften => (Outcome::Failed, limit::too_often(agent, words)),
                Waited::Stopped { why } => (Outcome::Stopped, why),
                Waited::Superseded => (
                    Outcome::Superseded,
                    "another session holds the task".to_owned(),
                ),
            },
        };
        return Ok((Some(ended), None, run.found));
    }
}

/// How one run of an agent's command ended.
struct Run {
    watched: Watched,
    /// What was found in its worktree at its end.
    found: Option<Found>,
    /// The files that git says it changed, if it has a worktree.
    changed: Option<Result<Vec<String>, String>>,
    /// A file that its command names and that it could not see.
    hidden: Option<String>,
}

fn run(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    size: Option<Size>,
    time_left: &mut Option<Duration>,
) -> Result<Run, Failure> {
    let trees = ground.trees(call)?;
    let arguments: Vec<_> = agent.command.iter().map(Into::into).collect();
    let driver = driver_for(ground.config(), Some(&agent.driver), &arguments)?;
    let window = call.windows()?.open(&trees)?;
    let form = match agent.interactive {
        true => Form::Interactive,
        false => Form::Headless,
    };
    let mut prepared =
        Agents::new(&trees).prepare_agent(agent, driver, window.folder(), None, form)?;
    window.grant(&mut prepared.request);
    prepared.terminal = size.or(prepared.terminal).filter(|_| agent.interactive);
    let authority = Authority {
        session: Some(agent.session.clone()),
        task: Some(agent.task.clone()),
        token: Some(agent.token),
        tree: prepared.request.tree.name.clone(),
        branch: prepared.request.tree.branch.clone(),
        path: prepared.request.tree.path.clone(),
        agent: Some(agent.id),
        mandate: Mandate::of(agent),
    };
    for note in &prepared.request.notes {
        call.note(note);
    }
    let words = agent.command.iter().map(AsRef::as_ref);
    let hidden = named_files_unseen(prepared.request.policy.as_ref(), words);
    let mut watched = None;
    let mut prepared = Some(prepared);
    let mut watch = || {
        let prepared = prepared.take();
        watched = prepared
            .map(|prepared| Agents::new(&trees).watch_agent(agent, prepared, &mut *time_left));
    };
    holding(ground, agent, || {
        window.serve_while(call, ground, &trees, authority, &mut watch)
    })?;
    let (watched, end) = watched.ok_or_else(Failure::bug)??;
    let (found, changed) = end.map(|end| (end.found, end.changed)).unzip();
    Ok(Run {
        watched,
        found: found.flatten(),
        changed,
        hidden,
    })
}

/// What a command's end means, after what is to be written down of it.
fn after(call: &Call<'_>, ground: &Ground, agent: &Agent, run: Run) -> Result<Watch, Failure> {
    let (changed, hidden) = (run.changed, run.hidden);
    let current = ground.engine.agent(agent.id)?;
    let (trouble, code) = match run.watched {
        // What its interface ended with says nothing of the work; whoever sat there knows.
        Watched::Code { code, .. } if agent.interactive => (None, Some(code)),
        Watched::Code {
            code,
            signal,
            ok,
            words,
        } => {
            let ending = Ending {
                code,
                signal,
                ok,
                words,
                changed,
            };
            let reported = write_down(call, ground, &current, ending)?.report;
            let said_no = reported.is_some_and(|report| !report.success);
            let trouble = match (code, said_no) {
                (0, false) => None,
                (0, true) => Some((Outcome::Failed, "it reported a failure".to_owned())),
                (code, _) if signal.is_some() => {
                    let why = format!("its command was killed by signal {}", code - 128);
                    Some((Outcome::Crashed, why))
                }
                (code, _) => {
                    let hidden = hidden.map(|hidden| format!("; {hidden}"));
                    let why = format!(
                        "its command ended with {code}{}",
                        hidden.unwrap_or_default()
                    );
                    Some((Outcome::Failed, why))
                }
            };
            (trouble, Some(code))
        }
        Watched::Unfit { why } => (Some((Outcome::Failed, why)), None),
        Watched::TimedOut => (Some((Outcome::TimedOut, "agent.timeout".to_owned())), None),
        Watched::Stopped { why, .. } => (Some((Outcome::Stopped, why)), None),
        Watched::Superseded => (
            Some((
                Outcome::Superseded,
                "another session holds the task".to_owned(),
            )),
            None,
        ),
        Watched::OverBudget { why } => (Some((Outcome::OverBudget, why)), None),
        // It was waited for.
        Watched::Barred { barrier, words } => (
            Some((Outcome::Failed, limit::words(agent, barrier, &words))),
            None,
        ),
    };
    Ok((trouble, code, run.found))
}

/// The command is done: its work lands, or its task is completed, or nothing follows.
fn succeeded(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    before: Option<CheckoutState>,
    found: Option<Found>,
) -> Result<End, Failure> {
    match agent.goal {
        _ if agent.interactive => left_to_person(call, ground, agent, found),
        Goal::Stay => {
            commit(call, ground, agent, found)?;
            ended_as(ground, Outcome::Done, String::new())
        }
        Goal::Finish => {
            let left = commit(call, ground, agent, found)?;
            if empty::is_empty(call, ground, agent, left.as_ref(), before)? {
                return ended_empty(call, ground, agent);
            }
            match Agents::new(&ground.trees(call)?).failed_landing(agent)? {
                Some(landing) => park(call, ground, agent, &to_land_again(&landing.target)),
                None => complete(ground, agent)?,
            }
            ended_as(ground, Outcome::Done, String::new())
        }
        Goal::Land => land(call, ground, agent, found),
    }
}

/// An interactive agent has ended. Its work is committed and kept; whether it lands is decided by a person, who is asked
/// where the terminal was.
fn left_to_person(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    found: Option<Found>,
) -> Result<End, Failure> {
    let view = commit(call, ground, agent, found)?;
    let trees = ground.trees(call)?;
    let is_empty = match &view {
        Some(view) => Agents::new(&trees).holds_nothing(view)?,
        None => false,
    };
    let reason = if is_empty { NOTHING_YET } else { TO_DECIDE };
    park(call, ground, agent, reason);
    ended_as(ground, Outcome::Done, String::new())
}

/// Nothing was done: somebody has to look, and the task waits for them.
fn ended_empty(call: &Call<'_>, ground: &Ground, agent: &Agent) -> Result<End, Failure> {
    let reason = empty::reason(ground, agent)?;
    park(call, ground, agent, &reason);
    ended_as(ground, Outcome::Empty, reason)
}

/// The work is done, and what had to follow failed: nobody has to do it again.
fn not_landed(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    failure: &Failure,
) -> Result<End, Failure> {
    let why = failure.in_words();
    if agent.goal != Goal::Stay {
        park(call, ground, agent, &why);
    }
    ended_as(ground, Outcome::NotLanded, why)
}

/// The task waits, and nobody takes it. It may be finished, or somebody else's, by now.
pub(super) fn park(call: &Call<'_>, ground: &Ground, agent: &Agent, reason: &str) {
    let input = TaskInput::Park {
        token: Some(agent.token),
        reason: reason.to_owned(),
    };
    let moved = ground
        .engine
        .move_task(Some(&agent.session), &agent.task, input);
    if let Err(error) = moved {
        call.warn(&format!("task {}: {error}", agent.task));
    }
}

/// What of its leftovers is committed, and the message.
fn leftovers(ground: &Ground, agent: &Agent) -> Result<Option<(CommitScope, String)>, Failure> {
    let scope = match ground.config().work_commit {
        Leftovers::All => CommitScope::All,
        Leftovers::Tracked => CommitScope::Tracked,
        Leftovers::Nothing => return Ok(None),
    };
    let subject = ground.engine.task(&agent.task)?.task.subject;
    let message = match agent.phase() {
        Some(phase) => format!("{subject} ({phase})"),
        None => subject,
    };
    Ok(Some((scope, message)))
}

/// Commits what is left in its worktree, if it has one, and takes it in.
fn commit(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    found: Option<Found>,
) -> Result<Option<TreeView>, Failure> {
    let Some(tree) = &agent.tree else {
        return Ok(None);
    };
    let trees = ground.trees(call)?;
    let left = leftovers(ground, agent)?;
    let wish = left
        .as_ref()
        .map(|(scope, message)| (*scope, message.as_str()));
    let view = Landings::new(&trees).commit_work(tree.as_str(), wish, found.as_ref())?;
    Ok(Some(view))
}

fn land(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    found: Option<Found>,
) -> Result<End, Failure> {
    let Some(tree) = &agent.tree else {
        return ended_as(ground, Outcome::Failed, "it has no worktree".to_owned());
    };
    let request = LandRequest {
        names: vec![tree.to_string()],
        by_agent: true,
        supervised: true,
        token: Some((agent.task.clone(), agent.token)),
        commit: leftovers(ground, agent)?,
        found,
        ..LandRequest::default()
    };
    // Who follows the agent shows them.
    let words = WordsAlone(call.progress);
    let call = &Call {
        progress: &words,
        ..*call
    };
    let queued = Landings::new(&ground.trees(call)?).queue_landings(&request)?;
    let ids: Vec<_> = queued.iter().map(|landing| landing.id).collect();
    let again = call.landing_ground()?;
    let worked = work_landings(call, again, &ids, &request, Mode::Work)?;
    call.tell(&worked.ground.engine);
    let Some(landing) = worked.landings.first() else {
        return ended_as(ground, Outcome::Failed, "nothing was queued".to_owned());
    };
    let (outcome, why) = judged(call, ground, agent, landing)?;
    Ok(End {
        landing: Some(landing.id),
        ..ended_as(ground, outcome, why)?
    })
}

/// What a landing means for the agent and its task.
fn judged(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    landing: &Landing,
) -> Result<(Outcome, String), Failure> {
    let park = |reason: String| -> Result<(Outcome, String), Failure> {
        park(call, ground, agent, &reason);
        Ok((Outcome::NotLanded, reason))
    };
    match landing.status {
        LandingStatus::Landed => Ok((Outcome::Done, String::new())),
        LandingStatus::NothingToLand => {
            let trees = ground.trees(call)?;
            let brought_nothing = Agents::new(&trees).brought_nothing(landing)?;
            let tree = agent.tree.as_ref();
            let leave = |tree| Agents::new(&trees).leave_unchanged(tree, Some(&landing.head));
            if let Some(held) = tree.and_then(leave) {
                return park(held);
            }
            if empty::counts(ground, agent)? && brought_nothing {
                let reason = empty::reason(ground, agent)?;
                park(reason.clone())?;
                return Ok((Outcome::Empty, reason));
            }
            complete(ground, agent)?;
            Ok((Outcome::Done, "nothing to land".to_owned()))
        }
        // What they mean for the task follows from whether it is tried again.
        _ if is_solvable(landing) => Ok((Outcome::NotLanded, in_short(landing))),
        _ => {
            let reason = landing.reason.as_ref().map(|reason| reason.message.clone());
            park(reason.unwrap_or_else(|| {
                format!("landing {} is {}", landing.id, landing.status.as_str())
            }))
        }
    }
}

/// What an agent said at its end, if it said anything.
fn words(agent: &Agent) -> Option<String> {
    let report = agent.report.as_ref()?;
    Some(report.report.clone()).filter(|text| !text.trim().is_empty())
}

fn complete(ground: &Ground, agent: &Agent) -> Result<(), Failure> {
    let input = TaskInput::Complete {
        token: Some(agent.token),
        report: words(agent),
    };
    ground
        .engine
        .move_task(Some(&agent.session), &agent.task, input)?;
    Ok(())
}

/// The command is not done: its tree stays, its task says why.
fn unsuccessful(
    ground: &Ground,
    agent: &Agent,
    outcome: Outcome,
    why: String,
) -> Result<End, Failure> {
    let is_released = match &agent.wanted {
        Some(weald_core::agent::Wanted::Stop { release, .. }) => *release,
        _ => matches!(outcome, Outcome::Stopped | Outcome::LoggedOut),
    };
    if agent.goal != Goal::Stay && outcome == Outcome::Crashed {
        ground.engine.give_back_crashed(agent)?;
    } else if agent.goal != Goal::Stay && outcome != Outcome::Superseded {
        let input = match is_released {
            _ if outcome == Outcome::OverBudget => TaskInput::Park {
                token: Some(agent.token),
                reason: why.clone(),
            },
            true => TaskInput::Release {
                token: Some(agent.token),
            },
            false => TaskInput::Fail {
                token: Some(agent.token),
                report: Some(words(agent).unwrap_or_else(|| why.clone())),
            },
        };
        let moved = ground
            .engine
            .move_task(Some(&agent.session), &agent.task, input);
        if let Err(error) = moved {
            return ended_as(ground, outcome, format!("{why}; its task: {error}"));
        }
    }
    ended_as(ground, outcome, why)
}

fn release(ground: &Ground, agent: &Agent) {
    let input = TaskInput::Release {
        token: Some(agent.token),
    };
    // It may be finished, or somebody else's.
    let _ = ground
        .engine
        .move_task(Some(&agent.session), &agent.task, input);
}

fn ended_as(ground: &Ground, outcome: Outcome, why: String) -> Result<End, Failure> {
    Ok(End {
        outcome,
        code: None,
        why,
        landing: None,
        at: ground.engine.now()?,
    })
}
