//! Landings as people and programs see them.

use std::io::{self, Write};

use serde_json::{Value, json};
use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingStatus};

use crate::context::{Context, Ground};
use crate::errors::Failure;
use crate::errors::landing::refusal_exit;
use crate::exit;
use crate::ui::{ACCENT, DIM, Fields, Out, clean, clean_line, paint};

/// The number of a landing that was not recorded.
const DRY_RUN: LandingId = LandingId(0);

/// Prints landings; the exit code is the worst of them.
pub fn answer(context: &Context<'_>, ground: &Ground, landings: &[Landing]) -> Result<u8, Failure> {
    context.tell(&ground.engine);
    let list: Vec<Value> = landings.iter().map(as_json).collect();
    context.ui.answer(
        || Fields::new().with("landings", &list),
        |out| {
            if landings.is_empty() {
                writeln!(out, "nothing waits to land")?;
            }
            landings.iter().try_for_each(|landing| told(out, landing))
        },
    )?;
    Ok(exit_of(landings))
}

/// The same for the one that was asked for.
pub fn answer_one(
    context: &Context<'_>,
    ground: &Ground,
    landing: &Landing,
) -> Result<u8, Failure> {
    context.tell(&ground.engine);
    context.ui.answer(
        || Fields::new().with("landing", &as_json(landing)),
        |out| told(out, landing),
    )?;
    Ok(exit_of(std::slice::from_ref(landing)))
}

fn exit_of(landings: &[Landing]) -> u8 {
    let codes = landings.iter().map(|landing| match landing.status {
        LandingStatus::Conflict => exit::CONFLICT,
        LandingStatus::Red | LandingStatus::Dropped => exit::REFUSED,
        LandingStatus::Landed if landing.reverted_by.is_some() => exit::REFUSED,
        LandingStatus::Refused => landing.reason.as_ref().map_or(exit::REFUSED, refusal_exit),
        _ => exit::DONE,
    });
    codes.max().unwrap_or(exit::DONE)
}

/// A landing as programs see it.
pub fn as_json(landing: &Landing) -> Value {
    let mut value = serde_json::to_value(landing).unwrap_or_default();
    let is_dry = landing.id == DRY_RUN;
    let outcome = match landing.status {
        LandingStatus::Testing if is_dry => "would_land",
        LandingStatus::Testing | LandingStatus::Moving => "queued",
        status => status.as_str(),
    };
    value["outcome"] = json!(outcome);
    if landing.status == LandingStatus::Landed {
        value["commit"] = json!(landing.new_tip);
    }
    if value.get("conflicts").is_none() {
        value["conflicts"] = json!([]);
    }
    value
}

/// The start of a commit's id, for people.
pub fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

fn told(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let (tree, target) = (paint(ACCENT, &landing.tree), &landing.target);
    let id = landing.id;
    match landing.status {
        LandingStatus::Landed => {
            let commit = short(landing.new_tip.as_deref().unwrap_or_default());
            match landing.reverts {
                Some(of) => writeln!(
                    out,
                    "landing {of} of {tree} is undone on {target} as {commit}"
                )?,
                None => writeln!(
                    out,
                    "{tree} landed on {target} as {commit} {}",
                    paint(DIM, format!("(undo: weald revert {id})"))
                )?,
            }
            if let Some(by) = landing.reverted_by {
                writeln!(
                    out,
                    "  and was taken back by landing {by}; its task is open again"
                )?;
            }
            told_gate(out, landing)?;
            told_cleanup(out, landing)
        }
        LandingStatus::NothingToLand => {
            writeln!(out, "{tree}: {target} has all of it already")?;
            told_cleanup(out, landing)
        }
        LandingStatus::Conflict => told_conflict(out, landing),
        LandingStatus::Red => {
            let why = landing.reason.as_ref();
            let why = why.map_or(String::new(), |why| format!(" ({})", clean(&why.message)));
            writeln!(
                out,
                "{tree} did not land: the gate is red{why}; nothing was changed"
            )?;
            writeln!(out, "  its output:      weald queue log {id}")?;
            writeln!(out, "  land it again:   weald land {}", landing.tree)
        }
        LandingStatus::Refused => {
            let reason = landing.reason.as_ref();
            let why = reason.map_or("", |reason| reason.message.as_str());
            writeln!(out, "{tree} did not land: {}", clean(why))?;
            for path in reason.iter().flat_map(|reason| &reason.paths) {
                writeln!(out, "  {}", clean_line(path))?;
            }
            match reason.and_then(|reason| reason.hint.as_ref()) {
                Some(hint) => writeln!(out, "  try: {hint}"),
                None => Ok(()),
            }
        }
        LandingStatus::Testing if id == DRY_RUN => writeln!(out, "{tree} would land on {target}"),
        LandingStatus::Dropped => {
            let again = match landing.reverts {
                Some(of) => format!("weald revert {of}"),
                None => format!("weald land {}", landing.tree),
            };
            let again = paint(DIM, format!("(again: {again})"));
            writeln!(
                out,
                "{tree} was taken out of the queue; the tree is kept {again}"
            )
        }
        LandingStatus::Queued | LandingStatus::Testing | LandingStatus::Moving => writeln!(
            out,
            "{tree} is in the queue as landing {id} (see: weald queue)"
        ),
    }
}

fn told_gate(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let Some(gate) = &landing.gate else {
        return Ok(());
    };
    let word = match (gate.cached, gate.attempts) {
        (true, _) => "was green for the same tree before".to_owned(),
        (false, 0 | 1) => format!("is green ({} ms)", gate.took_ms),
        (false, times) => format!("was red first and green at attempt {times}: flaky"),
    };
    writeln!(out, "  gate `{}` {word}", clean(&gate.command))
}

fn told_cleanup(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let Some(cleanup) = &landing.cleanup else {
        return Ok(());
    };
    let task = match &landing.task {
        Some(id) => format!(", task {id} {}", cleanup.task),
        None => String::new(),
    };
    writeln!(
        out,
        "  directory {}, branch {}{task}",
        cleanup.directory, cleanup.branch
    )?;
    if let Some(why) = &cleanup.why {
        writeln!(out, "  kept: {}", clean(why))?;
    }
    match &cleanup.restore {
        Some(restore) => writeln!(out, "  bring it back: {restore}"),
        None => Ok(()),
    }
}

fn told_conflict(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let (tree, target) = (&landing.tree, &landing.target);
    writeln!(
        out,
        "{} conflicts with {target}; {target} was not touched, the tree is kept:",
        paint(ACCENT, tree)
    )?;
    for path in &landing.conflicts {
        writeln!(out, "  {}", clean_line(path))?;
    }
    if landing.reverts.is_some() {
        return Ok(());
    }
    writeln!(out, "  bring {target} in: weald sync {tree}")?;
    writeln!(out, "  resolve, commit:   weald enter {tree}")?;
    writeln!(out, "  then:              weald land {tree}")
}
