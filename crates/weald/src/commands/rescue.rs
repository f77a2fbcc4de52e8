//! `weald rescue`

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use weald_app::supervision::launch;
use weald_app::{
    Against, AgentRequest, Agents, BranchExists, ChangedFile, CommitScope, Created, DiffStyle,
    Failure, Ground, LOG_FILE, Landings, NewTree, RemoveRequest, Resumption, SnapshotView,
    TreeError, TreeView, agent_folder, exit, open_own,
};
use weald_core::agent::{Agent, AgentStatus, Goal};
use weald_core::id::TaskId;
use weald_core::resuming::Diagnosis;
use weald_sandbox::catch_interrupts;

use super::resume::Resume;
use super::work::{self, How, tell_placed};
use crate::completion;
use crate::context::Context;
use crate::following::follow;
use crate::ui::{Fields, Out, because, clean_line, indented};

/// How much of the end of a log is looked at, and how many lines of it are shown.
const TAIL: u64 = 8 * 1024;
const LINES: usize = 8;

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

/// What is known of a task that went wrong.
#[derive(Serialize)]
struct Evidence {
    task: TaskId,
    diagnosis: Diagnosis,
    agent: Option<Agent>,
    last_output: Vec<String>,
    tree: Option<TreeView>,
    uncommitted: Vec<ChangedFile>,
    snapshot: Option<SnapshotView>,
    choices: Vec<String>,
}

impl Rescue {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let found = Agents::new(&ground.trees(context)?).diagnose(&self.task)?;
        self.refuse_running(&found)?;
        let evidence = gather(context, &ground, &found)?;
        let tree = evidence
            .tree
            .as_ref()
            .map(|view| view.tree.name.to_string());
        let mut done = Vec::new();
        if self.commit {
            let name = required(&tree, &self.task)?;
            done.push(commit(context, &ground, &evidence, name)?);
        }
        context.tell(&ground.engine);
        let choice = &self.choice;
        if let Some(file) = &choice.patch {
            return patch(
                context,
                &ground,
                &evidence,
                required(&tree, &self.task)?,
                file,
            );
        }
        if choice.go_on {
            tell(context, &evidence);
            return Resume::of(self.task.to_string(), self.how, self.detach).run(context);
        }
        if choice.restart {
            tell(context, &evidence);
            return self.restart(context, &ground, &found, tree.as_deref());
        }
        if choice.trash {
            return trash(context, &ground, &evidence, required(&tree, &self.task)?);
        }
        answer(context, &evidence, &done, &evidence.choices)
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

    fn restart(
        &self,
        context: &Context<'_>,
        ground: &Ground,
        found: &Resumption,
        tree: Option<&str>,
    ) -> Result<u8, Failure> {
        catch_interrupts();
        let last = found.newest.as_ref();
        let mut how = self.how.clone();
        if how.driver.is_none() && how.command.is_empty() {
            how.driver = last.map(|agent| agent.driver.clone());
            how.command = last.map(|agent| agent.command.clone()).unwrap_or_default();
        }
        let request = how.request(ground);
        let request = AgentRequest {
            goal: match request.goal {
                Goal::Stay => Goal::Land,
                goal => goal,
            },
            reopen: true,
            ..request
        };
        // Nothing goes before it is sure that somebody can begin anew.
        Agents::new(&ground.trees(context)?).require_wanted(&found.task)?;
        Agents::new(&ground.trees(context)?).require_driver(&request)?;
        if let Some(tree) = tree {
            to_trash(context, ground, tree)?;
        }
        let new = NewTree {
            branch_exists: BranchExists::Recreate,
            ..NewTree::default()
        };
        let placed = |agent: &Agent, created: &Created| tell_placed(context, agent, created);
        let launched = launch(context, ground, Some(&self.task), &request, new, placed)?;
        let agent = match self.detach {
            true => ground.engine.agent(launched.id)?,
            false => follow(context, ground, launched.id)?,
        };
        work::answer(context, ground, &agent)
    }
}

fn required<'t>(tree: &'t Option<String>, task: &TaskId) -> Result<&'t str, Failure> {
    tree.as_deref().ok_or_else(|| {
        Failure::new(
            "no_tree",
            exit::REFUSED,
            format!("task {task} has no worktree to rescue"),
        )
        .hint(format!(
            "weald resume {task}; weald trash list; weald vault list"
        ))
    })
}

