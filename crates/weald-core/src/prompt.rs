//! What an agent is told: its task, what has to hold, what came before, where it works, and the rules.

use crate::task::Task;

/// How much of a report of a dependency is passed on, in characters.
const REPORT: usize = 4000;

/// What a prompt is made from.
#[derive(Debug, Clone, Copy)]
pub struct Briefing<'a> {
    /// The task.
    pub task: &'a Task,
    /// What it depended on, with what came out.
    pub dependencies: &'a [Task],
    /// Where the work is done.
    pub tree: &'a str,
    /// On which branch.
    pub branch: &'a str,
    /// Where it will land.
    pub target: &'a str,
    /// What this run is about, if it is one of several on the task.
    pub part: Option<&'a str>,
    /// What happened to the run before, if there was one.
    pub before: Option<&'a str>,
    /// Who started it, and answers its questions.
    pub lead: Option<&'a str>,
}

/// The prompt.
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
    if let Some(before) = briefing.before {
        text.push_str(&format!(
            "\n## What happened before\n\n{}\nLook at what is there already (`git status`, `git log`) and go on from it.\n",
            before.trim()
        ));
    }
    let (tree, branch, target) = (briefing.tree, briefing.branch, briefing.target);
    text.push_str(&format!(
        "\n## Where you work\n\n\
         - This directory, {tree}, is a git worktree of your own on branch {branch}. Work here and nowhere else: \
         whatever is outside can't be written, the main checkout neither.\n\
         - All of git works here. Commit as you go; what you leave uncommitted is committed for you.\n\
         - Your work reaches {target} by weald, after the tests, when you are done. Don't merge or push it yourself.\n\
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
        let text = prompt(&Briefing {
            task: &task,
            dependencies: &[before],
            tree: "/trees/fix",
            branch: "wt/fix",
            target: "main",
            part: Some("Review it."),
            before: Some("The agent before crashed."),
            lead: Some("alice"),
        });
        for part in [
            "Task 2: Fix the login",
            "It fails with spaces.",
            "A test shows it.",
            "Review it.",
            "It splits at spaces.",
            "The agent before crashed.",
            "/trees/fix",
            "wt/fix",
            "reaches main by weald",
            "weald task done --report",
            "ask alice",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
