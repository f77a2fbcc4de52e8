//! Landings as people and programs see them.

use std::io::{self, Write};
use std::time::Duration;

use weald_app::landing::DRY_RUN;
use weald_app::operations::entering::VARIABLES;
use weald_app::operations::landing::{Landed, LandingView};
use weald_app::operations::{Caller, Operation};
use weald_app::{Failure, LeftConflict};
use weald_core::id::LandingId;
use weald_core::landing::{Cleanup, Landing, LandingStatus, Strategy};
use weald_core::signature::Signature;

use crate::commands::inside::Inside;
use crate::commands::shell_init::Moves;
use crate::context::Context;
use crate::ui::{
    ACCENT, DIM, ERROR, Out, WARNING, clean, clean_line, indented, joined, paint,
    print_kept_changes, short, took, wrapped,
};

/// Lands, and prints what became of it.
pub fn answer<O: Operation<Output = Landed>>(
    context: &Context<'_>,
    caller: &Caller,
    request: O,
) -> Result<u8, Failure> {
    let landed = context.perform_as(caller, request)?;
    let is_inside = Inside::of(context).is_some();
    context.ui.show(&landed, |out| {
        if landed.wished {
            return writeln!(
                out,
                "noted: weald asks whether to land it when this shell ends (exit)"
            );
        }
        if landed.landings.is_empty() {
            writeln!(out, "nothing is waiting to land")?;
        }
        for view @ LandingView { landing, left, .. } in &landed.landings {
            match left {
                Some(left) => told_left(out, landing, left)?,
                None if is_inside => told_inside(out, view)?,
                None => told(out, view)?,
            }
            print_kept_changes(out, landing)?;
        }
        match landed.untested {
            true => writeln!(
                out,
                "{}",
                paint(DIM, "no test command: set gate.command to test what lands")
            ),
            false => Ok(()),
        }
    })?;
    if let Some(back) = &landed.back {
        let moves = Moves {
            to: back,
            set: &[],
            unset: &VARIABLES,
        };
        // It has landed, whatever became of the shell's file.
        if !moves.tell(context).unwrap_or_default() {
            context.note(&format!(
                "this directory was removed; go back: cd {}",
                back.display()
            ));
        }
    }
    Ok(O::exit(&landed))
}

pub fn told_one(out: &mut Out, view: &LandingView) -> io::Result<()> {
    told(out, view)?;
    print_kept_changes(out, &view.landing)
}

/// That its tests failed: how, and the end of what they printed. `log` is the command that prints the rest.
pub fn told_red(
    out: &mut Out,
    landing: &Landing,
    output: Option<&str>,
    log: &str,
) -> io::Result<()> {
    let why = landing.reason.as_ref();
    let why = why.map_or(String::new(), |why| clean(&why.message));
    let what = match landing.reverts {
        Some(of) => format!("Tests failed without landing {of}"),
        None => "Tests failed".to_owned(),
    };
    let target = &landing.target;
    let line = wrapped(&format!("✗ {what}: {why}. {target} is unchanged."), 2);
    // The beginning of a line is never broken.
    let heading = paint(ERROR, "✗ Tests failed");
    writeln!(out, "{}", line.replacen("✗ Tests failed", &heading, 1))?;
    let output = output.unwrap_or_default();
    if output.is_empty() {
        return writeln!(out, "  they printed nothing; the log: {log}");
    }
    writeln!(
        out,
        "  {}",
        paint(DIM, format!("the end of their output ({log}):"))
    )?;
    for line in output.lines() {
        writeln!(out, "    {}", clean(line))?;
    }
    Ok(())
}

/// The same for a run in a sandbox, with commands that work there.
fn told_inside(out: &mut Out, view: &LandingView) -> io::Result<()> {
    let landing = &view.landing;
    let (tree, target) = (paint(ACCENT, &landing.tree), &landing.target);
    match landing.status {
        LandingStatus::Conflict => {
            writeln!(
                out,
                "{tree} conflicts with {target}; {target} is unchanged:"
            )?;
            told_paths(out, landing)?;
            let rebases = landing.strategy == Strategy::Rebase;
            let (sync, end) = match rebases {
                true => ("weald sync --rebase", "git rebase --continue"),
                false => ("weald sync", "git commit --no-edit"),
            };
            writeln!(out, "  bring {target} in: {sync}")?;
            writeln!(
                out,
                "  resolve them, then: git add FILE…; {end}; weald land"
            )
        }
        LandingStatus::Red => {
            let log = "weald msg inbox --consume";
            told_red(out, landing, view.test_output.as_deref(), log)?;
            writeln!(out, "  when it is fixed and committed: weald land")
        }
        _ => told(out, view),
    }
}

fn told(out: &mut Out, view: &LandingView) -> io::Result<()> {
    let landing = &view.landing;
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
                    "  and was undone by landing {by}; its task is open again"
                )?;
            }
            told_gate(out, landing)?;
            told_signature(out, landing)?;
            told_cleanup(out, landing)
        }
        LandingStatus::NothingToLand => {
            writeln!(
                out,
                "{tree}: nothing to land; {target} already has its work"
            )?;
            told_cleanup(out, landing)
        }
        LandingStatus::Conflict => told_conflict(out, landing),
        LandingStatus::Red => {
            let log = format!("weald queue log {id}");
            told_red(out, landing, view.test_output.as_deref(), &log)?;
            if landing.reverts.is_none() {
                writeln!(out, "  fix it in:  weald shell {}", landing.tree)?;
            }
            writeln!(out, "  then:       {}", again(landing))
        }
        LandingStatus::Refused => {
            let reason = landing.reason.as_ref();
            let why = reason.map_or("", |reason| reason.message.as_str());
            writeln!(out, "{}: {}", did_not_land(landing), indented(why, 4))?;
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
            let again = paint(DIM, format!("(again: {})", again(landing)));
            writeln!(
                out,
                "{tree} was removed from the queue; the worktree is kept {again}"
            )
        }
        LandingStatus::Queued | LandingStatus::Testing | LandingStatus::Moving => writeln!(
            out,
            "{tree} is in the queue as landing {id} (see: weald queue)"
        ),
    }
}

