//! Phases: parts of a task that run one after the other in one tree, each with a verdict.
//!
//! Where a task stands is nowhere written down but in its agents: [`course`] reads their verdicts from the first to the
//! last, so an agent that continues after a kill begins behind the last phase that was completed.

use crate::agent::{Agent, AgentId, Goal};
use crate::verdict::Verdict;

/// So often a phase may fail before its task waits for a person.
pub const ATTEMPTS: u32 = 3;

/// The phase that has the work to do when a later one fails.
const BUILD: &str = "build";

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// The phase that comes next; none when all have passed.
    pub next: Option<String>,
    /// How often it was tried by then, with that time.
    pub attempt: u32,
    /// What has to be fixed.
    pub must_fix: Vec<String>,
    /// Set when the newest verdict was one failure too many.
    pub blocked: Option<Blocked>,
}

/// A phase that failed too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    pub phase: String,
    /// Who said so last.
    pub agent: AgentId,
}

/// How far a task is, by its agents from the first to the last. A failure goes back to the building phase, if that is
/// before; one failure too many blocks, and continuing all the same starts counting again.
pub fn course(list: &[String], agents: &[Agent]) -> Course {
    let mut at = 0;
    let mut failures = vec![0; list.len()];
    let mut open: Option<(usize, Vec<String>)> = None;
    let mut blocked = None;
    let build = list.iter().position(|phase| phase == BUILD);
    for agent in since_landing(agents) {
        let Some((phase, verdict)) = judged(agent) else {
            continue;
        };
        let Some(index) = list.iter().position(|known| known == phase) else {
            continue;
        };
        blocked = None;
        if verdict.passes() {
            at = index + 1;
            failures[index] = 0;
            open = open.filter(|(failing, _)| *failing != index);
            continue;
        }
        at = build.filter(|build| *build < index).unwrap_or(index);
        open = Some((index, verdict.must_fix.clone()));
        failures[index] += 1;
        if failures[index] >= ATTEMPTS {
            failures[index] = 0;
            blocked = Some(Blocked {
                phase: phase.to_owned(),
                agent: agent.id,
            });
        }
    }
    Course {
        next: list.get(at).cloned(),
        attempt: failures.get(at).map_or(1, |failures| failures + 1),
        must_fix: open.map(|(_, items)| items).unwrap_or_default(),
        blocked,
    }
}

/// The phase of an agent, and what it said.
pub fn judged(agent: &Agent) -> Option<(&str, &Verdict)> {
    Some((agent.phase()?, agent.verdict.as_ref()?))
}

/// The agents after the last one whose work landed or finished its task: what came before is settled.
pub fn since_landing(agents: &[Agent]) -> &[Agent] {
    let settled = |agent: &Agent| agent.goal != Goal::Stay && agent.is_done();
    let last = agents.iter().rposition(settled);
    &agents[last.map_or(0, |last| last + 1)..]
}

/// The newest verdict of each phase, in the order in which they came.
pub fn newest_verdicts(agents: &[Agent]) -> Vec<(&Agent, &str, &Verdict)> {
    let mut newest: Vec<(&Agent, &str, &Verdict)> = Vec::new();
    for agent in since_landing(agents) {
        if let Some((phase, verdict)) = judged(agent) {
            newest.retain(|(_, known, _)| *known != phase);
            newest.push((agent, phase, verdict));
        }
    }
    newest
}

/// What a list of `name: value` says of a phase.
pub fn entry<'a>(list: &'a [String], phase: &str) -> Option<&'a str> {
    let pairs = list.iter().filter_map(|item| item.split_once(':'));
    let mut found = pairs.filter(|(name, _)| name.trim() == phase);
    found.next().map(|(_, value)| value.trim())
}

