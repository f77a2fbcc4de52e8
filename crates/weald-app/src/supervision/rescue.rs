//! What is left of an agent that failed or died: the evidence, and what can be done with it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::agent::{Agent, Goal};
use weald_core::id::TaskId;
use weald_core::resuming::Diagnosis;

use super::tail::Tail;
use super::{follow, launch, tell_placed};
use crate::screen::clean_line;
use crate::{
    Against, AgentRequest, Agents, BranchExists, ChangedFile, CommitScope, Created, DiffStyle,
    Failure, Landings, NewTree, RemoveRequest, Resumption, SnapshotView, TreeError, TreeView, exit,
};
use crate::{Call, Ground};

/// How much of the end of a log is looked at, and how many lines of it are shown.
const LINES: usize = 8;

/// What is known of a task that went wrong.
#[derive(Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// What was attempted.
    pub task: TaskId,
    /// Where it broke off, and what can be done.
    pub diagnosis: Diagnosis,
    /// The last one on it.
    pub agent: Option<Agent>,
    /// Its last lines.
    pub last_output: Vec<String>,
    /// Where it worked, if that is still there.
    pub tree: Option<TreeView>,
    /// What it changed there and did not commit.
    pub uncommitted: Vec<ChangedFile>,
    /// A state of the worktree that can be restored.
    pub snapshot: Option<SnapshotView>,
    /// What can be asked for next.
    pub choices: Vec<String>,
}

impl Evidence {
    /// The worktree that is left.
    pub fn worktree(&self) -> Result<&str, Failure> {
        let tree = self.tree.as_ref().map(|view| view.tree.name.as_str());
        let task = &self.task;
        tree.ok_or_else(|| {
            Failure::new(
                "no_tree",
                exit::REFUSED,
                format!("task {task} has no worktree to rescue"),
            )
            .hint(format!(
                "weald resume {task}; weald restore; weald restore --purged"
            ))
        })
    }
}

/// Starts an agent anew in a new worktree, once it is sure that one can begin; the old worktree goes to the trash. `request`
/// is for the same driver and command as before, unless others were asked for.
pub fn restart(
    call: &Call<'_>,
    ground: &Ground,
    found: &Resumption,
    evidence: &Evidence,
    request: AgentRequest,
    detach: bool,
) -> Result<Agent, Failure> {
    call.cancel.catch();
    let request = AgentRequest {
        goal: match request.goal {
            Goal::Stay => Goal::Land,
            goal => goal,
        },
        reopen: true,
        ..request
    };
    Agents::new(&ground.trees(call)?).require_wanted(&found.task)?;
    Agents::new(&ground.trees(call)?).require_driver(&request)?;
    if let Ok(tree) = evidence.worktree() {
        to_trash(call, ground, tree)?;
    }
    let new = NewTree {
        branch_exists: BranchExists::Recreate,
        ..NewTree::default()
    };
    let placed = |agent: &Agent, created: &Created| tell_placed(call, agent, created);
    let launched = launch(call, ground, Some(&found.task.id), &request, new, placed)?;
    match detach {
        true => Ok(ground.engine.agent(launched.id)?),
        false => follow(call, ground, launched.id),
    }
}

/// Commits what is not committed, and says what came of it.
pub fn commit_left(
    call: &Call<'_>,
    ground: &Ground,
    evidence: &Evidence,
) -> Result<String, Failure> {
    let name = evidence.worktree()?;
    let message = format!("Rescued work of task {}", evidence.task);
    let trees = ground.trees(call)?;
    let wish = Some((CommitScope::All, message.as_str()));
    let after = Landings::new(&trees).commit_work(name, wish, None)?.tree;
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
pub fn gather(call: &Call<'_>, ground: &Ground, found: &Resumption) -> Result<Evidence, Failure> {
    let trees = ground.trees(call)?;
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

/// The last lines of what an agent did and said.
fn last_lines(ground: &Ground, agent: &Agent) -> Vec<String> {
    let mut tail = Tail::new(ground, agent.id).map(|tail| tail.whole(false));
    let bytes = tail.as_mut().map(|tail| tail.all_of(None));
    let text = match &bytes {
        Ok(Ok(bytes)) => String::from_utf8_lossy(bytes),
        _ => return Vec::new(),
    };
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let first = lines.len().saturating_sub(LINES);
    let short = |line: &&str| line.chars().take(200).collect();
    lines[first..].iter().map(short).collect()
}

/// Writes everything that changed since the base to a file; answers what was done.
pub fn write_patch(
    call: &Call<'_>,
    ground: &Ground,
    evidence: &Evidence,
    file: &Path,
) -> Result<String, Failure> {
    let made = Landings::new(&ground.trees(call)?).work_patch(evidence.worktree()?)?;
    std::fs::write(file, &made.text).map_err(|error| Failure::file(file, &error))?;
    for path in &made.left_out {
        call.warn(&format!("{} is too large for it", clean_line(path)));
    }
    let base = made.base.chars().take(12).collect::<String>();
    let file = file.display();
    Ok(format!("{file} holds it; on {base}: git apply {file}"))
}

/// Moves the worktree to the trash; answers how to restore it.
pub fn to_trash(call: &Call<'_>, ground: &Ground, tree: &str) -> Result<String, Failure> {
    let request = RemoveRequest {
        discard: true,
        reason: Some("rescued".to_owned()),
        ..RemoveRequest::default()
    };
    let removed = ground.trees(call)?.remove(Some(tree), &request)?;
    let told = format!("{tree} is in the trash: weald restore {}", removed.tree.id);
    call.note(&told);
    Ok(told)
}
