//! Starting an agent: claimed, placed in its tree, and handed to a supervisor that outlives this process.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::{AgentRequest, Agents, CreateOutcome, Created, NewTree, agent_folder, open_own};
use weald_core::agent::{Agent, AgentId, AgentStatus, End, Goal, Outcome};
use weald_core::agent_rules::AgentInput;
use weald_core::id::TaskId;
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;
use weald_terminal::size_of;

use crate::Failure;
use crate::exit;
use crate::tracker;
use crate::{Call, Ground};

/// Where a supervisor says what it has to say, in the agent's folder.
pub const SUPERVISOR_LOG: &str = "supervisor.log";

/// How long a supervisor has to say that it is there.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts an agent on a task, or on the next one that is ready. When this returns without an error its supervisor is at
/// work. `placed` is called between: the tree is there.
pub fn launch(
    call: &Call<'_>,
    ground: &Ground,
    task: Option<&TaskId>,
    request: &AgentRequest,
    new: NewTree,
    placed: impl FnOnce(&Agent, &Created),
) -> Result<Agent, Failure> {
    let trees = ground.trees(call)?;
    Agents::new(&trees).require_driver(request)?;
    let before = match task {
        Some(id) => Some(ground.engine.task(id)?.task),
        None => None,
    };
    if let Some(id) = task {
        Agents::new(&trees).require_tree_for(id, &new)?;
    }
    let agent = Agents::new(&trees).start_agent(task, request)?;
    let is_new = |task: &Task| task.worktree.is_none() && new.name.is_none();
    if before.as_ref().is_some_and(is_new) {
        call.begins("Creating isolated worktree...");
    }
    let stage = call.stage("giving the agent its worktree");
    let begun = Agents::new(&trees)
        .place_agent(&agent, new)
        .map_err(Failure::from);
    drop(stage);
    let begun = begun.and_then(|(agent, created)| {
        placed(&agent, &created);
        supervise(call, ground, &agent)?;
        Ok(agent)
    });
    call.refill_pool(&trees, &ground.place.root());
    let begun =
        begun.inspect_err(|failure| give_back(ground, &agent, before.as_ref(), &failure.message));
    tracker::start_telling(call, ground);
    begun
}

/// Says where an agent works.
pub fn tell_placed(call: &Call<'_>, agent: &Agent, created: &Created) {
    let tree = &created.tree;
    let how = match created.outcome {
        CreateOutcome::Created => "Worktree created",
        CreateOutcome::Recreated => "Worktree recreated",
        _ => "Worktree",
    };
    for note in &created.notes {
        call.warn(note);
    }
    call.note(&format!("✓ {how}: {}", tree.path.display()));
    call.note(&format!("  Branch: {}", tree.branch));
    call.note(&format!(
        "  Agent {} ({}) works on task {}",
        agent.id, agent.driver, agent.task
    ));
}