/// Commits what is not committed, and says what came of it.
fn commit(
    context: &Context<'_>,
    ground: &Ground,
    evidence: &Evidence,
    name: &str,
) -> Result<String, Failure> {
    let message = format!("Rescued work of task {}", evidence.task);
    let trees = ground.trees(context)?;
    Landings::new(&trees).commit_work(name, CommitScope::All, &message)?;
    let after = trees.look(Some(name))?.tree;
    let before = evidence
        .tree
        .as_ref()
        .and_then(|view| view.tree.head.clone());
    let told = match after.head.filter(|head| Some(head) != before.as_ref()) {
        Some(head) => {
            let commit: String = head.chars().take(9).collect();
            format!("committed as {commit} on {}: {message}", after.branch)
        }
        None => format!("nothing to commit in {name}"),
    };
    Ok(told)
}

/// Looks at everything, and saves what is not committed.
fn gather(context: &Context<'_>, ground: &Ground, found: &Resumption) -> Result<Evidence, Failure> {
    let trees = ground.trees(context)?;
    let (task, newest) = (&found.task, &found.newest);
    let of_agent = newest.as_ref().and_then(|agent| agent.tree.clone());
    let name = task.worktree.clone().or(of_agent);
    let known = name.and_then(|name| trees.named(Some(name.as_str())).ok());
    let tree = match known {
        Some(tree) => match trees.look(Some(tree.name.as_str())) {
            // What its agent committed can be rescued all the same.
            Err(TreeError::Replaced { .. }) => Some(trees.view(tree)),
            looked => Some(looked?),
        },
        None => None,
    };
    let is_there = tree.as_ref().filter(|view| view.problem.is_none());
    let name = is_there.map(|view| view.tree.name.to_string());
    let (mut uncommitted, mut snapshot) = (Vec::new(), None);
    if let Some(name) = &name {
        snapshot = Some(trees.snapshot(Some(name))?);
        let diff = trees.diff(Some(name), Against::Base, DiffStyle::Files)?;
        let files = diff.files.into_iter();
        uncommitted = files.filter(|file| file.state != "committed").collect();
    }
    let id = &task.id;
    let words = |choice: &str| format!("weald rescue {id} {choice}");
    let choices = match name {
        Some(_) => &["--continue", "--restart", "--patch FILE", "--trash"][..],
        None => &["--continue", "--restart"],
    };
    Ok(Evidence {
        task: id.clone(),
        diagnosis: found.diagnosis,
        last_output: newest
            .as_ref()
            .map_or(Vec::new(), |agent| last_lines(ground, agent)),
        agent: newest.clone(),
        tree,
        uncommitted,
        snapshot,
        choices: choices.iter().map(|choice| words(choice)).collect(),
    })
}

/// The last lines that an agent wrote.
fn last_lines(ground: &Ground, agent: &Agent) -> Vec<String> {
    let path = agent_folder(&ground.place, agent.id).join(LOG_FILE);
    let read = || -> io::Result<Vec<u8>> {
        let mut file = open_own(OpenOptions::new().read(true), &path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(LINES);
    let short = |line: &&str| line.chars().take(200).collect();
    lines[from..].iter().map(short).collect()
}

fn patch(
    context: &Context<'_>,
    ground: &Ground,
    evidence: &Evidence,
    tree: &str,
    file: &PathBuf,
) -> Result<u8, Failure> {
    let made = Landings::new(&ground.trees(context)?).work_patch(tree)?;
    std::fs::write(file, &made.text).map_err(|error| Failure::file(file, &error))?;
    for path in &made.left_out {
        context.warn(&format!("{} is too large for it", clean_line(path)));
    }
    let base = made.base.chars().take(12).collect::<String>();
    let done = format!("{} holds it; on {base}: git apply {0}", file.display());
    answer(context, evidence, &[done], &[])
}

fn to_trash(context: &Context<'_>, ground: &Ground, tree: &str) -> Result<String, Failure> {
    let request = RemoveRequest {
        discard: true,
        reason: Some("rescued".to_owned()),
        ..RemoveRequest::default()
    };
    let removed = ground.trees(context)?.remove(Some(tree), &request)?;
    let restore = removed.restore.unwrap_or_default();
    let told = format!("{tree} is in the trash: {restore}");
    context.note(&told);
    Ok(told)
}

fn trash(
    context: &Context<'_>,
    ground: &Ground,
    evidence: &Evidence,
    tree: &str,
) -> Result<u8, Failure> {
    let told = to_trash(context, ground, tree)?;
    answer(context, evidence, &[told], &[])
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
            "it has no worktree; see weald trash list, weald vault list"
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
            "saved as snapshot {id}: weald snapshot restore {name} {id}",
            id = snapshot.id
        ),
        None => Ok(()),
    }
}
