//! `weald rescue`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::rescues::{self, Found, RescueTask, Rescued};
use weald_app::supervision::rescue::Evidence;
use weald_core::meant::Word;

use super::work::How;
use super::work_told::tell_ended;
use crate::completion;
use crate::context::Context;
use crate::ui::{Out, because, clean_line, indented};

/// How many uncommitted files are named.
const FILES: usize = 20;

/// Save a failed agent's work and choose how to continue
///
/// Also for an agent that died. Uncommitted changes are saved as a snapshot first; without further options nothing else
/// changes.
#[derive(Args)]
pub struct Rescue {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: Word,
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

impl Choice {
    fn chosen(self) -> Option<rescues::Rescue> {
        let patch = self.patch.map(rescues::Rescue::Patch);
        let of = |is_chosen: bool, choice| is_chosen.then_some(choice);
        patch
            .or(of(self.go_on, rescues::Rescue::Continue))
            .or(of(self.restart, rescues::Rescue::Restart))
            .or(of(self.trash, rescues::Rescue::Trash))
    }
}

impl Rescue {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(RescueTask {
            task: self.task,
            commit: self.commit,
            choice: self.choice.chosen(),
            detach: self.detach,
            how: self.how.wish(),
        })?;
        context.ui.show(&answer, |out| match &answer {
            Rescued::Found(found) => tell(out, found),
            Rescued::Ended(ended) => tell_ended(out, ended),
        })?;
        Ok(RescueTask::exit(&answer))
    }
}

fn tell(out: &mut Out, found: &Found) -> io::Result<()> {
    print(out, &found.rescue)?;
    for line in &found.done {
        writeln!(out, "{line}")?;
    }
    if found.is_open {
        writeln!(out, "continue with one of:")?;
        for choice in &found.rescue.choices {
            writeln!(out, "  {choice}")?;
        }
    }
    Ok(())
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
