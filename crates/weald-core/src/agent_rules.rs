//! What may happen to an agent's record: `(agent, input, now) -> (agent, change)` or a refusal.

use jiff::{SignedDuration, Timestamp};

use crate::agent::{Agent, AgentId, AgentStatus, End, FinalReport, Limit, Outcome, Usage, Wanted};
use crate::cost::Spent;
use crate::event::{Change, EventKind};
use crate::id::{Token, TreeId};
use crate::name::TreeName;
use crate::session::ProcessIdentity;
use crate::verdict::Verdict;

/// Something that happens to an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentInput {
    /// Its tree is there.
    Placed {
        /// What it is called.
        tree: TreeName,
        tree_id: TreeId,
        branch: String,
    },
    /// Its supervisor is there, and takes over from its starter.
    Supervised(ProcessIdentity),
    /// Its command was started.
    Began(ProcessIdentity),
    /// Its stream reported which conversation it is, or what it used.
    Observed {
        /// The conversation, if it is new.
        conversation: Option<String>,
        /// The usage, if it is new.
        usage: Option<Usage>,
    },
    /// What it used so far.
    Spent {
        spent: Vec<Spent>,
        is_partial: bool,
    },
    /// Somebody wants something of it.
    Want(Wanted),
    /// Its processes were stopped.
    Paused,
    Unpaused,
    /// It waits for a usage limit.
    Limited(Limit),
    /// Its owner was reminded that it is silent.
    Reminded,
    /// It is silent for too long.
    Stalled {
        /// What is known of it, with what its tree holds.
        found: String,
    },
    /// It did something again.
    Active,
    /// It says what came out, under this claim.
    Report {
        /// The claim it believes in.
        token: Token,
        report: FinalReport,
    },
    /// What git says it changed.
    Changed {
        files: Vec<String>,
    },
    /// What it said as a phase.
    Judged(Verdict),
    Finishing {
        /// How, if it had a code.
        code: Option<i32>,
    },
    /// All of it is over.
    End(End),
    /// Its supervisor is proven gone.
    Crash {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentRefusal {
    /// Its run is over.
    #[error("agent {agent} has ended ({status})")]
    Over { agent: AgentId, status: AgentStatus },
    /// Another supervisor has it.
    #[error("agent {agent} already has a supervisor, process {pid}")]
    Supervised { agent: AgentId, pid: u32 },
    #[error("agent {agent} has already reported")]
    Reported { agent: AgentId },
    /// Its claim is not the newest.
    #[error("agent {agent} holds token {own}, not {given}")]
    StaleToken {
        agent: AgentId,
        own: Token,
        given: Token,
    },
    /// Its status does not allow it.
    #[error("agent {agent} is {status}, so it can't be {asked}")]
    NotNow {
        agent: AgentId,
        status: AgentStatus,
        asked: &'static str,
    },
}

pub fn decide(
    agent: &Agent,
    input: AgentInput,
    now: Timestamp,
) -> Result<(Agent, Change), AgentRefusal> {
    if agent.status.is_over() {
        return Err(AgentRefusal::Over {
            agent: agent.id,
            status: agent.status,
        });
    }
    let mut next = agent.clone();
    next.updated_at = now;
    let kind = apply(&mut next, input, now)?;
    let error = match (&kind, &next.end) {
        (kind, Some(end)) if *kind == EventKind::AGENT_CRASHED => Some(end.why.clone()),
        _ => None,
    };
    let change = Change::agent(kind, next.clone()).with_error(error);
    Ok((next, change))
}

fn apply(next: &mut Agent, input: AgentInput, now: Timestamp) -> Result<EventKind, AgentRefusal> {
    use AgentStatus::*;
    Ok(match input {
        AgentInput::Placed {
            tree,
            tree_id,
            branch,
        } => {
            (next.tree, next.tree_id) = (Some(tree), Some(tree_id));
            next.branch = Some(branch);
            EventKind::AGENT_PLACED
        }
        AgentInput::Supervised(process) => supervised(next, process)?,
        AgentInput::Began(process) => {
            next.process = Some(process);
            next.status = Running;
            next.limit = None;
            EventKind::AGENT_STARTED
        }
        AgentInput::Observed {
            conversation,
            usage,
        } => {
            next.conversation = conversation.or(next.conversation.take());
            next.usage = usage.or(next.usage);
            EventKind::AGENT_OBSERVED
        }
        AgentInput::Spent { spent, is_partial } => {
            (next.spent, next.spent_is_partial) = (spent, is_partial);
            EventKind::AGENT_OBSERVED
        }
        AgentInput::Want(wanted) => want(next, wanted)?,
        AgentInput::Paused => {
            obeyed(next, &Wanted::Pause);
            next.status = Paused;
            EventKind::AGENT_PAUSED
        }
        AgentInput::Unpaused => {
            obeyed(next, &Wanted::Run);
            next.status = Running;
            EventKind::AGENT_RESUMED
        }
        AgentInput::Limited(limit) => {
            next.status = Limited;
            next.limit = Some(limit);
            next.process = None;
            EventKind::AGENT_LIMITED
        }
        AgentInput::Reminded => {
            next.told += 1;
            EventKind::AGENT_SILENT
        }
        AgentInput::Stalled { found } => {
            next.status = Stalled;
            next.stalled = Some(found);
            EventKind::AGENT_STALLED
        }
        AgentInput::Active => {
            next.told = 0;
            next.stalled = None;
            if next.status == Stalled {
                next.status = Running;
            }
            EventKind::AGENT_ACTIVE
        }
        AgentInput::Report { token, report } => reported(next, token, report)?,
        AgentInput::Changed { files } => {
            if let Some(report) = &mut next.report {
                report.files_changed = files;
            }
            EventKind::AGENT_OBSERVED
        }
        AgentInput::Judged(verdict) => {
            next.verdict = Some(verdict);
            EventKind::AGENT_JUDGED
        }
        AgentInput::Finishing { code } => {
            next.code = code;
            next.status = Finishing;
            EventKind::AGENT_FINISHING
        }
        AgentInput::End(end) => {
            next.status = Exited;
            (next.wanted, next.limit) = (None, None);
            next.end = Some(end);
            EventKind::AGENT_EXITED
        }
        AgentInput::Crash { why } => crashed(next, why, now),
    })
}

/// Only the first one takes over from its starter.
fn supervised(next: &mut Agent, process: ProcessIdentity) -> Result<EventKind, AgentRefusal> {
    let known = next.supervisor.as_ref().filter(|known| **known != process);
    if let Some(known) = known.filter(|_| next.supervised) {
        return Err(AgentRefusal::Supervised {
            agent: next.id,
            pid: known.pid,
        });
    }
    next.supervisor = Some(process);
    next.supervised = true;
    Ok(EventKind::AGENT_SUPERVISED)
}

fn reported(
    next: &mut Agent,
    token: Token,
    report: FinalReport,
) -> Result<EventKind, AgentRefusal> {
    if token != next.token {
        return Err(AgentRefusal::StaleToken {
            agent: next.id,
            own: next.token,
            given: token,
        });
    }
    if next.report.is_some() {
        return Err(AgentRefusal::Reported { agent: next.id });
    }
    next.report = Some(report);
    Ok(EventKind::AGENT_REPORTED)
}

fn crashed(next: &mut Agent, why: String, now: Timestamp) -> EventKind {
    next.status = AgentStatus::Crashed;
    next.wanted = None;
    next.end = Some(End {
        outcome: Outcome::Crashed,
        code: None,
        why,
        landing: None,
        at: now,
    });
    EventKind::AGENT_CRASHED
}

/// An order is done with; a newer one stays.
fn obeyed(next: &mut Agent, order: &Wanted) {
    if next.wanted.as_ref() == Some(order) {
        next.wanted = None;
    }
}

fn want(next: &mut Agent, wanted: Wanted) -> Result<EventKind, AgentRefusal> {
    use AgentStatus::*;
    let (allowed, asked) = match wanted {
        // Its command is over by then, and what it left is being landed.
        Wanted::Stop { .. } => (next.status != Finishing, "stopped"),
        Wanted::Pause => (matches!(next.status, Running | Stalled), "paused"),
        Wanted::Run => (next.status == Paused, "resumed"),
    };
    if !allowed {
        return Err(AgentRefusal::NotNow {
            agent: next.id,
            status: next.status,
            asked,
        });
    }
    next.wanted = Some(wanted);
    Ok(EventKind::AGENT_WANTED)
}

/// When silence is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub first: SignedDuration,
    pub second: SignedDuration,
    /// From when on it counts as stalled.
    pub stalled: SignedDuration,
}

