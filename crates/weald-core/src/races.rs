//! Races: several agents on one task, each in a tree of its own; one of them is picked.
//!
//! There is no record of a race: its entries are the agents with that role under the newest claim, and the one that was
//! picked is the one whose tree belongs to the task.

use crate::agent::{Agent, AgentId};
use crate::id::TaskId;
use crate::name::TreeName;
use crate::task::{Task, TaskStatus};

/// The most entries a race has: one a letter.
pub const MOST: usize = 26;

/// Why an entry was not picked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RaceRefusal {
    #[error("task {task} has no race")]
    NoRace { task: TaskId },
    /// No entry is called so.
    #[error("the race of task {task} has no entry {name}")]
    NoEntry { task: TaskId, name: String },
    /// Its agent has not finished successfully.
    #[error("{agent} has not finished successfully ({how})")]
    NotDone { agent: AgentId, how: String },
    #[error("{tree} was already picked for task {task}")]
    Picked {
        task: TaskId,
        tree: TreeName,
        /// Whether all is done.
        landed: bool,
    },
}

/// The letter of an entry.
pub fn letter(index: usize) -> char {
    char::from(b'a' + (index % MOST) as u8)
}

/// The entries of a task's newest race.
pub fn entries(agents: &[Agent]) -> Vec<&Agent> {
    let is_entry = |agent: &&Agent| agent.entry().is_some();
    let newest = agents.iter().rev().find(is_entry).map(|agent| agent.token);
    let all = agents.iter().filter(is_entry);
    all.filter(|agent| Some(agent.token) == newest).collect()
}

/// The entry that was picked.
pub fn picked<'a>(task: &Task, entries: &[&'a Agent]) -> Option<&'a Agent> {
    let own = match task.status {
        TaskStatus::Completed => task.worktree.as_ref().or(task.last_worktree.as_ref()),
        _ => task.worktree.as_ref(),
    };
    let own = own?;
    entries
        .iter()
        .find(|agent| agent.tree.as_ref() == Some(own))
        .copied()
}

/// Whether the newest race of a task has ended and waits for somebody to pick.
pub fn is_undecided(task: &Task, agents: &[Agent]) -> bool {
    task.lease.is_none() && is_open(task, agents)
}

/// Whether the newest race of a task was neither decided nor dropped, and nobody began to work on the task otherwise.
pub fn is_open(task: &Task, agents: &[Agent]) -> bool {
    let entries = entries(agents);
    let Some(last) = entries.last() else {
        return false;
    };
    // A pick that did not land leaves an agent that was to land an entry's work.
    let is_pick = |agent: &&Agent| {
        agent
            .resumes
            .is_some_and(|id| entries.iter().any(|entry| entry.id == id))
    };
    let mut later = agents.iter().filter(|agent| agent.id > last.id);
    let is_held = task.status == TaskStatus::InProgress;
    is_held && picked(task, &entries).is_none() && later.all(|agent| is_pick(&agent))
}

/// The entry that is called `name` (a letter, a tree, an agent), if it can be picked.
pub fn pick<'a>(task: &Task, agents: &'a [Agent], name: &str) -> Result<&'a Agent, RaceRefusal> {
    let entries = entries(agents);
    let id = || task.id.clone();
    if entries.is_empty() {
        return Err(RaceRefusal::NoRace { task: id() });
    }
    if let Some(tree) = picked(task, &entries).and_then(|agent| agent.tree.clone()) {
        let landed = task.status == TaskStatus::Completed;
        return Err(RaceRefusal::Picked {
            task: id(),
            tree,
            landed,
        });
    }
    let is_meant = |agent: &&&Agent| {
        agent.entry() == Some(name)
            || agent.id.to_string() == name
            || agent
                .tree
                .as_ref()
                .is_some_and(|tree| tree.as_str() == name)
    };
    let Some(agent) = entries.iter().find(is_meant) else {
        return Err(RaceRefusal::NoEntry {
            task: id(),
            name: name.to_owned(),
        });
    };
    match agent.is_done() {
        true => Ok(agent),
        false => Err(RaceRefusal::NotDone {
            agent: agent.id,
            how: match &agent.end {
                Some(end) => end.outcome.as_str().replace('_', " "),
                None => agent.status.to_string(),
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::agent::{End, Outcome, Post};
    use crate::id::Token;

    fn entry(id: u64, token: u64, letter: &str, outcome: Option<Outcome>) -> Agent {
        let now = Timestamp::UNIX_EPOCH;
        let post = Post {
            session: "a1".parse().unwrap(),
            task: TaskId::Number(1),
            token: Token(token),
        };
        Agent {
            role: Some(format!("race:{letter}")),
            tree: Some(format!("fix-{letter}").parse().unwrap()),
            end: outcome.map(|outcome| End {
                outcome,
                code: None,
                why: String::new(),
                landing: None,
                at: now,
            }),
            ..Agent::new(AgentId(id), post, "command", now)
        }
    }

    #[test]
    fn y19_a_race_is_open_until_somebody_picks_drops_it_or_begins_otherwise() {
        let mut task = Task::new(TaskId::Number(1), "x", Timestamp::UNIX_EPOCH);
        task.status = TaskStatus::InProgress;
        let done = |id| entry(id, 2, "a", Some(Outcome::Done));
        let alone = |id, resumes| Agent {
            role: None,
            resumes,
            ..done(id)
        };
        assert!(!is_open(&task, &[]));
        assert!(is_open(&task, &[done(1), done(2)]));
        let tried = [done(1), done(2), alone(3, Some(AgentId(2)))];
        assert!(is_undecided(&task, &tried), "a pick that did not land");
        assert!(!is_open(&task, &[done(1), done(2), alone(3, None)]));
        task.worktree = Some("fix-a".parse().unwrap());
        assert!(!is_open(&task, &[done(1)]), "picked");
        task.worktree = None;
        task.status = TaskStatus::Pending;
        assert!(!is_open(&task, &[done(1)]), "dropped");
    }

    #[test]
    fn s16_only_a_finished_entry_of_the_newest_race_is_picked_once() {
        let mut task = Task::new(TaskId::Number(1), "x", Timestamp::UNIX_EPOCH);
        let agents = [
            entry(1, 1, "a", Some(Outcome::Done)),
            entry(2, 2, "a", Some(Outcome::Failed)),
            entry(3, 2, "b", Some(Outcome::Done)),
            entry(4, 2, "c", None),
        ];
        let found = |task: &Task, name: &str| pick(task, &agents, name).map(|agent| agent.id.0);
        for name in ["b", "a3", "fix-b"] {
            assert_eq!(found(&task, name), Ok(3), "{name}");
        }
        for name in ["a", "c"] {
            assert!(matches!(
                found(&task, name),
                Err(RaceRefusal::NotDone { .. })
            ));
        }
        for name in ["a1", "d", ""] {
            assert!(matches!(
                found(&task, name),
                Err(RaceRefusal::NoEntry { .. })
            ));
        }
        assert!(matches!(
            pick(&task, &[], "a"),
            Err(RaceRefusal::NoRace { .. })
        ));
        task.worktree = Some("fix-b".parse().unwrap());
        assert!(matches!(
            found(&task, "b"),
            Err(RaceRefusal::Picked { landed: false, .. })
        ));
        task.last_worktree = task.worktree.take();
        assert_eq!(
            found(&task, "b"),
            Ok(3),
            "an earlier tree says nothing of an open task"
        );
        task.status = TaskStatus::Completed;
        assert!(matches!(
            found(&task, "b"),
            Err(RaceRefusal::Picked { landed: true, .. })
        ));
    }
}