/// What an agent's prompt says of its phase: its part, what has to be fixed, and how to say what came out.
pub fn part(phase: &str, own: Option<&str>, must_fix: &[String], verdict_file: &str) -> String {
    let about = own.unwrap_or(match phase {
        "plan" => {
            "Work out what has to be done and how. Write the plan down for the phases after yours; change no code."
        }
        BUILD => "Do the work as planned, with tests, and commit it.",
        "review" => {
            "Review the changes since the base as a critical colleague. Change nothing; say what has to be fixed."
        }
        "qa" => {
            "Try what was built as its user would: run it and its tests. Change nothing; say what does not work."
        }
        _ => "Do this part of the task, and no other.",
    });
    let mut text = format!("This is phase `{phase}` of the task. {about}\n");
    if !must_fix.is_empty() {
        text.push_str("\nIt was tried before and did not pass. What has to be fixed:\n\n");
        for item in must_fix {
            text.push_str(&format!("- {item}\n"));
        }
    }
    text.push_str(&format!(
        "\nWhen you finish, write your verdict as JSON to {verdict_file} (also in $WEALD_VERDICT_FILE):\n\n\
         {{\"verdict\": \"PASS\" or \"FAIL\", \"must_fix\": [\"…\"], \"notes\": \"…\"}}\n\n\
         FAIL counts only with something in must_fix; it goes back to `{BUILD}`. Without the file your exit code decides."
    ));
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::agent::Outcome;
    use crate::agent::{AgentStatus, End, Post};
    use crate::id::{TaskId, Token};
    use crate::verdict::Ruling;

    fn list() -> Vec<String> {
        ["plan", "build", "review", "qa"].map(str::to_owned).into()
    }

    fn agent(id: u64, role: &str, verdict: Option<Verdict>) -> Agent {
        let post = Post {
            session: "a1".parse().unwrap(),
            task: TaskId::Number(1),
            token: Token(1),
        };
        Agent {
            role: Some(role.to_owned()),
            goal: Goal::Stay,
            verdict,
            status: AgentStatus::Exited,
            ..Agent::new(AgentId(id), post, "command", Timestamp::UNIX_EPOCH)
        }
    }

    /// Agents by a text: `plan+ build+ review-` (`-`: FAIL with an item, `?`: FAIL without one, `!`: no verdict).
    fn history(text: &str) -> Vec<Agent> {
        let one = |(number, word): (usize, &str)| {
            let (role, sign) = word.split_at(word.len() - 1);
            let verdict = |ruling, items: &[&str]| {
                Some(Verdict {
                    ruling,
                    must_fix: items.iter().map(|item| (*item).to_owned()).collect(),
                    notes: String::new(),
                })
            };
            let item = format!("item {}", number + 1);
            let verdict = match sign {
                "+" => verdict(Ruling::Pass, &[]),
                "-" => verdict(Ruling::Fail, &[&item]),
                "?" => verdict(Ruling::Fail, &[]),
                _ => None,
            };
            agent(number as u64 + 1, role, verdict)
        };
        text.split_whitespace().enumerate().map(one).collect()
    }

    #[test]
    fn p4_the_next_phase_follows_from_the_verdicts() {
        let cases = [
            ("", Some("plan"), 1, "", false),
            ("plan+", Some("build"), 1, "", false),
            ("plan+ build!", Some("build"), 1, "", false),
            ("plan+ build+ review?", Some("qa"), 1, "", false),
            ("plan-", Some("plan"), 2, "item 1", false),
            ("plan+ build+ review-", Some("build"), 1, "item 3", false),
            (
                "plan+ build+ review- build+",
                Some("review"),
                2,
                "item 3",
                false,
            ),
            (
                "plan+ build+ review- build+ review+",
                Some("qa"),
                1,
                "",
                false,
            ),
            ("plan+ build+ review+ qa+", None, 1, "", false),
            (
                "plan+ build+ review- build+ review- build+ review-",
                Some("build"),
                1,
                "item 7",
                true,
            ),
            (
                "plan+ build+ review- build+ review- build+ review- build+",
                Some("review"),
                1,
                "item 7",
                false,
            ),
            ("other+ plan+", Some("build"), 1, "", false),
        ];
        for (text, next, attempt, item, blocked) in cases {
            let found = course(&list(), &history(text));
            assert_eq!(found.next.as_deref(), next, "{text}");
            assert_eq!(found.attempt, attempt, "{text}");
            assert_eq!(found.must_fix.join(","), item, "{text}");
            assert_eq!(found.blocked.is_some(), blocked, "{text}");
        }
    }

    #[test]
    fn p4_a_task_that_landed_begins_anew() {
        let mut agents = history("plan+ build+ review+ qa+");
        let landed = Agent {
            role: None,
            goal: Goal::Land,
            end: Some(End {
                outcome: Outcome::Done,
                code: None,
                why: String::new(),
                landing: None,
                at: Timestamp::UNIX_EPOCH,
            }),
            ..agent(5, "plan", None)
        };
        agents.push(landed);
        assert_eq!(course(&list(), &agents).next.as_deref(), Some("plan"));
    }

    #[test]
    fn a_part_names_phase_items_and_file() {
        let items = ["the login fails".to_owned()];
        let text = part("build", None, &items, "/runs/verdict.json");
        for wanted in ["phase `build`", "- the login fails", "/runs/verdict.json"] {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
        let own = ["review: look at names: all of them".to_owned()];
        assert_eq!(entry(&own, "review"), Some("look at names: all of them"));
        assert_eq!(entry(&own, "qa"), None);
    }
}
