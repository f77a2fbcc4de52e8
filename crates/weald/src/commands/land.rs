//! `weald land`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use weald_core::id::{LandingId, TaskId, Token};
use weald_core::landing::{Landing, LandingStatus, Strategy};
use weald_engine::{CommitScope, LandRequest, OnConflict, Progress};

use super::pool;
use crate::completion;
use crate::context::{Context, Ground};
use crate::errors::Failure;
use crate::errors::landing::refusal_exit;
use crate::exit;
use crate::ui::{ACCENT, DIM, Fields, Out, clean, paint};

/// The number of a landing that was not recorded.
const DRY_RUN: LandingId = LandingId(0);

/// Bring trees' commits to their target
///
/// Queues them and works the queue, or waits while another process does: one after the other, each merged onto the
/// target's tip, tested as exactly what it becomes, then moved there together with the checkout of the target. A conflict
/// (exit 3) or a red gate (exit 1) changes nothing. Several land in the order of their tasks' dependencies. Outside of
/// trees and without a name: works what is queued.
#[derive(Args)]
pub struct Land {
    /// Trees or tasks (default: the tree you are in)
    #[arg(value_name = "NAME", add = completion::trees())]
    names: Vec<String>,
    /// How commits reach the target (default: landing.strategy)
    #[arg(long, value_enum)]
    strategy: Option<StrategyArg>,
    /// Queue and return; whoever works the queue next lands it
    #[arg(long, conflicts_with_all = ["dry_run", "wait"])]
    no_wait: bool,
    /// Wait until it has landed (the default)
    #[arg(long)]
    wait: bool,
    /// Say what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Keep the tree, its branch and its record
    #[arg(long)]
    keep: bool,
    /// After a conflict, leave those behind it alone
    #[arg(long)]
    stop_on_conflict: bool,
    /// What to do with a conflict: abort, or leave it in the target's checkout
    #[arg(long, value_enum, value_name = "WHAT", default_value = "abort")]
    on_conflict: OnConflictArg,
    /// Commit changes of tracked files first, or all: also files that git does not know
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, default_missing_value = "tracked", require_equals = true)]
    commit: Option<CommitArg>,
    /// The message of that commit (default: Work in progress)
    #[arg(long, short, value_name = "TEXT", requires = "commit")]
    message: Option<String>,
    /// The token of the claim that its task is under (default: $WEALD_TOKEN if $WEALD_TASK is that task)
    #[arg(long, value_name = "N")]
    token: Option<Token>,
}

#[derive(Clone, Copy, ValueEnum)]
enum StrategyArg {
    Squash,
    Merge,
    Rebase,
    Ff,
}

#[derive(Clone, Copy, ValueEnum)]
enum CommitArg {
    Tracked,
    All,
}

#[derive(Clone, Copy, ValueEnum)]
enum OnConflictArg {
    Abort,
    Leave,
}

impl Land {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.landing_ground()?;
        ground.warn_of_settings(context);
        let request = self.request(context, &ground)?;
        if self.dry_run {
            let trees = ground.trees(context)?;
            let found = trees.dry_run(&request)?;
            return answer(context, &ground, &found);
        }
        let ids = match self.names.is_empty() && ground.place.inside().is_none() {
            true => Vec::new(),
            false => {
                let progress = context.ui.progress("taking the commits in");
                let queued = ground.trees(context)?.queue_landings(&request)?;
                drop(progress);
                queued.iter().map(|landing| landing.id).collect()
            }
        };
        if self.no_wait {
            return finish(context, ground, &ids, &request, Mode::Queue);
        }
        finish(context, ground, &ids, &request, Mode::Work)
    }

    fn request(&self, context: &Context<'_>, ground: &Ground) -> Result<LandRequest, Failure> {
        Ok(LandRequest {
            names: self.names.clone(),
            strategy: self.strategy.map(|strategy| match strategy {
                StrategyArg::Squash => Strategy::Squash,
                StrategyArg::Merge => Strategy::Merge,
                StrategyArg::Rebase => Strategy::Rebase,
                StrategyArg::Ff => Strategy::Ff,
            }),
            no_wait: self.no_wait,
            keep: self.keep,
            stop_on_conflict: self.stop_on_conflict,
            on_conflict: match self.on_conflict {
                OnConflictArg::Abort => OnConflict::Abort,
                OnConflictArg::Leave => OnConflict::Leave,
            },
            token: self.claim(context, ground)?,
            commit: self.commit.map(|what| {
                let scope = match what {
                    CommitArg::Tracked => CommitScope::Tracked,
                    CommitArg::All => CommitScope::All,
                };
                let words = self.message.clone();
                (
                    scope,
                    words.unwrap_or_else(|| "Work in progress".to_owned()),
                )
            }),
        })
    }

    /// The claim that the caller works under.
    fn claim(
        &self,
        context: &Context<'_>,
        ground: &Ground,
    ) -> Result<Option<(TaskId, Token)>, Failure> {
        let task = match (self.token, &self.names[..]) {
            (Some(_), [name]) => ground.trees(context)?.named(Some(name))?.task,
            _ => context
                .environment
                .get("WEALD_TASK")
                .and_then(|id| id.parse().ok()),
        };
        let token = task
            .as_ref()
            .and_then(|task| context.token(task, self.token));
        Ok(task.zip(token))
    }
}

