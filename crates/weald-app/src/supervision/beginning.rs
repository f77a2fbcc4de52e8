//! Beginning work: which task is meant, where the work is done, and an agent on it that is followed to its end.

use weald_core::agent::{Agent, Goal, Outcome};
use weald_core::error_code::ErrorCode;
use weald_core::id::{TaskId, TaskIdError};
use weald_core::meant::Word;
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;

use super::{await_begin, follow, launch, start_in_main, tell_placed};
use crate::{
    Adoption, AgentRequest, Agents, Created, Failure, NewTask, NewTree, RemoveRequest, exit,
    tracker,
};
use crate::{Call, Ground};

/// Errors when no agent could begin on a new task of these words.
pub fn can_start(
    call: &Call<'_>,
    ground: &Ground,
    subject: &str,
    request: &AgentRequest,
    new: &NewTree,
) -> Result<(), Failure> {
    let trees = ground.trees(call)?;
    Ok(Agents::new(&trees).require_start(subject.trim(), request, new)?)
}

/// Takes back a task that was made for an agent which could not begin, if nobody has it.
pub fn withdraw(call: &Call<'_>, ground: &Ground, task: &TaskId, failure: &Failure) {
    let is_free = |task: &Task| task.status == TaskStatus::Pending && task.owner.is_none();
    let known = ground.engine.task(task).map(|view| view.task);
    if known.is_ok_and(|known| is_free(&known)) {
        let cancel = TaskInput::Cancel {
            reason: Some(format!("no agent could start on it: {}", failure.message)),
        };
        if ground.engine.move_task(None, task, cancel).is_ok() {
            call.note(&format!("task {task} is cancelled: nothing was started"));
        }
    }
}

/// How an agent begins.
pub struct Beginning {
    /// What its worktree is made of, if it needs one.
    pub new: NewTree,
    /// Whether nobody waits for it.
    pub detach: bool,
    /// Whether its task was made for it.
    pub is_new: bool,
}

/// Starts an agent on a task and follows it to its end; detached, until it has begun.
pub fn begin(
    call: &Call<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
    beginning: Beginning,
) -> Result<Agent, Failure> {
    let Beginning {
        new,
        detach,
        is_new,
    } = beginning;
    if !detach {
        call.cancel.catch();
    }
    let is_own_tree = is_new && new.name.is_none();
    let told = |agent: &Agent, created: &Created| tell_placed(call, agent, created);
    let launched = launch(call, ground, Some(task), request, new, told)?;
    call.tell(&ground.engine);
    let id = launched.id;
    let agent = match detach {
        true => await_begin(ground, id)?,
        false => follow(call, ground, id)?,
    };
    if is_new {
        require_begun(call, ground, &agent, is_own_tree)?;
    }
    // One in its own interface is attached to at once.
    if detach && !agent.status.is_over() && !agent.interactive {
        call.note(&format!(
            "{id} works on it; follow it with: weald attach {id}"
        ));
    }
    Ok(agent)
}

/// The same in the main checkout.
pub fn begin_in_main(
    call: &Call<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
    detach: bool,
) -> Result<Agent, Failure> {
    call.refuse_agent("--no-worktree")?;
    let root = ground.place.root();
    call.warn(&format!(
        "the agent works in {} itself: it can write all of it, its .git with hooks and configuration included; nothing lands, nothing is kept apart",
        root.display()
    ));
    if !detach {
        call.cancel.catch();
    }
    let request = AgentRequest {
        in_main: true,
        goal: Goal::Finish,
        ..request.clone()
    };
    let agent = start_in_main(call, ground, task, &request)?;
    call.tell(&ground.engine);
    match detach {
        true => Ok(ground.engine.agent(agent.id)?),
        false => follow(call, ground, agent.id),
    }
}

/// Errors when an agent never began; a tree that was made for it alone goes.
pub fn require_begun(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    is_own_tree: bool,
) -> Result<(), Failure> {
    let end = agent.end.as_ref();
    let Some(end) = end.filter(|end| end.outcome == Outcome::NotStarted) else {
        return Ok(());
    };
    if let Some(tree) = agent.tree.as_ref().filter(|_| is_own_tree) {
        let request = RemoveRequest {
            reason: Some("no agent could start in it".to_owned()),
            ..RemoveRequest::default()
        };
        // What is in it keeps it, and is told by the board.
        let _ = ground.trees(call)?.remove(Some(tree.as_str()), &request);
    }
    let why = end.why.clone();
    Err(Failure::new("agent_not_started", exit::REFUSED, why)
        .hint("install the program, or name another one after --"))
}

/// Where the work is done: in the tree of the task, or in the tree that the caller is in.
pub fn place_of(call: &Call<'_>, ground: &Ground) -> Result<NewTree, Failure> {
    if !defers(call, ground) {
        return Ok(NewTree::default());
    }
    if ground.place.inside().is_some() {
        let tree = ground.trees(call)?.named(None)?;
        call.note(&format!("in this worktree, {}", tree.name));
        return Ok(NewTree {
            name: Some(tree.name.to_string()),
            ..NewTree::default()
        });
    }
    match is_foreign_tree(call) {
        false => Ok(NewTree::default()),
        true => adopted(call, ground),
    }
}

