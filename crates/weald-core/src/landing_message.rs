//! What the commit of a landing says, and who wrote it.
//!
//! Everybody who wrote one of the commits stays named: the one with the most of them as the author, the others as
//! `Co-authored-by`, with those whom the commits named so themselves.

use crate::landing::Strategy;

/// The message of a commit that nobody gave one.
pub const WORK_IN_PROGRESS: &str = "Work in progress";

/// How long a subject may become that is made of several, in characters.
const SUBJECT: usize = 72;

/// One of the commits that land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedCommit {
    pub author: String,
    /// When it was written, as git says it.
    pub written: String,
    pub message: String,
}

impl LandedCommit {
    fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default().trim()
    }
}

/// What is known about a landing.
#[derive(Debug, Clone, Default)]
pub struct LandingNotes<'n> {
    pub strategy: Strategy,
    /// The words that were given for it.
    pub message: Option<&'n str>,
    /// Whether weald adds lines of its own below the words.
    pub trailers: bool,
    /// The files that it changes; asked only if nothing else says what it is about.
    pub paths: &'n [String],
    /// The configured template; empty for the default.
    pub template: &'n str,
    pub tree: &'n str,
    pub branch: &'n str,
    pub target: &'n str,
    /// Where the tree started.
    pub base: &'n str,
    /// What had to pass.
    pub gate: &'n str,
    /// The task: id, subject, description.
    pub task: Option<(String, &'n str, &'n str)>,
}

/// The author's place among the commits: who wrote most of them, the first of equals.
pub fn main_author(commits: &[LandedCommit]) -> Option<&LandedCommit> {
    let count = |author: &str| commits.iter().filter(|one| one.author == author).count();
    let most = commits.iter().map(|one| count(&one.author)).max()?;
    let chosen = commits.iter().find(|one| count(&one.author) == most)?;
    // The newest of theirs says when the work was done.
    commits.iter().rfind(|one| one.author == chosen.author)
}

/// The message of a squash or a merge: the words that were given for it, or those of its commits and its task.
pub fn compose(notes: &LandingNotes<'_>, commits: &[LandedCommit]) -> String {
    let words = match notes.message {
        Some(message) => message.trim().to_owned(),
        None if !notes.template.is_empty() => fill(notes, commits),
        None if notes.strategy == Strategy::Merge => merge_words(notes, commits),
        None => squash_words(notes, commits),
    };
    let words = words.trim_end();
    let mut trailers = trailers(notes, commits);
    trailers.retain(|line| words.lines().all(|known| known != line));
    let gap = match (trailers.is_empty(), ends_in_trailers(words)) {
        (true, _) => "",
        // git reads one block of them.
        (false, true) => "\n",
        (false, false) => "\n\n",
    };
    format!("{words}{gap}{}\n", trailers.join("\n"))
}