/// Whether to work the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Leave it to others.
    Queue,
    /// Work it until these have ended.
    Work,
}

/// Works the queue until `ids` have ended, and answers what became of them.
pub fn finish(
    context: &Context<'_>,
    mut ground: Ground,
    ids: &[LandingId],
    request: &LandRequest,
    mode: Mode,
) -> Result<u8, Failure> {
    let before = match ids.is_empty() {
        true => ground.trees(context)?.queue()?.open,
        false => Vec::new(),
    };
    let progress = context.ui.progress("working the queue");
    let worked = match mode {
        Mode::Queue => Progress::Done,
        Mode::Work => loop {
            match ground.trees(context)?.work_queue(ids, request)? {
                Progress::Reload => ground = context.landing_ground()?,
                ended => break ended,
            }
        },
    };
    drop(progress);
    if worked == Progress::Paused {
        context
            .ui
            .warn("the queue is paused; go on with: weald queue resume");
    }
    let trees = ground.trees(context)?;
    // A gate may have taken a spare.
    pool::refill(context, &trees, &ground.place.root());
    let told = before.iter().map(|landing| &landing.id).chain(ids);
    let landings: Vec<_> = told
        .map(|id| trees.landing(*id))
        .collect::<Result<_, _>>()?;
    drop(trees);
    answer(context, &ground, &landings)
}

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

fn exit_of(landings: &[Landing]) -> u8 {
    let codes = landings.iter().map(|landing| match landing.status {
        LandingStatus::Conflict => exit::CONFLICT,
        LandingStatus::Red | LandingStatus::Dropped => exit::REFUSED,
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

fn short(commit: Option<&String>) -> &str {
    commit.map_or("", |commit| commit.get(..9).unwrap_or(commit))
}

fn told(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let (tree, target) = (paint(ACCENT, &landing.tree), &landing.target);
    let id = landing.id;
    match landing.status {
        LandingStatus::Landed => {
            let commit = short(landing.new_tip.as_ref());
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
            told_gate(out, landing)?;
            told_cleanup(out, landing)
        }
        LandingStatus::NothingToLand => {
            writeln!(out, "{tree}: {target} has all of it already")?;
            told_cleanup(out, landing)
        }
        LandingStatus::Conflict => told_conflict(out, landing),
        LandingStatus::Red => {
            writeln!(
                out,
                "{tree} did not land: the gate is red; nothing was changed"
            )?;
            writeln!(out, "  its output:      weald queue log {id}")?;
            writeln!(out, "  land it again:   weald land {}", landing.tree)
        }
        LandingStatus::Refused => {
            let reason = landing.reason.as_ref();
            let why = reason.map_or("", |reason| reason.message.as_str());
            writeln!(out, "{tree} did not land: {}", clean(why))?;
            for path in reason.iter().flat_map(|reason| &reason.paths) {
                writeln!(out, "  {}", clean(path))?;
            }
            match reason.and_then(|reason| reason.hint.as_ref()) {
                Some(hint) => writeln!(out, "  try: {hint}"),
                None => Ok(()),
            }
        }
        LandingStatus::Testing if id == DRY_RUN => writeln!(out, "{tree} would land on {target}"),
        LandingStatus::Dropped => writeln!(out, "{tree} was taken out of the queue"),
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
        writeln!(out, "  {}", clean(path))?;
    }
    if landing.reverts.is_some() {
        return Ok(());
    }
    writeln!(out, "  bring {target} in: weald sync {tree}")?;
    writeln!(out, "  resolve, commit:   weald enter {tree}")?;
    writeln!(out, "  then:              weald land {tree}")
}
