//! `weald session end`

use std::io::Write;

use clap::Args;
use weald_app::{Failure, LockAtEnd, Upkeep};

use super::{Which, print_line};
use crate::context::Context;
use crate::ui::Fields;

/// End a session and release its claims
///
/// Its note is kept. The lock of its worktree is released if the shell is in that worktree, the task is completed or
/// cancelled, and the target has all of its work; otherwise the lock stays and the answer gives the reason.
#[derive(Args)]
pub struct End {
    #[command(flatten)]
    which: Which,
}

/// A lock in one line.
pub fn told_lock(lock: &LockAtEnd) -> String {
    let why: Vec<_> = lock.why.iter().map(ToString::to_string).collect();
    match lock.unlocked {
        true => format!("unlocked: {}", lock.tree),
        false => format!(
            "{0} stays locked: {1} (to unlock it: weald unlock {0})",
            lock.tree,
            why.join("; ")
        ),
    }
}

impl End {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let engine = &ground.engine;
        let name = self.which.resolve(context, engine)?;
        let (view, released) = engine.end(&name)?;
        let locks = Upkeep::new(&ground.trees(context)?).release_on_end(Some(&name))?;
        context.tell(engine);
        let now = context.now();
        context.ui.answer(
            || {
                Fields::new()
                    .with("session", &view)
                    .with("released", &released)
                    .with("locks", &locks)
            },
            |out| {
                print_line(out, &view, now)?;
                for id in &released {
                    writeln!(out, "released: {id}")?;
                }
                locks
                    .iter()
                    .try_for_each(|lock| writeln!(out, "{}", told_lock(lock)))
            },
        )
    }
}
