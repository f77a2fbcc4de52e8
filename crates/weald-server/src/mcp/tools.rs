//! All tools, in the order in which they are listed.

mod agent_diff;
mod agent_pause;
mod agent_pulse;
mod agent_restart;
mod agent_resume;
mod agent_spawn;
mod agent_steer;
mod agent_stop;
mod ask;
mod check_agents;
mod clean_preview;
mod conflicts;
mod land;
mod land_status;
mod message_inbox;
mod message_send;
mod race;
mod race_drop;
mod race_pick;
mod race_show;
mod reply;
mod request_plan;
mod request_shutdown;
mod rescue;
mod review_plan;
mod spawn_teammate;
mod submit_plan;
mod task_bind_worktree;
mod task_claim;
mod task_complete;
mod task_create;
mod task_fail;
mod task_get;
mod task_list;
mod task_update;
mod trash_list;
mod wait_agents;
mod worktree_create;
mod worktree_diff;
mod worktree_events;
mod worktree_keep;
mod worktree_list;
mod worktree_remove;
mod worktree_restore;
mod worktree_run;
mod worktree_status;
mod worktree_sync;

use rmcp::model::JsonObject;

use super::answers;
use super::arguments::{TaskRef, age, parsed, shell, urgency, waiting, word, words};
use super::child::Lasts;
use super::classroom::{self, CLASSROOM};
use super::tool::{Audience, Effect, Entry, Tool};
use super::weald::Call;
use crate::broker::Fault;

/// Every tool that a caller may have, also under the names of another system if `aliases` is one.
pub fn all(audience: Audience, aliases: &str) -> Vec<Entry> {
    let mut every = vec![
        Entry::of::<task_create::TaskCreate>(),
        Entry::of::<task_list::TaskList>(),
        Entry::of::<task_get::TaskGet>(),
        Entry::of::<task_update::TaskUpdate>(),
        Entry::of::<task_claim::TaskClaim>(),
        Entry::of::<task_complete::TaskComplete>(),
        Entry::of::<task_fail::TaskFail>(),
        Entry::of::<task_bind_worktree::TaskBindWorktree>(),
        Entry::of::<worktree_create::WorktreeCreate>(),
        Entry::of::<worktree_list::WorktreeList>(),
        Entry::of::<worktree_status::WorktreeStatus>(),
        Entry::of::<worktree_run::WorktreeRun>(),
        Entry::of::<worktree_diff::WorktreeDiff>(),
        Entry::of::<worktree_sync::WorktreeSync>(),
        Entry::of::<worktree_keep::WorktreeKeep>(),
        Entry::of::<worktree_remove::WorktreeRemove>(),
        Entry::of::<worktree_restore::WorktreeRestore>(),
        Entry::of::<trash_list::TrashList>(),
        Entry::of::<clean_preview::CleanPreview>(),
        Entry::of::<worktree_events::WorktreeEvents>(),
        Entry::of::<land::Land>(),
        Entry::of::<land_status::LandStatus>(),
        Entry::of::<conflicts::Conflicts>(),
    ];
    every.extend(team());
    if aliases == CLASSROOM {
        let named = classroom::named(&every);
        every.extend(named.into_iter().chain(plans()));
    }
    let has = |tool: &Entry| tool.audience <= audience;
    every.into_iter().filter(has).collect()
}

/// Those who work together.
fn team() -> [Entry; 19] {
    [
        Entry::of::<agent_spawn::AgentSpawn>(),
        Entry::of::<check_agents::CheckAgents>(),
        Entry::of::<agent_pulse::AgentPulse>(),
        Entry::of::<agent_diff::AgentDiff>(),
        Entry::of::<agent_steer::AgentSteer>(),
        Entry::of::<agent_pause::AgentPause>(),
        Entry::of::<agent_resume::AgentResume>(),
        Entry::of::<agent_stop::AgentStop>(),
        Entry::of::<agent_restart::AgentRestart>(),
        Entry::of::<rescue::Rescue>(),
        Entry::of::<race::Race>(),
        Entry::of::<race_show::RaceShow>(),
        Entry::of::<race_pick::RacePick>(),
        Entry::of::<race_drop::RaceDrop>(),
        Entry::of::<wait_agents::WaitAgents>(),
        Entry::of::<message_send::MessageSend>(),
        Entry::of::<message_inbox::MessageInbox>(),
        Entry::of::<ask::Ask>(),
        Entry::of::<reply::Reply>(),
    ]
}

/// What the classroom has and nobody else.
fn plans() -> [Entry; 5] {
    [
        Entry::of::<spawn_teammate::SpawnTeammate>(),
        Entry::of::<request_shutdown::RequestShutdown>(),
        Entry::of::<request_plan::RequestPlan>(),
        Entry::of::<review_plan::ReviewPlan>(),
        Entry::of::<submit_plan::SubmitPlan>(),
    ]
}
