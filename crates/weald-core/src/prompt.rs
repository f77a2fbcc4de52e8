//! An agent's prompt: its task, what has to hold, what came before, where it works, and the rules.

use crate::config::{Gate, Leftovers};
use crate::landing::Strategy;
use crate::setback::Setback;
use crate::task::Task;

/// How much of a report of a dependency is passed on, in characters.
const REPORT: usize = 4000;

/// What a prompt is made from.
#[derive(Debug, Clone, Copy)]
pub struct Briefing<'a> {
    pub task: &'a Task,
    /// What it depended on, with what came out.
    pub dependencies: &'a [Task],
    /// Where the work is done.
    pub tree: &'a str,
    pub branch: &'a str,
    /// Where it would land.
    pub target: &'a str,
    /// What becomes of the work at the end.
    pub fate: Fate,
    /// Which uncommitted changes weald commits on the agent's behalf.
    pub leftovers: Leftovers,
    /// The agent's name, role and standing instructions.
    pub standing: Option<(&'a str, &'a str)>,
    /// What this run is about, if it is one of several on the task.
    pub part: Option<&'a str>,
    /// What happened to the run before, if there was one.
    pub before: Option<&'a str>,
    /// What kept the work from landing, if it did not.
    pub setback: Option<&'a Setback>,
    /// What a person wants changed about the work so far.
    pub feedback: Option<&'a str>,
    /// Who started it, and answers its questions.
    pub lead: Option<&'a str>,
}

/// What becomes of an agent's work when it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It lands by itself.
    Lands {
        /// How its commits reach the target.
        strategy: Strategy,
        /// What has to agree before.
        gate: Gate,
    },
    /// It stays on its branch until somebody decides what to do with it.
    Stays,
    /// It is one of several, of which one is picked.
    Raced,
    Phased,
    /// It is in the main checkout already.
    InMain,
}

fn in_words(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Squash => "as one commit",
        Strategy::Merge => "by a merge commit",
        Strategy::Rebase => "rebased onto its tip",
        Strategy::Ff => "by a fast-forward",
    }
}

fn left_in_words(left: Leftovers) -> &'static str {
    match left {
        Leftovers::All => "what you leave uncommitted is committed for you",
        Leftovers::Tracked => {
            "changes to tracked files are committed for you, new files are not: add them"
        }
        Leftovers::Nothing => "nothing is committed for you",
    }
}

impl Briefing<'_> {
    /// Where the work is done, and what is kept of it.
    fn place(&self) -> String {
        let (tree, branch, left) = (self.tree, self.branch, left_in_words(self.leftovers));
        let place = match self.fate {
            Fate::InMain => {
                format!("- This directory, {tree}, is the main checkout of the repository")
            }
            _ => format!(
                "- This directory, {tree}, is a git worktree of your own on branch {branch}"
            ),
        };
        let outside = match self.fate {
            Fate::InMain => "you can't write anything outside it",
            _ => "you can't write anything outside it, including the main checkout",
        };
        format!(
            "{place}. Work here and nowhere else: {outside}.\n- All of git works here. Commit as you go; {left}.\n"
        )
    }

    /// What becomes of the work.
    fn fate(&self) -> String {
        let (branch, target) = (self.branch, self.target);
        let what = match self.fate {
            Fate::Lands { strategy, gate } => {
                let after = match gate {
                    Gate::None => "",
                    Gate::Tests => ", after the tests passed",
                    Gate::Human => ", after a person approved it",
                };
                let how = in_words(strategy);
                format!("weald lands your work on {target} when you are done, {how}{after}.")
            }
            Fate::Stays => format!(
                "Nothing lands automatically here: your work stays on {branch}, and the person or agent who gave you the task decides whether it reaches {target}."
            ),
            Fate::Raced => format!(
                "Your work stays on {branch}: only the entry that a person picks reaches {target}."
            ),
            Fate::Phased => format!(
                "Your work stays on {branch} for the phases after yours: it reaches {target} only when all of them have passed."
            ),
            Fate::InMain => {
                "What you commit is in the main checkout at once; nothing lands.".to_owned()
            }
        };
        let own = match self.setback.is_some_and(Setback::wants_a_merge) {
            true => format!("Bring {target} in as said above, and push nothing."),
            false => "Don't merge or push it yourself.".to_owned(),
        };
        format!("- {what} {own}\n")
    }
}

