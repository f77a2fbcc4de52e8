//! `weald agent spawn`

use clap::Args;
use weald_app::supervision::{
    await_begin, can_start, find_or_add, launch, place_of, require_begun, tell_placed, withdraw,
};
use weald_app::{AgentRequest, Agents, Failure, Ground, exit};
use weald_core::agent::Stage;

use super::answer;
use crate::commands::resume;
use crate::commands::work::How;
use crate::completion;
use crate::context::Context;

/// Start an agent on a task in the background
///
/// Like `weald work --detach`, returns as soon as the agent's supervisor is running. Refused while finished tasks still have
/// worktrees that need a decision: land, keep or remove.
#[derive(Args)]
pub struct Spawn {
    /// Task ID, or the subject of a new task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    #[command(flatten)]
    how: How,
    /// Start even if finished tasks still have worktrees
    #[arg(long)]
    force: bool,
}

impl Spawn {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        if !self.force {
            refuse_abandoned(&ground)?;
        }
        let new = place_of(context, &ground)?;
        let request = self.how.request(&ground);
        Agents::new(&ground.trees(context)?).require_driver(&request)?;
        let can_start = |subject: &str| can_start(context, &ground, subject, &request, &new);
        let (task, is_new) = find_or_add(context, &ground, &self.task, false, can_start)?;
        let found = Agents::new(&ground.trees(context)?).diagnose(&task)?;
        let is_plain = ground.engine.stages(&task)?.is_empty();
        let request = match is_plain && resume::was_begun(&found) {
            true => {
                resume::refuse_undecided(&ground, &found)?;
                resume::tell_again(context, &found);
                let continued = resume::continued(context, &ground, &found, &self.how)?;
                match self.how.command.is_empty() {
                    true => continued,
                    false => AgentRequest {
                        begin_at: Stage::Run,
                        ..continued
                    },
                }
            }
            false => request,
        };
        let launched = launch(
            context,
            &ground,
            Some(&task),
            &request,
            new.clone(),
            |agent, created| tell_placed(context, agent, created),
        );
        let begun = launched.and_then(|launched| {
            let agent = await_begin(&ground, launched.id)?;
            let is_own_tree = is_new && new.name.is_none();
            require_begun(context, &ground, &agent, is_own_tree)?;
            Ok(agent)
        });
        let begun = begun.inspect_err(|failure| {
            if is_new {
                withdraw(context, &ground, &task, failure);
            }
        })?;
        let id = begun.id;
        let told = format!("works on task {task}; follow it with: weald agent attach {id}");
        answer(context, &ground, id, &told)
    }
}

/// Trees of finished tasks pile up unless somebody decides on them.
fn refuse_abandoned(ground: &Ground) -> Result<(), Failure> {
    let abandoned = ground.engine.abandoned_trees()?;
    let Some((tree, _)) = abandoned.first() else {
        return Ok(());
    };
    let lines: Vec<_> = abandoned
        .iter()
        .map(|(tree, task)| format!("\n  {} (task {}, {})", tree.name, task.id, task.status))
        .collect();
    let names: Vec<_> = abandoned.iter().map(|(tree, _)| &tree.name).collect();
    Err(Failure::new(
        "abandoned_trees",
        exit::REFUSED,
        format!(
            "finished tasks still have worktrees:{}",
            lines.concat()
        ),
    )
    .hint(format!(
        "decide on each: weald land {0}, weald keep {0}, or weald rm {0}; or run this again with --force",
        tree.name
    ))
    .details(serde_json::json!({"trees": names})))
}