/// What silence calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Its owner is reminded.
    Remind,
    /// It counts as stalled.
    Stalled,
    /// It did something again.
    Broken,
}

/// What an agent's silence of `idle` calls for now, if anything. A paused one and one that waits for an answer are not
/// silent; nobody is reminded of one more than twice.
pub fn silence(agent: &Agent, idle: SignedDuration, patience: Patience) -> Option<Silence> {
    let is_watched = matches!(agent.status, AgentStatus::Running | AgentStatus::Stalled);
    if !is_watched {
        return None;
    }
    if idle < patience.first {
        return (agent.told > 0 || agent.status == AgentStatus::Stalled).then_some(Silence::Broken);
    }
    if agent.status == AgentStatus::Stalled {
        return None;
    }
    let due = match agent.told {
        0 => patience.first,
        1 => patience.second,
        _ => patience.stalled,
    };
    match (idle >= due, agent.told) {
        (false, _) => None,
        (true, 0 | 1) => Some(Silence::Remind),
        (true, _) => Some(Silence::Stalled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Post, Verification};
    use crate::id::TaskId;

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
    fn s14_silence_is_told_twice_then_it_counts_as_stalled() {
        let patience = Patience {
            first: SignedDuration::from_mins(4),
            second: SignedDuration::from_mins(8),
            stalled: SignedDuration::from_mins(20),
        };
        let cases = [
            (AgentStatus::Running, 0, 3, None),
            (AgentStatus::Running, 0, 4, Some(Silence::Remind)),
            (AgentStatus::Running, 1, 7, None),
            (AgentStatus::Running, 1, 8, Some(Silence::Remind)),
            (AgentStatus::Running, 2, 19, None),
            (AgentStatus::Running, 2, 20, Some(Silence::Stalled)),
            (AgentStatus::Stalled, 2, 60, None),
            (AgentStatus::Stalled, 2, 1, Some(Silence::Broken)),
            (AgentStatus::Running, 1, 1, Some(Silence::Broken)),
            (AgentStatus::Paused, 0, 60, None),
            (AgentStatus::Finishing, 0, 60, None),
        ];
        for (status, told, minutes, expected) in cases {
            let watched = Agent {
                told,
                ..agent(status)
            };
            let found = silence(&watched, SignedDuration::from_mins(minutes), patience);
            assert_eq!(found, expected, "{status} told {told} after {minutes}");
        }
    }

    #[test]
    fn s20_finishing_twice_and_a_stale_agent_are_refused() {
        let now = Timestamp::UNIX_EPOCH;
        let report = || FinalReport {
            success: true,
            report: "done".to_owned(),
            files_changed: Vec::new(),
            verification: Verification::None,
            verified_by: String::new(),
            inferred: false,
            at: now,
        };
        let input = |token| AgentInput::Report {
            token,
            report: report(),
        };
        let running = agent(AgentStatus::Running);
        let stale = decide(&running, input(Token(2)), now).unwrap_err();
        assert!(matches!(stale, AgentRefusal::StaleToken { .. }));
        let (reported, _) = decide(&running, input(Token(3)), now).unwrap();
        let twice = decide(&reported, input(Token(3)), now).unwrap_err();
        assert!(matches!(twice, AgentRefusal::Reported { .. }));
        for status in [AgentStatus::Exited, AgentStatus::Crashed] {
            let over = decide(&agent(status), input(Token(3)), now).unwrap_err();
            assert!(matches!(over, AgentRefusal::Over { .. }));
        }
    }

    #[test]
    fn s12_orders_fit_the_status() {
        let now = Timestamp::UNIX_EPOCH;
        let fits = |status, wanted| decide(&agent(status), AgentInput::Want(wanted), now).is_ok();
        assert!(fits(AgentStatus::Running, Wanted::Pause));
        assert!(!fits(AgentStatus::Paused, Wanted::Pause));
        assert!(fits(AgentStatus::Paused, Wanted::Run));
        assert!(!fits(AgentStatus::Running, Wanted::Run));
        let stop = || Wanted::Stop {
            why: String::new(),
            release: false,
        };
        assert!(fits(AgentStatus::Paused, stop()));
        // A stop that came while it was paused is not lost.
        let asked = Agent {
            wanted: Some(stop()),
            ..agent(AgentStatus::Running)
        };
        let (paused, _) = decide(&asked, AgentInput::Paused, now).unwrap();
        assert_eq!(paused.wanted, Some(stop()));
        assert!(!fits(AgentStatus::Finishing, stop()));
        assert!(!fits(AgentStatus::Exited, stop()));
    }
}