/// A worktree that another tool made is worked in as it is, where it is.
fn adopted(call: &Call<'_>, ground: &Ground) -> Result<NewTree, Failure> {
    let mut above = call.directory().ancestors();
    let Some(root) = above.find(|above| above.join(".git").is_file()) else {
        return Err(Failure::new(
            "foreign_tree",
            exit::REFUSED,
            "another tool keeps its worktrees here, but this is not one of them; nothing was started",
        )
        .hint("cd to the main checkout, or set WEALD_DEFER_CLAUDE=0 to create a weald worktree"));
    };
    let tree = ground.trees(call)?.adopt(&Adoption {
        path: root.to_owned(),
        ..Adoption::default()
    })?;
    call.note(&format!(
        "works in this worktree, adopted as {}; it is kept after landing",
        tree.name
    ));
    Ok(NewTree {
        name: Some(tree.name.to_string()),
        ..NewTree::default()
    })
}

/// The task that is meant: an id that is known, or a subject of a new one, and whether it is new. A new one is made once
/// `can_start` agrees.
pub fn find_or_add(
    call: &Call<'_>,
    ground: &Ground,
    text: &str,
    new: bool,
    can_start: impl Fn(&str) -> Result<(), Failure>,
) -> Result<(TaskId, bool), Failure> {
    let engine = &ground.engine;
    let add = || -> Result<(TaskId, bool), Failure> {
        can_start(text)?;
        let actor = call.actor(engine)?;
        let task = engine.add_task(
            actor.as_ref(),
            NewTask {
                subject: text.trim().to_owned(),
                ..NewTask::default()
            },
        )?;
        call.note(&format!("Task {}: {}", task.id, task.subject));
        Ok((task.id, true))
    };
    if new {
        return add();
    }
    if text.parse::<TaskId>().is_err() && text.trim().contains(' ') {
        return match odd_part(text) {
            None => add(),
            Some(odd) => Err(Failure::new(
                "bad_id",
                exit::USAGE,
                format!(
                    "{text:?} is not an id, and {odd} is not allowed in the subject of a new task"
                ),
            )
            .hint("with --new a subject may be anything: weald work --new SUBJECT")),
        };
    }
    match find(call, ground, text) {
        Err(failure) if failure.code == ErrorCode::TaskNotFound => {
            let word = text.parse::<Word>().ok();
            let id = word.and_then(|word| word.task_id());
            let fetched = match id {
                Some(id) => tracker::fetch(call, ground, &id)?,
                None => None,
            };
            Ok((fetched.ok_or(failure)?, false))
        }
        found => found.map(|id| (id, false)),
    }
}

/// The task that a word means. One that can't be the id of any is refused as that.
pub fn find(call: &Call<'_>, ground: &Ground, text: &str) -> Result<TaskId, Failure> {
    let Ok(word) = text.parse::<Word>() else {
        return Err(id_of(text).err().unwrap_or_else(Failure::bug));
    };
    let found = ground.task(call, &word);
    match found {
        Err(failure) if failure.code == ErrorCode::TaskNotFound && word.form().is_none() => {
            id_of(text).and(Err(failure))
        }
        found => found,
    }
}

/// The id that somebody wrote.
fn id_of(text: &str) -> Result<TaskId, Failure> {
    text.parse().map_err(|error: TaskIdError| {
        Failure::new("bad_id", exit::USAGE, error.to_string()).hint(
            match text.contains(char::is_whitespace) {
                true => {
                    "give the id of a task: weald task list; to create one: weald task add SUBJECT"
                }
                false => "weald task list; the subject of a new task needs a space in it",
            },
        )
    })
}

/// What of a shell or a path is in words that should be a subject: somebody may have meant something else by it.
fn odd_part(text: &str) -> Option<String> {
    let shell = [";", "`", "$(", "|", "&&", "<", ">"];
    let start = text.chars().next().filter(|first| "-./".contains(*first));
    let control = || text.chars().find(|c| c.is_control());
    let found = shell.into_iter().find(|part| text.contains(part));
    match (start, found) {
        (Some(start), _) => Some(format!("{start:?} at its beginning")),
        (None, Some(part)) => Some(format!("{part:?}")),
        (None, None) => control().map(|control| format!("{control:?}")),
    }
}

/// Whether a caller who is in a tree, of ours or of others, works there. A switch makes trees all the same.
pub fn defers(call: &Call<'_>, ground: &Ground) -> bool {
    let (own, config) = ("WEALD_DEFER_CLAUDE=0", ground.config());
    let switch = call.kill_switch(own, &config.defer_kill_switches);
    switch.is_none()
}

/// A worktree that another system made for its own agents.
pub fn is_foreign_tree(call: &Call<'_>) -> bool {
    let path = call.directory().display().to_string();
    path.contains("/.claude/worktrees/")
        || call.directory().ancestors().any(|ancestor| {
            let name = ancestor.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("jkz-worktree-"))
        })
}
