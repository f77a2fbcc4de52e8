//! What the commit of a landing says, and who wrote it.
//!
//! Everybody who wrote one of the commits stays named: the one with the most of them as the author, the others as
//! `Co-authored-by`, with those whom the commits named so themselves.

use crate::landing::Strategy;

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

/// The message of a squash or a merge.
pub fn compose(notes: &LandingNotes<'_>, commits: &[LandedCommit]) -> String {
    let (subject, body) = match (notes.strategy, commits) {
        _ if !notes.template.is_empty() => (fill(notes), String::new()),
        (Strategy::Merge, _) => (merge_subject(notes), String::new()),
        (_, [only]) if notes.task.is_none() => split(only),
        _ => squash_words(notes, commits),
    };
    let mut message = subject.trim_end().to_owned();
    if !body.trim().is_empty() {
        message.push_str("\n\n");
        message.push_str(body.trim());
    }
    message.push_str("\n\n");
    for line in trailers(notes, commits) {
        message.push_str(&line);
        message.push('\n');
    }
    message
}

fn merge_subject(notes: &LandingNotes<'_>) -> String {
    match &notes.task {
        Some((id, subject, _)) => format!("Merge task {id}: {subject}"),
        None => format!("Merge tree {}", notes.tree),
    }
}

/// A single commit keeps its words; its trailers are written again below.
fn split(commit: &LandedCommit) -> (String, String) {
    let rest = commit.message.trim().split_once('\n');
    let body = rest.map_or("", |(_, body)| body);
    let kept = body.lines().filter(|line| co_author(line).is_none());
    let body: Vec<_> = kept.collect();
    (commit.subject().to_owned(), body.join("\n"))
}

fn squash_words(notes: &LandingNotes<'_>, commits: &[LandedCommit]) -> (String, String) {
    let subject = match (&notes.task, commits) {
        (Some((_, subject, _)), _) => (*subject).to_owned(),
        (None, _) => notes.tree.to_owned(),
    };
    let description = notes.task.as_ref().map_or("", |(_, _, text)| text).trim();
    let mut body = description.to_owned();
    let listed = commits.iter().map(LandedCommit::subject);
    let listed: Vec<_> = listed.filter(|line| *line != subject).collect();
    if !listed.is_empty() {
        if !body.is_empty() {
            body.push_str("\n\n");
        }
        body.push_str(
            &listed
                .iter()
                .map(|line| format!("- {line}\n"))
                .collect::<String>(),
        );
    }
    (subject, body)
}

fn fill(notes: &LandingNotes<'_>) -> String {
    let (id, subject) = match &notes.task {
        Some((id, subject, _)) => (id.as_str(), *subject),
        None => ("", notes.tree),
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