/// Waits until an agent's command runs or the agent has ended, and no longer than a supervisor has to answer.
pub fn await_begin(ground: &Ground, id: AgentId) -> Result<Agent, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let agent = ground.engine.agent(id)?;
        if agent.status != AgentStatus::Starting || Instant::now() >= deadline {
            return Ok(agent);
        }
        if ground.engine.is_orphaned(&agent) {
            ground.engine.reap_agents()?;
            continue;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts an agent in the main checkout.
pub fn start_in_main(
    call: &Call<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
) -> Result<Agent, Failure> {
    let agent = Agents::new(&ground.trees(call)?).start_agent(Some(task), request)?;
    let begun = supervise(call, ground, &agent);
    begun.inspect_err(|failure| give_back(ground, &agent, None, &failure.message))?;
    Ok(agent)
}

/// Starts an entry of a race in its tree, under the race's claim.
pub fn enter(
    call: &Call<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
    created: &Created,
) -> Result<Agent, Failure> {
    let trees = ground.trees(call)?;
    let agent = Agents::new(&trees).start_agent(Some(task), request)?;
    let begun = Agents::new(&trees)
        .place_entry(&agent, created)
        .map_err(Failure::from);
    let begun = begun.and_then(|agent| supervise(call, ground, &agent).map(|()| agent));
    begun.inspect_err(|failure| give_back(ground, &agent, None, &failure.message))
}

/// An agent that did not begin: its record says why, and its task is as it was before, unless it is one of several on it.
fn give_back(ground: &Ground, agent: &Agent, before: Option<&Task>, why: &str) {
    let engine = &ground.engine;
    let Ok(current) = engine.agent(agent.id) else {
        return;
    };
    if current.status.is_over() {
        return;
    }
    let at = current.updated_at;
    let end = AgentInput::End(End {
        outcome: Outcome::NotStarted,
        code: None,
        why: why.to_owned(),
        landing: None,
        at,
    });
    // What can't be recorded now is noticed by the next command: this process is gone by then.
    if engine.decide_agent(agent.id, end).is_ok() && agent.goal != Goal::Stay {
        let release = TaskInput::Release {
            token: Some(agent.token),
        };
        let _ = engine.move_task(Some(&agent.session), &agent.task, release);
        if let Some(before) = before {
            put_back(ground, agent, before);
        }
    }
    let _ = engine.leave_session(agent);
}

/// A task that was opened again for an agent, and was given back by it, is closed as it was before. If somebody took it
/// meanwhile it is theirs.
pub fn put_back(ground: &Ground, agent: &Agent, before: &Task) {
    let (engine, me) = (&ground.engine, &agent.session);
    let report = before.report.clone();
    if before.status == TaskStatus::Blocked {
        let reason = report.unwrap_or_default();
        let block = TaskInput::Block { reason };
        let _ = engine.move_task(Some(me), &before.id, block);
        return;
    }
    let was_waiting = matches!(before.status, TaskStatus::Failed | TaskStatus::NeedsMerge);
    if !was_waiting && before.parked.is_none() {
        return;
    }
    let Ok(claimed) = engine.claim(me, Some(&before.id), None) else {
        return;
    };
    let token = Some(claimed.task.token);
    let input = match before.status {
        TaskStatus::Failed => TaskInput::Fail { token, report },
        TaskStatus::NeedsMerge => TaskInput::NeedMerge,
        _ => TaskInput::Park {
            token,
            reason: before.parked.clone().unwrap_or_default(),
        },
    };
    let _ = engine.move_task(Some(me), &before.id, input);
}

/// Starts the supervisor, and waits until it says that it is there.
pub(super) fn supervise(call: &Call<'_>, ground: &Ground, agent: &Agent) -> Result<(), Failure> {
    let folder = agent_folder(&ground.place, agent.id);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&folder)?;
    let mut child = spawn(call, ground, agent, &folder)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Asked first: one that was there and is done already said so before it ended.
        let ended = child.try_wait()?;
        let current = ground.engine.agent(agent.id)?;
        if current.supervised {
            // A worker lives on, and leaves no dead children about.
            std::thread::spawn(move || child.wait());
            return Ok(());
        }
        if let Some(status) = ended {
            let said = std::fs::read_to_string(folder.join(SUPERVISOR_LOG)).unwrap_or_default();
            let said = said.trim().lines().last().unwrap_or_default().to_owned();
            return Err(Failure::new(
                "agent_not_started",
                exit::REFUSED,
                format!(
                    "the supervisor of {} exited at once ({status}): {said}",
                    agent.id
                ),
            ));
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            return Err(Failure::new(
                "agent_not_started",
                exit::REFUSED,
                format!("the supervisor of {} did not answer", agent.id),
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn spawn(call: &Call<'_>, ground: &Ground, agent: &Agent, folder: &Path) -> Result<Child, Failure> {
    #[expect(
        clippy::disallowed_methods,
        reason = "weald itself, to go on as the agent's supervisor"
    )]
    let mut command = std::process::Command::new(call.helper()?);
    let said = log(&folder.join(SUPERVISOR_LOG))?;
    // It begins in the size of the terminal that it will be seen on, if it was started from one.
    let size = size_of(std::io::stdout()).ok();
    let terminal = size.filter(|_| agent.interactive);
    let terminal = terminal.map(|size| format!("--terminal={}x{}", size.columns, size.rows));
    command
        .args(call.settings())
        .args(["supervise-agent", &agent.id.to_string()])
        .args(terminal)
        .current_dir(ground.place.root())
        .env("WEALD_SESSION", agent.session.as_str())
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said);
    weald_sandbox::keep_descriptors()?;
    Ok(command.spawn()?)
}

fn log(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    open_own(options.create(true).append(true).mode(0o600), path)
}
