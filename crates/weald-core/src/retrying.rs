//! Whether work that did not land is tried again by itself: the same agent, in its conversation, told what went wrong.
//!
//! Only conflicts and failed tests are: an agent can solve those. A retry is an agent of its own, as one that a person resumes
//! is. So its output, report, usage and end stand beside those of the first, and everything that lists or adds up agents
//! needs no rule for runs in runs. What a retry keeps is the name, the claim, the worktree and the conversation.

use crate::agent::{Agent, Goal};
use crate::landing::{Landing, LandingStatus};

/// What follows from a landing that an agent can help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Retry {
        number: u32,
        of: u32,
    },
    /// A person has to look; why no retry helps, unless none was allowed.
    Person(Option<String>),
}

/// Whether an agent could solve what kept its work from landing.
pub fn is_solvable(landing: &Landing) -> bool {
    matches!(landing.status, LandingStatus::Conflict | LandingStatus::Red)
}

/// What follows after `agent` when its work did not land. `others` are all agents on its task, `before` is the landing of
/// the one that it continues, and `limit` what is configured. Where phases or a race did the work nothing is retried: which
/// of the agents should is not known.
pub fn next(
    agent: &Agent,
    landing: &Landing,
    others: &[Agent],
    before: Option<&Landing>,
    limit: u32,
) -> Next {
    let has_parts = others.iter().any(|other| other.role.is_some());
    let of = match agent.goal {
        Goal::Land if !has_parts => agent.retries.unwrap_or(limit),
        _ => 0,
    };
    let is_unchanged = before.is_some_and(|before| before.head == landing.head);
    if agent.retry > 0 && is_unchanged {
        return Next::Person(Some(changed_nothing(agent)));
    }
    match (agent.retry < of, agent.retry) {
        (true, retry) => Next::Retry {
            number: retry + 1,
            of,
        },
        (false, 0) => Next::Person(None),
        (false, 1) => Next::Person(Some("a retry did not help".to_owned())),
        (false, count) => Next::Person(Some(format!("{count} retries did not help"))),
    }
}

fn changed_nothing(agent: &Agent) -> String {
    format!("retry {} made no changes", agent.id)
}

/// That a retry changed nothing, if its end says so and its landing is red. An answer about failed tests shows the tests
/// alone; one about a conflict shows the end.
pub fn unchanged_red(agent: &Agent, landing: &Landing) -> Option<String> {
    let why = changed_nothing(agent);
    let end = agent.end.as_ref()?;
    let is_told = agent.retry > 0 && end.why.ends_with(&why);
    (is_told && landing.status == LandingStatus::Red).then_some(why)
}

/// What went wrong, in one line.
pub fn in_short(landing: &Landing) -> String {
    let reason = landing
        .reason
        .as_ref()
        .map(|reason| reason.message.as_str());
    match (landing.status, reason) {
        (LandingStatus::Conflict, _) => {
            let paths = landing.conflicts.join(", ");
            format!("it conflicts in {paths}")
        }
        (LandingStatus::Red, Some(reason)) => {
            format!("its tests failed (landing {}): {reason}", landing.id)
        }
        (status, _) => format!("landing {} is {}", landing.id, status.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::agent::{AgentId, End, Outcome, Post};
    use crate::id::{LandingId, TaskId, Token, TreeId};
    use crate::tree::{Base, Tree};

    fn landing(status: LandingStatus, head: &str) -> Landing {
        let base = Base {
            reference: "main".into(),
            commit: "0".repeat(40),
        };
        let now = Timestamp::UNIX_EPOCH;
        let tree = Tree::new(TreeId(1), "a".parse().unwrap(), "/a".into(), base, now);
        Landing {
            status,
            ..Landing::new(LandingId(1), &tree, head.to_owned(), now)
        }
    }

    #[test]
    fn a7_retries_are_counted_and_one_that_changes_nothing_is_the_last() {
        let post = Post {
            session: "a1".parse().unwrap(),
            task: TaskId::Number(1),
            token: Token(1),
        };
        let agent = |retry, retries, role: Option<&str>| Agent {
            retry,
            retries,
            role: role.map(str::to_owned),
            ..Agent::new(AgentId(3), post.clone(), "claude", Timestamp::UNIX_EPOCH)
        };
        let red = landing(LandingStatus::Red, "2");
        let same = landing(LandingStatus::Conflict, "2");
        let other = landing(LandingStatus::Red, "1");
        let retry = |number, of| Next::Retry { number, of };
        let person = |why: &str| Next::Person(Some(why.to_owned()));
        for (agent, before, expected) in [
            (agent(0, None, None), None, retry(1, 2)),
            // It may have resumed one whose work did not land either.
            (agent(0, None, None), Some(&same), retry(1, 2)),
            (agent(1, None, None), Some(&other), retry(2, 2)),
            (
                agent(2, None, None),
                Some(&other),
                person("2 retries did not help"),
            ),
            (
                agent(1, Some(1), None),
                Some(&other),
                person("a retry did not help"),
            ),
            (
                agent(1, None, None),
                Some(&same),
                person("retry a3 made no changes"),
            ),
            (agent(0, Some(0), None), None, Next::Person(None)),
            (agent(0, Some(5), None), None, retry(1, 5)),
            (agent(0, None, Some("review")), None, Next::Person(None)),
        ] {
            let others = [agent.clone()];
            assert_eq!(next(&agent, &red, &others, before, 2), expected);
        }
    }

    #[test]
    fn a7_a_red_retry_that_changed_nothing_says_so() {
        let post = Post {
            session: "a1".parse().unwrap(),
            task: TaskId::Number(1),
            token: Token(1),
        };
        let ended = |retry, why: &str| Agent {
            retry,
            end: Some(End {
                outcome: Outcome::NotLanded,
                code: None,
                why: why.to_owned(),
                landing: None,
                at: Timestamp::UNIX_EPOCH,
            }),
            ..Agent::new(AgentId(3), post.clone(), "claude", Timestamp::UNIX_EPOCH)
        };
        let red = landing(LandingStatus::Red, "2");
        let why = "its tests failed; retry a3 made no changes";
        let told = unchanged_red(&ended(1, why), &red);
        assert_eq!(told.as_deref(), Some("retry a3 made no changes"));
        assert_eq!(unchanged_red(&ended(1, "its tests failed"), &red), None);
        assert_eq!(unchanged_red(&ended(0, why), &red), None);
        let conflict = landing(LandingStatus::Conflict, "2");
        assert_eq!(unchanged_red(&ended(1, why), &conflict), None);
    }
}