pub fn prompt(briefing: &Briefing<'_>) -> String {
    let task = briefing.task;
    let mut text = format!("# Task {}: {}\n", task.id, task.subject);
    if !task.description.trim().is_empty() {
        text.push_str(&format!("\n{}\n", task.description.trim()));
    }
    if !task.acceptance.trim().is_empty() {
        let notes = task.acceptance.trim();
        text.push_str(&format!("\n## What has to hold at the end\n\n{notes}\n"));
    }
    if let Some((name, words)) = briefing.standing {
        text.push_str(&format!(
            "\n## Who you are\n\nYou are {name}. {}\n",
            words.trim()
        ));
    }
    if let Some(part) = briefing.part {
        text.push_str(&format!("\n## Your part\n\n{}\n", part.trim()));
    }
    if !briefing.dependencies.is_empty() {
        text.push_str("\n## What this builds on\n\n");
    }
    for done in briefing.dependencies {
        let report = done.report.as_deref().unwrap_or("no report").trim();
        let report: String = report.chars().take(REPORT).collect();
        let (id, subject, status) = (&done.id, &done.subject, done.status);
        text.push_str(&format!("- Task {id}, {subject} ({status}): {report}\n"));
    }
    if briefing.before.is_some() || briefing.setback.is_some() {
        text.push_str("\n## What happened before\n\n");
        if let Some(part) = briefing.before {
            text.push_str(&format!("{}\n", part.trim()));
        }
        if let Some(setback) = briefing.setback {
            text.push_str(&format!("\n{}\n", setback.text().trim_end()));
        }
        text.push_str(
            "\nCheck what is already there (`git status`, `git log`) and continue from it.\n",
        );
    }
    if let Some(feedback) = briefing.feedback {
        text.push_str(&format!(
            "\n## What has to change\n\nA person looked at the work so far and says:\n\n{}\n",
            feedback.trim()
        ));
    }
    let (place, fate) = (briefing.place(), briefing.fate());
    text.push_str(&format!(
        "\n## Where you work\n\n\
         {place}\
         {fate}\
         \n## Talking to weald\n\n\
         - `weald task show` prints this task, `weald task done --report TEXT` says what you did, `weald task fail --report TEXT` why it can't be done.\n\
         - `weald msg inbox --consume` reads what others wrote to you, `weald msg ask NAME TEXT` asks.\n"
    ));
    if let Some(lead) = briefing.lead {
        text.push_str(&format!(
            "- {lead} gave you this task: ask {lead} what only a person or the lead can decide.\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::id::TaskId;

    #[test]
    fn a_prompt_carries_task_notes_reports_tree_and_rules() {
        let now = Timestamp::UNIX_EPOCH;
        let mut task = Task::new(TaskId::Number(2), "Fix the login", now);
        task.description = "It fails with spaces.".to_owned();
        task.acceptance = "A test shows it.".to_owned();
        let mut before = Task::new(TaskId::Number(1), "Find out why", now);
        before.report = Some("It splits at spaces.".to_owned());
        let briefing = Briefing {
            task: &task,
            dependencies: &[before],
            tree: "/trees/fix",
            branch: "wt/fix",
            target: "main",
            fate: Fate::Lands {
                strategy: Strategy::Squash,
                gate: Gate::Tests,
            },
            leftovers: Leftovers::All,
            standing: Some(("bob", "Your role: tester.")),
            part: Some("Review it."),
            before: Some("The agent before crashed."),
            setback: None,
            feedback: Some("Say hello instead."),
            lead: Some("alice"),
        };
        let text = prompt(&briefing);
        for part in [
            "Task 2: Fix the login",
            "It fails with spaces.",
            "A test shows it.",
            "Review it.",
            "It splits at spaces.",
            "The agent before crashed.",
            "Say hello instead.",
            "Don't merge or push it yourself.",
            "/trees/fix",
            "wt/fix",
            "weald lands your work on main when you are done, as one commit, after the tests passed.",
            "what you leave uncommitted is committed for you",
            "You are bob. Your role: tester.",
            "weald task done --report",
            "ask alice",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        let conflict = Setback::Conflict {
            paths: vec!["log.txt".to_owned()],
            ours: Vec::new(),
            theirs: Vec::new(),
            target: "main".to_owned(),
            strategy: Strategy::Squash,
        };
        let merging = prompt(&Briefing {
            setback: Some(&conflict),
            ..briefing
        });
        assert!(merging.contains("`git merge main`"), "{merging}");
        assert!(!merging.contains("Don't merge"), "{merging}");
        let person = Fate::Lands {
            strategy: Strategy::Merge,
            gate: Gate::Human,
        };
        for (fate, told, untold) in [
            (
                person,
                "by a merge commit, after a person approved it.",
                "the tests",
            ),
            (
                Fate::Stays,
                "Nothing lands automatically here: your work stays on wt/fix",
                "weald lands your work",
            ),
            (
                Fate::Raced,
                "only the entry that a person picks reaches main",
                "weald lands",
            ),
            (
                Fate::Phased,
                "only when all of them have passed",
                "weald lands",
            ),
            (
                Fate::InMain,
                "is the main checkout",
                "a worktree of your own",
            ),
        ] {
            let text = prompt(&Briefing { fate, ..briefing });
            assert!(text.contains(told), "{told} is missing in\n{text}");
            assert!(!text.contains(untold), "{untold} is in\n{text}");
        }
    }
}
