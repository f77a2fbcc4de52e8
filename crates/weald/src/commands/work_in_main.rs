//! `weald work --no-worktree`: an agent in the main checkout.

use weald_app::supervision::start_in_main;
use weald_app::{AgentRequest, Failure, Ground};
use weald_core::agent::Goal;
use weald_core::id::TaskId;
use weald_sandbox::catch_interrupts;

use super::work::answer;
use crate::context::Context;
use crate::following::follow;

/// Starts it, follows it and tells what came out.
pub fn begin(
    context: &Context<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
    detach: bool,
) -> Result<u8, Failure> {
    context.refuse_agent("--no-worktree")?;
    let root = ground.place.root();
    context.warn(&format!(
        "the agent works in {} itself: it can write all of it, its .git with hooks and configuration included; nothing lands, nothing is kept apart",
        root.display()
    ));
    if !detach {
        catch_interrupts();
    }
    let request = AgentRequest {
        in_main: true,
        goal: Goal::Finish,
        ..request.clone()
    };
    let agent = start_in_main(context, ground, task, &request)?;
    context.tell(&ground.engine);
    if detach {
        return answer(context, ground, &ground.engine.agent(agent.id)?);
    }
    let agent = follow(context, ground, agent.id)?;
    answer(context, ground, &agent)
}