/// Whether the last paragraph of a message is trailers.
fn ends_in_trailers(message: &str) -> bool {
    let is_trailer = |line: &str| {
        let key = line.split_once(": ").map_or("", |(key, _)| key);
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let last = message.rsplit_once("\n\n");
    last.is_some_and(|(_, last)| last.lines().all(is_trailer))
}

fn merge_words(notes: &LandingNotes<'_>, commits: &[LandedCommit]) -> String {
    match &notes.task {
        Some((id, subject, _)) => format!("Merge task {id}: {subject}"),
        None => format!("Merge {}: {}", notes.tree, summary(notes, commits)),
    }
}

/// The commits whose message is somebody's own.
fn worded(commits: &[LandedCommit]) -> Vec<&LandedCommit> {
    let is_own = |commit: &&LandedCommit| commit.subject() != WORK_IN_PROGRESS;
    commits.iter().filter(is_own).collect()
}

/// A single commit keeps its words; what weald adds below them is left out.
fn words_of(notes: &LandingNotes<'_>, commit: &LandedCommit) -> String {
    let kept = |line: &&str| !notes.trailers || co_author(line).is_none();
    let lines: Vec<_> = commit.message.trim().lines().filter(kept).collect();
    lines.join("\n")
}

fn squash_words(notes: &LandingNotes<'_>, commits: &[LandedCommit]) -> String {
    let worded = worded(commits);
    if let [only] = worded[..] {
        return words_of(notes, only);
    }
    let (subject, description) = match notes.task {
        Some((_, subject, description)) => (subject.to_owned(), description.trim()),
        None => (summary(notes, commits), ""),
    };
    let listed = worded.iter().map(|commit| commit.subject());
    let listed: Vec<_> = listed
        .filter(|line| *line != subject)
        .map(|line| format!("- {line}"))
        .collect();
    let parts = [subject, description.to_owned(), listed.join("\n")];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// One line about work that has no task: from its commits, or from the files that it changes.
fn summary(notes: &LandingNotes<'_>, commits: &[LandedCommit]) -> String {
    let subjects: Vec<_> = worded(commits).iter().map(|one| one.subject()).collect();
    let joined = subjects.join("; ");
    match (&subjects[..], notes.paths) {
        ([], []) => notes.tree.to_owned(),
        ([], [one]) => format!("Update {one}"),
        ([], [one, other]) => format!("Update {one} and {other}"),
        ([], [first, rest @ ..]) => format!("Update {first} and {} more files", rest.len()),
        ([_], _) => joined,
        (_, _) if joined.chars().count() <= SUBJECT => joined,
        ([first, rest @ ..], _) => format!("{first} and {} more", rest.len()),
    }
}

fn fill(notes: &LandingNotes<'_>, commits: &[LandedCommit]) -> String {
    let summary = summary(notes, commits);
    let (id, subject) = match &notes.task {
        Some((id, subject, _)) => (id.as_str(), *subject),
        None => ("", summary.as_str()),
    };
    let value = |name: &str| match name {
        "name" => Some(notes.tree),
        "branch" => Some(notes.branch),
        "target" => Some(notes.target),
        "task" => Some(id),
        "subject" => Some(subject),
        "strategy" => Some(notes.strategy.as_str()),
        _ => None,
    };
    let mut text = String::new();
    let mut rest = notes.template;
    // What was filled in is not looked at again: a subject may have braces of its own.
    while let Some((before, name, after)) = next_placeholder(rest) {
        text.push_str(before);
        match value(name) {
            Some(value) => text.push_str(value),
            None => text.push_str(&format!("{{{name}}}")),
        }
        rest = after;
    }
    text + rest
}

/// What a template of a message may name.
const PLACEHOLDERS: [&str; 6] = ["name", "task", "subject", "branch", "target", "strategy"];

/// Refuses a template that names something unknown.
pub fn check_message(template: &str) -> Result<(), String> {
    let mut rest = template;
    while let Some((_, name, after)) = next_placeholder(rest) {
        if !PLACEHOLDERS.contains(&name) {
            let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
            return Err(format!("`{{{name}}}` is not one of {known}"));
        }
        rest = after;
    }
    Ok(())
}

/// The next word in braces, with what is before and after it; other braces are text.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.match_indices('{').find_map(|(open, _)| {
        let (word, after) = text[open + 1..].split_once('}')?;
        is_word(word).then_some((&text[..open], word, after))
    })
}

fn trailers(notes: &LandingNotes<'_>, commits: &[LandedCommit]) -> Vec<String> {
    let mut lines = Vec::new();
    if !notes.trailers {
        return lines;
    }
    if notes.strategy == Strategy::Squash {
        let author = main_author(commits).map(|one| one.author.as_str());
        let mut others: Vec<&str> = Vec::new();
        for commit in commits {
            let named = commit.message.lines().filter_map(co_author);
            for person in std::iter::once(commit.author.as_str()).chain(named) {
                if Some(person) != author && !others.contains(&person) {
                    others.push(person);
                }
            }
        }
        lines.extend(
            others
                .iter()
                .map(|person| format!("Co-authored-by: {person}")),
        );
    }
    if let Some((id, ..)) = &notes.task {
        lines.push(format!("Weald-Task: {id}"));
    }
    lines.push(format!("Weald-Tree: {}", notes.tree));
    lines.push(format!("Weald-Base: {}", notes.base));
    lines.push(format!("Weald-Gate: {}", notes.gate));
    lines
}

