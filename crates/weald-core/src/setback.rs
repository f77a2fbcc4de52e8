//! What kept an agent's work from landing, as the agent that continues is told: in full, and bounded.
//!
//! Output of tests, paths and subjects are written by others. They are shown indented and without anything but text, so
//! that they can't be taken for what weald says.

use crate::landing::Strategy;
use crate::reading::plain;

/// How much of the output of tests is told.
const LINES: usize = 100;
const BYTES: usize = 16 << 10;

/// The longest line of others that is told, in characters.
const LINE: usize = 400;

/// How many paths, and how many commits of a side, are told.
pub const LISTED: usize = 20;

/// What kept the work from landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setback {
    /// The tests failed on what would have landed.
    Tests {
        command: String,
        /// How they ended, with the exit code.
        ended: String,
        /// All of their output, as far as it was kept.
        output: String,
    },
    Conflict {
        paths: Vec<String>,
        /// Commits of the work that touch those, newest first, each as a short id and its subject.
        ours: Vec<String>,
        /// The same of the target.
        theirs: Vec<String>,
        target: String,
        strategy: Strategy,
    },
    /// Something else had to be done first.
    Refused { reason: String, paths: Vec<String> },
}

impl Setback {
    /// As a part of a prompt.
    pub fn text(&self) -> String {
        match self {
            Self::Tests {
                command,
                ended,
                output,
            } => {
                let shown = tail(output);
                let shown = match shown.is_empty() {
                    true => "It printed nothing.\n".to_owned(),
                    false => format!("The end of its output:\n\n{shown}"),
                };
                format!(
                    "Its work did not land, because the tests failed on it.\n\n\
                     The command: {}\nHow it ended: {}\n\n{shown}\n\
                     Find out why, fix it, and run the command yourself before you end. Then the work is tested and lands again.\n",
                    line(command),
                    line(ended)
                )
            }
            Self::Conflict {
                paths,
                ours,
                theirs,
                target,
                strategy,
            } => {
                let (merge, sync, end) = match strategy {
                    Strategy::Rebase => {
                        ("git rebase", "weald sync --rebase", "git rebase --continue")
                    }
                    _ => ("git merge", "weald sync", "git commit --no-edit"),
                };
                format!(
                    "Its work did not land, because it conflicts with {target} in:\n\n{}\n\
                     Commits of this worktree that touch them:\n\n{}\n\
                     Commits of {target} that touch them:\n\n{}\n\
                     Bring {target} into this worktree yourself and resolve the conflict, so that both sides' changes hold:\n\n\
                     1. `{merge} {target}` (or `{sync}`); {target} here is always the newest.\n\
                     2. Edit the files until no conflict markers are left, then `git add` them.\n\
                     3. `{end}`\n\n\
                     Then the work lands again.\n",
                    list(paths),
                    list(ours),
                    list(theirs)
                )
            }
            Self::Refused { reason, paths } => {
                let paths = match paths.is_empty() {
                    true => String::new(),
                    false => format!("\n{}", list(paths)),
                };
                format!("Its work did not land: {}\n{paths}", line(reason))
            }
        }
    }

    /// Whether the agent has to merge the target itself.
    pub fn wants_a_merge(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }
}

/// One line of others' words.
fn line(text: &str) -> String {
    let text = plain(text).replace('\n', " ");
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn list(lines: &[String]) -> String {
    let mut text: String = lines
        .iter()
        .take(LISTED)
        .map(|one| format!("    {}\n", line(one)))
        .collect();
    match lines.len().saturating_sub(LISTED) {
        0 => {}
        more => text.push_str(&format!("    … and {more} more\n")),
    }
    match text.is_empty() {
        true => "    (none)\n".to_owned(),
        false => text,
    }
}

/// The last lines of an output, each indented.
fn tail(output: &str) -> String {
    let output = plain(output);
    let mut shown = Vec::new();
    let mut room = BYTES;
    for text in output.trim_end().lines().rev().take(LINES) {
        let text = line(text);
        let Some(left) = room.checked_sub(text.len() + 1) else {
            break;
        };
        room = left;
        shown.push(format!("    {text}").trim_end().to_owned() + "\n");
    }
    shown.reverse();
    shown.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(output: String) -> String {
        Setback::Tests {
            command: "npm test".to_owned(),
            ended: "exit code 1 after 2s".to_owned(),
            output,
        }
        .text()
    }

    #[test]
    fn a5_the_last_hundred_lines_of_the_tests_are_told_without_control_sequences() {
        let lines: String = (1..=150)
            .map(|n| format!("\u{1b}[31mline {n}\u{1b}[0m\r\n"))
            .collect();
        let text = tests(lines);
        assert!(text.contains("npm test") && text.contains("exit code 1 after 2s"));
        assert!(text.contains("\n    line 51\n") && text.contains("\n    line 150\n"));
        assert!(
            !text.contains("line 50\n") && !text.contains('\u{1b}'),
            "{text}"
        );
        // However long the lines are.
        let long = tests(format!("{}\nthe end\n", "x".repeat(1 << 20)));
        assert!(long.len() < 20_000 && long.contains("    the end"));
        let many = tests("y".repeat(399) + "\n" + &format!("{}\n", "y".repeat(399)).repeat(90));
        assert!(many.len() < 20_000, "{}", many.len());
        assert!(tests(String::new()).contains("It printed nothing."));
    }

    #[test]
    fn a5_a_conflict_is_told_with_files_both_sides_and_commands_that_work_inside() {
        let conflict = |strategy| {
            Setback::Conflict {
                paths: vec!["log.txt".to_owned(), "odd\u{1b}]0;x\u{7}\nname".to_owned()],
                ours: vec!["1111111 Say it here".to_owned()],
                theirs: (0..30)
                    .map(|n| format!("2222222 Say it there {n}"))
                    .collect(),
                target: "main".to_owned(),
                strategy,
            }
            .text()
        };
        let text = conflict(Strategy::Squash);
        for part in [
            "    log.txt\n",
            "    1111111 Say it here\n",
            "    2222222 Say it there 19\n    … and 10 more\n",
            "`git merge main` (or `weald sync`)",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(
            !text.contains('\u{1b}') && !text.contains("there 20"),
            "{text}"
        );
        assert!(
            conflict(Strategy::Rebase).contains("`git rebase main` (or `weald sync --rebase`)")
        );
    }
}
