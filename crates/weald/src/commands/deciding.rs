//! The end of work that a person sat with: what changed is shown, and they decide whether it lands.

use std::io::{self, BufRead, IsTerminal, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use weald_app::operations::Caller;
use weald_app::operations::landing::LandTrees;
use weald_app::operations::looking::DiffTree;
use weald_app::{CommitScope, DiffStyle, Failure, LandWish, OnConflict, ShownDiff};
use weald_core::git_diff::DiffOptions;
use weald_core::tree::Tree;

use super::enter::quoted;
use super::{diff, land};
use crate::context::Context;
use crate::ui::clean_line;

/// Whether somebody is there to answer.
pub fn can_ask(context: &Context<'_>) -> bool {
    !context.ui.is_json() && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The command that lands a worktree as it was wished.
pub fn landing_command(name: &str, wish: &LandWish) -> String {
    let strategy = wish
        .strategy
        .map(|strategy| format!(" --strategy {}", strategy.as_str()));
    let commit = wish.commit.map(|scope| match scope {
        CommitScope::Tracked => " --commit".to_owned(),
        CommitScope::All => " --commit=all".to_owned(),
    });
    let text = |flag: &str, text: &Option<String>| {
        let paragraphs = text.iter().flat_map(|text| text.split("\n\n"));
        let words = paragraphs.map(|text| format!(" {flag} {}", quoted(&clean_line(text))));
        Some(words.collect::<String>())
    };
    let flag = |flag: &str, is_set: bool| is_set.then(|| format!(" {flag}"));
    let words = [
        strategy,
        commit,
        text("-m", &wish.message),
        text("--report", &wish.report),
        flag("--keep", wish.keep),
        flag("--no-wait", wish.no_wait),
    ];
    let words: String = words.into_iter().flatten().collect();
    format!("weald land {name}{words}")
}

/// What a person does with work that is done.
enum Decision {
    Land,
    Show,
    Keep,
}

/// Shows what changed and asks whether it lands, as it is wished; `None` if it is kept.
pub fn decide(context: &Context<'_>, tree: &Tree, wish: LandWish) -> Result<Option<u8>, Failure> {
    let name = tree.name.to_string();
    let look = |style| -> Result<ShownDiff, Failure> {
        context.perform(DiffTree {
            tree: Some(name.clone()),
            against_target: false,
            style,
            options: DiffOptions::default(),
            reader: context.ui.reader(),
        })
    };
    let shown = look(DiffStyle::Stat)?;
    diff::print(context, &shown)?;
    // Names every file's content, which the summary does not.
    let mut whole = look(DiffStyle::Patch)?;
    let command = landing_command(&name, &wish);
    if command != format!("weald land {name}") {
        context.note(&format!("asked for: {command}"));
    }
    loop {
        match ask(context, &name, &tree.target)? {
            Decision::Show => drop(diff::print(context, &look(DiffStyle::Patch)?)?),
            Decision::Keep => return Ok(None),
            Decision::Land => {
                let now = look(DiffStyle::Patch)?;
                if now.text != whole.text {
                    context.warn(&format!(
                        "{name} has changed since; this is what would land now:"
                    ));
                    diff::print(context, &look(DiffStyle::Stat)?)?;
                    whole = now;
                    continue;
                }
                let request = LandTrees {
                    names: vec![name],
                    strategy: wish.strategy,
                    no_wait: wish.no_wait,
                    dry_run: false,
                    keep: wish.keep,
                    force: false,
                    stop_on_conflict: false,
                    at_conflict: OnConflict::Abort,
                    commit: wish.commit,
                    message: wish.message,
                    report: wish.report,
                    leaves: false,
                };
                return land::answer(context, &Caller::default(), request).map(Some);
            }
        }
    }
}

/// Nothing lands but by a plain yes: the end of the input and Ctrl-C keep.
fn ask(context: &Context<'_>, name: &str, target: &str) -> Result<Decision, Failure> {
    // What was typed into the interface is no answer.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    loop {
        let mut err = io::stderr().lock();
        write!(
            err,
            "Land {name} on {target}? [l]and, [d]iff, [k]eep (default: keep): "
        )?;
        err.flush()?;
        drop(err);
        let Some(line) = typed_line(context)? else {
            writeln!(io::stderr())?;
            return Ok(Decision::Keep);
        };
        match line.trim().to_ascii_lowercase().as_str() {
            "l" | "land" | "y" | "yes" => return Ok(Decision::Land),
            "d" | "diff" => return Ok(Decision::Show),
            "" | "k" | "keep" | "n" | "no" | "q" => return Ok(Decision::Keep),
            _ => context.note("l lands it, d shows the changes, k keeps it"),
        }
    }
}

/// A line from the terminal; none at the end of the input or after Ctrl-C.
fn typed_line(context: &Context<'_>) -> Result<Option<String>, Failure> {
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    let stdin = io::stdin();
    while context.cancel.asked().is_none() {
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        // An interrupted wait is looked at like any other.
        let ready = poll(&mut polled, Some(&tick)).unwrap_or_default();
        if ready > 0 {
            let mut line = String::new();
            let count = stdin.lock().read_line(&mut line)?;
            return Ok((count > 0).then_some(line));
        }
    }
    Ok(None)
}