fn co_author(line: &str) -> Option<&str> {
    let (name, person) = line.split_once(':')?;
    let named = name.trim().eq_ignore_ascii_case("co-authored-by");
    named
        .then(|| person.trim())
        .filter(|person| !person.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(author: &str, message: &str) -> LandedCommit {
        LandedCommit {
            author: author.into(),
            written: "1 +0000".into(),
            message: message.into(),
        }
    }

    fn notes<'n>() -> LandingNotes<'n> {
        LandingNotes {
            tree: "login",
            branch: "wt/login",
            target: "main",
            base: "abc",
            gate: "none",
            trailers: true,
            ..LandingNotes::default()
        }
    }

    #[test]
    fn m1_the_message_comes_from_the_task_and_everybody_stays_named() {
        let commits = [
            commit("Ann <a@x>", "start\n\nCo-authored-by: Cy <c@x>"),
            commit("Bo <b@x>", "more"),
            commit("Ann <a@x>", "end"),
        ];
        let with_task = LandingNotes {
            task: Some(("7".into(), "Fix the login", "It hangs.")),
            ..notes()
        };
        assert_eq!(
            compose(&with_task, &commits),
            "Fix the login\n\nIt hangs.\n\n- start\n- more\n- end\n\nCo-authored-by: Cy <c@x>\n\
             Co-authored-by: Bo <b@x>\nWeald-Task: 7\nWeald-Tree: login\nWeald-Base: abc\nWeald-Gate: none\n"
        );
        assert_eq!(main_author(&commits).unwrap().message, "end");
        let merge = LandingNotes {
            strategy: Strategy::Merge,
            ..with_task
        };
        assert!(compose(&merge, &commits).starts_with("Merge task 7: Fix the login\n\nWeald-Task"));
        let template = LandingNotes {
            template: "Merge workflow {name}",
            ..merge
        };
        assert!(compose(&template, &commits).starts_with("Merge workflow login\n\nWeald-Task: 7"));
    }

    #[test]
    fn m1_a_single_commit_keeps_its_words() {
        let only = [commit("Ann <a@x>", "fix: it\n\nBecause.\n")];
        assert_eq!(
            compose(&notes(), &only),
            "fix: it\n\nBecause.\n\nWeald-Tree: login\nWeald-Base: abc\nWeald-Gate: none\n"
        );
    }

    #[test]
    fn u6_the_best_words_that_there_are_become_the_message() {
        let fix = || commit("Ann <a@x>", "Fix it\n\nBecause.\n\nFixes: #3");
        let test = || commit("Ann <a@x>", "Test it");
        let long = || commit("Ann <a@x>", &"long ".repeat(14));
        let unworded = || commit("Ann <a@x>", WORK_IN_PROGRESS);
        let task = Some(("7".to_owned(), "Fix the login", "It hangs."));
        let paths = |count: usize| (1..=count).map(|n| format!("{n}.rs")).collect::<Vec<_>>();
        for (message, task, commits, paths, expected) in [
            // What was given, whatever else there is.
            (
                Some("Mine\n\nBody"),
                &task,
                vec![fix(), test()],
                vec![],
                "Mine\n\nBody",
            ),
            // The only commit's words.
            (
                None,
                &task,
                vec![fix()],
                vec![],
                "Fix it\n\nBecause.\n\nFixes: #3",
            ),
            (None, &None, vec![unworded(), test()], vec![], "Test it"),
            // The task's.
            (
                None,
                &task,
                vec![fix(), test()],
                vec![],
                "Fix the login\n\nIt hangs.\n\n- Fix it\n- Test it",
            ),
            (
                None,
                &task,
                vec![unworded()],
                vec![],
                "Fix the login\n\nIt hangs.",
            ),
            // A summary.
            (
                None,
                &None,
                vec![fix(), test()],
                vec![],
                "Fix it; Test it\n\n- Fix it\n- Test it",
            ),
            (None, &None, vec![unworded()], paths(1), "Update 1.rs"),
            (
                None,
                &None,
                vec![unworded()],
                paths(2),
                "Update 1.rs and 2.rs",
            ),
            (
                None,
                &None,
                vec![unworded()],
                paths(5),
                "Update 1.rs and 4 more files",
            ),
            // Nothing is known but the name.
            (None, &None, vec![], vec![], "login"),
        ] {
            let notes = LandingNotes {
                message,
                task: task.clone(),
                paths: &paths,
                trailers: false,
                ..notes()
            };
            assert_eq!(compose(&notes, &commits), format!("{expected}\n"));
        }
        let many = compose(&notes(), &[long(), test(), fix()]);
        assert!(many.contains("long and 2 more\n\n"), "{many}");
        // Trailers make one block, and none stands there twice.
        let signed = commit(
            "Ann <a@x>",
            "Fix it\n\nSigned-off-by: Ann <a@x>\nWeald-Tree: login",
        );
        assert_eq!(
            compose(&notes(), &[signed]),
            "Fix it\n\nSigned-off-by: Ann <a@x>\nWeald-Tree: login\nWeald-Base: abc\nWeald-Gate: none\n"
        );
    }

    #[test]
    fn a_template_names_what_is_known_and_is_filled_once() {
        for (template, known) in [
            ("", true),
            (
                "feat({name}): {subject} [{task}] {branch} {target} {strategy}",
                true,
            ),
            ("json {} and { and {a b}", true),
            ("{author}", false),
            ("{{subjct}", false),
        ] {
            assert_eq!(check_message(template).is_ok(), known, "{template}");
        }
        let notes = LandingNotes {
            template: "{ {name}: {subject}",
            task: Some(("7".into(), "use {strategy} and {name}", "")),
            ..notes()
        };
        let message = compose(&notes, &[]);
        assert!(
            message.starts_with("{ login: use {strategy} and {name}\n"),
            "{message}"
        );
    }
}