fn did_not_land(landing: &Landing) -> String {
    let tree = paint(ACCENT, &landing.tree);
    match landing.reverts {
        Some(of) => format!("landing {of} of {tree} was not undone"),
        None => format!("{tree} did not land"),
    }
}

/// The command that asks for the same again.
fn again(landing: &Landing) -> String {
    match landing.reverts {
        Some(of) => format!("weald revert {of}"),
        None => format!("weald land {}", landing.tree),
    }
}

fn told_gate(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let Some(gate) = &landing.gate else {
        return Ok(());
    };
    let word = match (gate.cached, gate.attempts) {
        (true, _) => "passed before with the same content".to_owned(),
        (false, 0 | 1) => format!("passed in {}", took(Duration::from_millis(gate.took_ms))),
        (false, times) => format!("failed first and passed on attempt {times}: flaky"),
    };
    writeln!(out, "  gate `{}` {word}", clean(&gate.command))
}

/// Whether it is signed, where somebody wants to know.
pub fn told_signature(out: &mut Out, landing: &Landing) -> io::Result<()> {
    match &landing.signature {
        Some(unsigned @ Signature::Unsigned { .. }) => {
            writeln!(out, "  {}", paint(WARNING, joined(&unsigned.text())))
        }
        Some(signed) => writeln!(out, "  {}", joined(&signed.text())),
        None => Ok(()),
    }
}

fn told_cleanup(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let Some(cleanup) = &landing.cleanup else {
        return Ok(());
    };
    if cleanup.directory == "absent" {
        return told_task(out, landing, cleanup);
    }
    let ignored = match cleanup.ignored {
        0 => String::new(),
        1 => " with 1 ignored file".to_owned(),
        count => format!(" with {count} ignored files"),
    };
    let mut parts = vec![format!("directory {}{ignored}", cleanup.directory)];
    if cleanup.branch != "absent" {
        parts.push(format!("branch {}", cleanup.branch));
    }
    match (&landing.task, cleanup.task.as_str()) {
        (Some(id), "kept") => parts.push(format!("task {id} unchanged")),
        (Some(id), task) => parts.push(format!("task {id} {task}")),
        (None, _) => {}
    }
    writeln!(out, "  {}", parts.join(", "))?;
    if let Some(why) = &cleanup.why {
        writeln!(out, "  kept: {}", indented(why, 4))?;
    }
    match &cleanup.restore {
        Some(restore) => writeln!(out, "  restore it: {restore}"),
        None => Ok(()),
    }
}

/// What became of the task where there was no worktree to clean up.
fn told_task(out: &mut Out, landing: &Landing, cleanup: &Cleanup) -> io::Result<()> {
    let Some(id) = &landing.task else {
        return Ok(());
    };
    match cleanup.task.as_str() {
        "reopened" => writeln!(out, "  task {id} is open again"),
        "completed" => writeln!(out, "  task {id} is completed"),
        _ => writeln!(out, "  the status of task {id} did not change"),
    }
}

fn told_conflict(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let (tree, target) = (&landing.tree, &landing.target);
    if let Some(of) = landing.reverts {
        return told_revert_conflict(out, landing, of);
    }
    writeln!(
        out,
        "{} conflicts with {target}; {target} is unchanged, the worktree is kept:",
        paint(ACCENT, tree)
    )?;
    told_paths(out, landing)?;
    writeln!(out, "  merge {target} in: weald sync {tree}")?;
    writeln!(out, "  resolve them in:   weald shell {tree}")?;
    writeln!(
        out,
        "  commit:            weald run {tree} -- git commit -am MESSAGE"
    )?;
    writeln!(out, "  then:              weald land {tree}")
}

fn told_revert_conflict(out: &mut Out, landing: &Landing, of: LandingId) -> io::Result<()> {
    let target = &landing.target;
    writeln!(
        out,
        "landing {of} can't be undone: later changes conflict with the revert; {target} is unchanged:"
    )?;
    told_paths(out, landing)?;
    let commit = short(&landing.head);
    writeln!(out, "  undo it by hand: weald new undo-{of}")?;
    writeln!(
        out,
        "                   weald run undo-{of} -- git revert {commit}"
    )?;
    writeln!(
        out,
        "  resolve, commit, then: weald land undo-{of} {}",
        paint(DIM, "(a merge needs: git revert -m 1)")
    )
}

fn told_left(out: &mut Out, landing: &Landing, left: &LeftConflict) -> io::Result<()> {
    let place = left.path.display();
    writeln!(
        out,
        "{} conflicts with {}; the conflict is left in {place}, the worktree is kept:",
        paint(ACCENT, &landing.tree),
        landing.target
    )?;
    told_paths(out, landing)?;
    writeln!(out, "  resolve it there, then: git -C {place} commit -a")?;
    let (git, abort) = left.abort.split_once(' ').unwrap_or((left.abort, ""));
    writeln!(out, "  or abort it:            {git} -C {place} {abort}")
}

fn told_paths(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let mut paths = landing.conflicts.iter();
    paths.try_for_each(|path| writeln!(out, "  {}", clean_line(path)))
}
