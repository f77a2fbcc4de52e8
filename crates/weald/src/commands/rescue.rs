//! `weald rescue`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use weald_app::supervision::rescue::{
    Evidence, commit_left, gather, restart, to_trash, write_patch,
};
use weald_app::{Agents, Failure, Ground, Resumption, exit};
use weald_core::agent::AgentStatus;
use weald_core::id::TaskId;

use super::resume::Resume;
use super::work::{self, How};
use crate::completion;
use crate::context::Context;
use crate::following::follow;
use crate::ui::{Fields, Out, because, clean_line, indented};

/// How many uncommitted files are named.
const FILES: usize = 20;

/// Save a failed agent's work and choose how to continue
///
/// Also for an agent that died. Uncommitted changes are saved as a snapshot first; without further options nothing else
/// changes.
#[derive(Args)]
pub struct Rescue {
    /// The task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: TaskId,
    /// Also commit uncommitted changes to the worktree's branch
    #[arg(long)]
    commit: bool,
    #[command(flatten)]
    choice: Choice,
    /// Return at once; the new agent runs in the background
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    how: How,
}

#[derive(Args)]
#[group(multiple = false)]
struct Choice {
    /// Continue in the same worktree, like `weald resume`
    #[arg(long = "continue")]
    go_on: bool,
    /// Start over in a new worktree; the old one goes to the trash
    #[arg(long)]
    restart: bool,
    /// Write all changes since the base to FILE, for `git apply`
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// Move the worktree to the trash
    #[arg(long)]
    trash: bool,
}

impl Rescue {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let found = Agents::new(&ground.trees(context)?).diagnose(&self.task)?;
        self.refuse_running(&found)?;
        let evidence = gather(context, &ground, &found)?;
        let mut done = Vec::new();
        if self.commit {
            done.push(commit_left(context, &ground, &evidence)?);
        }
        context.tell(&ground.engine);
        let choice = &self.choice;
        if let Some(file) = &choice.patch {
            let done = write_patch(context, &ground, &evidence, file)?;
            return answer(context, &evidence, &[done], &[]);
        }
        if choice.go_on {
            tell(context, &evidence);
            return Resume::of(self.task.to_string(), self.how, self.detach).run(context);
        }
        if choice.restart {
            tell(context, &evidence);
            return self.restart(context, &ground, &found, &evidence);
        }
        if choice.trash {
            let done = to_trash(context, &ground, evidence.worktree()?)?;
            return answer(context, &evidence, &[done], &[]);
        }
        answer(context, &evidence, &done, &evidence.choices)
    }

    fn restart(
        &self,
        context: &Context<'_>,
        ground: &Ground,
        found: &Resumption,
        evidence: &Evidence,
    ) -> Result<u8, Failure> {
        let last = found.newest.as_ref();
        let mut how = self.how.clone();
        if how.driver.is_none() && how.command.is_empty() {
            how.driver = last.map(|agent| agent.driver.clone());
            how.command = last.map(|agent| agent.command.clone()).unwrap_or_default();
        }
        let request = how.request(ground);
        let follow = |ground: &Ground, id| follow(context, ground, id);
        let agent = restart(
            context,
            ground,
            found,
            evidence,
            request,
            self.detach,
            &follow,
        )?;
        work::answer(context, ground, &agent)
    }

    /// Whoever works is left alone; of one that stalled the tree can be seen and saved.
    fn refuse_running(&self, found: &Resumption) -> Result<(), Failure> {
        let Some(agent) = found
            .newest
            .as_ref()
            .filter(|agent| !agent.status.is_over())
        else {
            return Ok(());
        };
        let changes = self.commit || self.choice.go_on || self.choice.restart || self.choice.trash;
        if agent.status == AgentStatus::Stalled && !changes {
            return Ok(());
        }
        let message = format!("agent {} is running ({})", agent.id, agent.status);
        Err(
            Failure::new("agent_running", exit::BUSY, message).hint(format!(
                "weald agent stop {id}, or weald agent pulse {id}",
                id = agent.id
            )),
        )
    }
}

fn answer(
    context: &Context<'_>,
    evidence: &Evidence,
    done: &[String],
    choices: &[String],
) -> Result<u8, Failure> {
    context.ui.answer(
        || Fields::new().with("rescue", evidence).with("done", done),
        |out| {
            print(out, evidence)?;
            for line in done {
                writeln!(out, "{line}")?;
            }
            if !choices.is_empty() {
                writeln!(out, "continue with one of:")?;
                for choice in choices {
                    writeln!(out, "  {choice}")?;
                }
            }
            Ok(())
        },
    )
}

/// The evidence beside an answer of its own.
fn tell(context: &Context<'_>, evidence: &Evidence) {
    if let Some(snapshot) = &evidence.snapshot {
        let note = format!("uncommitted changes are saved in snapshot {}", snapshot.id);
        context.note(&note);
    }
}

fn print(out: &mut Out, evidence: &Evidence) -> io::Result<()> {
    let task = &evidence.task;
    match &evidence.agent {
        None => writeln!(out, "no agent worked on task {task}")?,
        Some(agent) => {
            let end = agent.end.as_ref();
            let how = end.map_or(agent.status.to_string(), |end| {
                end.outcome.as_str().replace('_', " ")
            });
            let why = end.map(|end| indented(&end.why, 2)).unwrap_or_default();
            let code = agent
                .code
                .map_or(String::new(), |code| format!(", exit code {code}"));
            let told = format!("task {task}: agent {} ended ({how}){code}", agent.id);
            writeln!(out, "{}", because(told, &why))?;
        }
    }
    if !evidence.last_output.is_empty() {
        writeln!(out, "its last output:")?;
        for line in &evidence.last_output {
            writeln!(out, "  | {}", clean_line(line))?;
        }
    }
    let Some(view) = &evidence.tree else {
        return writeln!(
            out,
            "it has no worktree; see weald restore, weald restore --purged"
        );
    };
    let (name, branch) = (&view.tree.name, &view.tree.branch);
    if let Some(problem) = &view.problem {
        return writeln!(out, "worktree {name}: {}", indented(problem, 2));
    }
    let ahead = view.ahead.unwrap_or(0);
    writeln!(
        out,
        "worktree {name} (branch {branch}): {ahead} commits, {} uncommitted files",
        evidence.uncommitted.len()
    )?;
    for file in evidence.uncommitted.iter().take(FILES) {
        writeln!(out, "  {:<10} {}", file.state, clean_line(&file.path))?;
    }
    if let Some(more) = evidence
        .uncommitted
        .len()
        .checked_sub(FILES)
        .filter(|more| *more > 0)
    {
        writeln!(out, "  … and {more} more")?;
    }
    match &evidence.snapshot {
        Some(snapshot) => writeln!(
            out,
            "saved as snapshot {id}: weald restore {name} --snapshot {id}",
            id = snapshot.id
        ),
        None => Ok(()),
    }
}
