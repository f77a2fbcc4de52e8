//! What Claude Code gets to read, in words for a model: short, with the commands that go on.

use std::path::Path;

use crate::id::TaskId;
use crate::message::Message;
use crate::name::{SessionName, TreeName};

/// The most of a text of others that is shown; the rest can be read with a command.
const TEXT: usize = 4000;

/// Where a conversation stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Situation {
    pub session: Option<SessionName>,
    /// Its tree, the branch in it, and where that lands.
    pub tree: Option<(TreeName, String, String)>,
    /// Whether it is in its tree; otherwise that is only bound to it.
    pub is_in_tree: bool,
    /// Why its tree can't be worked in, and the command that goes on.
    pub lost: Option<(String, String)>,
    /// Its task, with status, subject and description.
    pub task: Option<(TaskId, String, String, String)>,
    /// How its work ends.
    pub finish: Finish,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// The conversation lands it.
    #[default]
    Lands,
    /// It lands by itself at the end.
    LandsAtEnd,
    /// It is reported, and kept.
    Reports,
    /// It is kept until a person lands it.
    Stays,
}

/// What a conversation begins with.
pub fn briefing(at: &Situation) -> String {
    let mut text = String::new();
    match (&at.tree, at.is_in_tree) {
        (Some((name, branch, target)), true) => text.push_str(&format!(
            "You are in weald worktree {name}: branch {branch}, lands on {target}. Work only in it.\n"
        )),
        (Some((name, ..)), false) => text.push_str(&format!(
            "Your work belongs in weald worktree {name} (`weald path {name}` prints its path), not in this checkout.\n"
        )),
        (None, _) => text.push_str(
            "This repository uses weald: work happens in worktrees, not in this main checkout. `weald` prints the board.\n",
        ),
    }
    if let Some((why, next)) = &at.lost {
        text.push_str(&format!(
            "Your work belongs in a worktree that does not exist: {why}. Before you continue: `{next}`.\n"
        ));
    }
    if let Some(session) = &at.session {
        text.push_str(&format!("You are known as {session}.\n"));
    }
    if let Some((id, status, subject, description)) = &at.task {
        text.push_str(&format!("Task {id} ({status}): {}\n", cut(subject)));
        if !description.trim().is_empty() {
            text.push_str(&format!("{}\n", cut(description.trim())));
        }
    }
    if let Some((name, ..)) = &at.tree {
        text.push_str(&finish(at, name));
    }
    text
}

/// How the work ends: one way, wherever it is explained.
fn finish(at: &Situation, tree: &TreeName) -> String {
    let done = "To finish: commit here, then `weald task done --report \"what was done\"`";
    match at.finish {
        Finish::Lands => {}
        Finish::LandsAtEnd => return format!("{done}; it lands when you end.\n"),
        Finish::Reports => return format!("{done}; your work is kept in this worktree.\n"),
        Finish::Stays => {
            return format!(
                "To finish: commit here. Your work is kept in this worktree until a person lands it (`weald land {tree}`, on the host).\n"
            );
        }
    }
    let (place, name) = match at.is_in_tree {
        true => ("here", String::new()),
        false => ("there", format!(" {tree}")),
    };
    match &at.task {
        Some((id, ..)) => format!(
            "To finish: commit {place}, then `weald land{name} --report \"what was done\"`; that completes task {id}.\n"
        ),
        None => format!("To finish: commit {place}, then `weald land{name}`.\n"),
    }
}

/// Messages, each with how to answer it.
pub fn messages_in_words(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let kind = message.kind.as_str();
        text.push_str(&format!(
            "{kind} {} from {}: {}\n",
            message.id,
            message.from,
            cut(&message.text)
        ));
        if message.kind.reply().is_some() {
            text.push_str(&format!(
                "  answer it: weald msg reply {} TEXT\n",
                message.id
            ));
        }
    }
    text
}

/// Those that want a reply.
pub fn questions(messages: &[Message]) -> impl Iterator<Item = &Message> {
    let wants = |message: &&Message| message.kind.reply().is_some();
    messages.iter().filter(wants)
}

/// Why an edit is refused, and what was meant.
pub fn refusal(path: &Path, tree: &TreeName, why: &str, meant: Option<&Path>) -> String {
    let path = path.display();
    let refused = format!(
        "{path} is not in worktree {tree}, where this session works: {why}; nothing was written."
    );
    match meant {
        Some(meant) => format!("{refused}\nUse {} instead.", meant.display()),
        None => format!("{refused}\nWrite in the worktree: `weald path {tree}` prints its path."),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        None => text.to_owned(),
        Some((end, _)) => format!(
            "{}… (cut; `weald msg inbox --all` or `weald task show` shows all of it)",
            &text[..end]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_briefing_says_where_what_and_how_to_finish() {
        let nowhere = briefing(&Situation::default());
        assert!(nowhere.contains("main checkout") && !nowhere.contains("finish"));
        let tree = (
            "fix".parse().unwrap(),
            "wt/fix".to_owned(),
            "main".to_owned(),
        );
        let task = (
            TaskId::Number(7),
            "in_progress".to_owned(),
            "Fix it".to_owned(),
            "All of it".to_owned(),
        );
        let bound = Situation {
            session: Some("alice".parse().unwrap()),
            tree: Some(tree),
            is_in_tree: true,
            lost: None,
            task: Some(task),
            finish: Finish::Lands,
        };
        let told = briefing(&bound);
        for part in [
            "tree fix",
            "wt/fix",
            "lands on main",
            "alice",
            "Task 7 (in_progress): Fix it",
            "All of it",
            "weald land --report",
            "completes task 7",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let elsewhere = briefing(&Situation {
            is_in_tree: false,
            ..bound.clone()
        });
        assert!(elsewhere.contains("weald path fix"), "{elsewhere}");
        assert!(elsewhere.contains("weald land fix --report"), "{elsewhere}");
        let watched = briefing(&Situation {
            finish: Finish::LandsAtEnd,
            ..bound.clone()
        });
        assert!(watched.contains("weald task done --report"), "{watched}");
        let lost = briefing(&Situation {
            tree: None,
            lost: Some(("it is in the trash".to_owned(), "weald undo".to_owned())),
            ..bound
        });
        for part in ["in the trash. Before you continue: `weald undo`", "Task 7"] {
            assert!(lost.contains(part), "{part}: {lost}");
        }
    }

    #[test]
    fn w8_a_refusal_names_the_path_that_was_meant() {
        let tree = "fix".parse().unwrap();
        let (path, meant) = (Path::new("/app/a.txt"), Path::new("/trees/fix/a.txt"));
        assert!(
            refusal(path, &tree, "it is in main", Some(meant))
                .contains("Use /trees/fix/a.txt instead")
        );
        assert!(refusal(path, &tree, "it is elsewhere", None).contains("weald path fix"));
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let long = "ä".repeat(TEXT + 1);
        assert!(
            cut(&long).starts_with(&"ä".repeat(TEXT)) && cut(&long).contains("weald msg inbox")
        );
        assert_eq!(cut("short"), "short");
    }
}
