//! `weald task claim`

use std::io::{self, Write};

use clap::Args;
use serde_json::Value;
use weald_app::{Claimed, Engine, Failure, NewTree, TaskError, exit};
use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::task::{Lease, Task as Record};
use weald_core::task_rules::TaskInput;
use weald_core::{SignedDuration, Timestamp};
use weald_server::broker::Ask;

use super::super::inside::{Inside, field};
use super::print_line;
use crate::cli::{SessionArg, duration};
use crate::completion;
use crate::context::Context;
use crate::ui::{Fields, Out, left};

/// Claim a task, or the next ready one
///
/// Prints the token that every later step needs.
#[derive(Args)]
pub struct Claim {
    /// The task (default: the next ready one by priority, then age)
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Option<TaskId>,
    /// Time before others may take over (default: lease.ttl)
    #[arg(long, value_name = "15m", value_parser = duration)]
    ttl: Option<SignedDuration>,
    /// Also create its worktree and make it your place of work
    #[arg(long)]
    with_tree: bool,
    #[command(flatten)]
    session: SessionArg,
}

impl Claim {
    /// Whether no worktree is made with it.
    pub fn needs_only_the_store(&self) -> bool {
        !self.with_tree
    }

    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.with_tree {
            return self.run_with_tree(context);
        }
        let engine = context.engine()?;
        let session = context.session(&engine, self.session.session.as_ref())?;
        let claimed = engine.claim(&session, self.id.as_ref(), self.ttl)?;
        context.tell(&engine);
        let lease = &claimed.lease;
        let place = engine.place_of_task(&claimed.task)?;
        context.ui.answer(
            || {
                Fields::new()
                    .with("task", &claimed.task)
                    .with("lease", lease)
                    .with_some("path", place.as_ref())
            },
            |out| {
                print_claim(out, &claimed.task, lease, context.now())?;
                match &place {
                    Some(path) => writeln!(out, "work in {}", path.display()),
                    None => Ok(()),
                }
            },
        )
    }

    /// The same with the task's tree. Without a tree there is no claim, either.
    fn run_with_tree(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let engine = &ground.engine;
        let session = context.session(engine, self.session.session.as_ref())?;
        let own = self.id.as_ref();
        let own = own.and_then(|id| own_claim(engine, &session, id));
        let is_own = own.is_some();
        let claimed = match own {
            Some(own) => renewed(engine, &session, own, self.ttl)?,
            None => engine.claim_undeclared(&session, self.id.as_ref(), self.ttl)?,
        };
        let (id, lease) = (&claimed.task.id, &claimed.lease);
        let trees = ground.trees(context)?;
        let progress = context.stage("creating the worktree");
        let wanted = NewTree {
            task: Some(id.clone()),
            ..NewTree::default()
        };
        let created = match trees.ensure(&wanted) {
            Ok(created) => created,
            Err(error) if is_own => return Err(error.into()),
            Err(error) => {
                let token = Some(lease.token);
                let released = engine.move_task(Some(&session), id, TaskInput::Release { token });
                if let Err(error) = released {
                    context.warn(&format!("task {id} stays claimed: {error}"));
                }
                return Err(error.into());
            }
        };
        drop(progress);
        engine.lead_to(&session, id)?;
        context.tell(engine);
        let task = engine.task(id)?.task;
        for note in &created.notes {
            context.warn(note);
        }
        context.ui.answer(
            || {
                Fields::new()
                    .with("task", &task)
                    .with("lease", lease)
                    .with("tree", &trees.view(created.tree.clone()))
                    .with("outcome", &created.outcome)
            },
            |out| {
                print_claim(out, &task, lease, context.now())?;
                writeln!(out, "work in {}", created.tree.path.display())
            },
        )?;
        context.refill_pool(&trees, &ground.place.root());
        Ok(exit::DONE)
    }

    /// The same from inside a tree: the run's own claim, again.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let session = self.session.session.as_ref();
        let mut reply = inside.ask_as(session, None, Ask::TaskClaim { id: self.id })?;
        if self.with_tree {
            let looked = inside.ask(Ask::Status { tree: None })?;
            let tree: Value = field(&looked, "tree")?;
            reply = reply.with("tree", &tree).with("outcome", "reused");
        }
        let (task, lease): (Record, Lease) = (field(&reply, "task")?, field(&reply, "lease")?);
        let now = inside.context.now();
        inside.print(&reply, |out| print_claim(out, &task, &lease, now))
    }
}

/// The claim that a session has on a task already.
fn own_claim(engine: &Engine, session: &SessionName, id: &TaskId) -> Option<Claimed> {
    let task = engine.task(id).ok()?.task;
    let lease = task
        .lease
        .clone()
        .filter(|lease| lease.session == *session)?;
    Some(Claimed { task, lease })
}

/// The same claim, held from now on.
fn renewed(
    engine: &Engine,
    session: &SessionName,
    own: Claimed,
    ttl: Option<SignedDuration>,
) -> Result<Claimed, TaskError> {
    let held = engine.renew(Some(session), &own.task.id, Some(own.lease.token), ttl)?;
    Ok(Claimed {
        lease: held.task.lease.clone().unwrap_or(own.lease),
        task: held.task,
    })
}

fn print_claim(out: &mut Out, task: &Record, lease: &Lease, now: Timestamp) -> io::Result<()> {
    print_line(out, task)?;
    writeln!(
        out,
        "claimed by {} with token {} ({})",
        lease.session,
        lease.token,
        left(lease.expires_at, now)
    )?;
    writeln!(
        out,
        "finish it: weald task done {} --token {}",
        task.id, lease.token
    )
}
