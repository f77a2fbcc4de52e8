//! The tool names of the classroom profile: the same tools, under the names that people of that system know.
//!
//! What has no tool of its own among the others (plans, shutdowns, a teammate by its prompt) has a file in `tools/`.

use super::tool::Entry;

/// The value of `mcp.aliases` that wants these names.
pub const CLASSROOM: &str = "classroom";

/// The name there, and the tool here.
const NAMES: [(&str, &str); 11] = [
    ("create_worktree", "worktree_create"),
    ("bind_task_to_worktree", "task_bind_worktree"),
    ("remove_worktree", "worktree_remove"),
    ("keep_worktree", "worktree_keep"),
    ("create_task", "task_create"),
    ("list_tasks", "task_list"),
    ("get_task", "task_get"),
    ("claim_task", "task_claim"),
    ("complete_task", "task_complete"),
    ("send_message", "message_send"),
    ("check_inbox", "message_inbox"),
];

/// The tools of `all` that have a name there, under it.
pub fn named(all: &[Entry]) -> Vec<Entry> {
    let entry = |(there, here): &(&'static str, &str)| {
        let found = all.iter().find(|tool| tool.described.name == *here)?;
        let mut described = found.described.clone();
        described.name = (*there).into();
        let words = described.description.unwrap_or_default();
        described.description = Some(format!("Same as {here}. {words}").into());
        Some(Entry {
            described,
            audience: found.audience,
            call: found.call,
        })
    };
    NAMES.iter().filter_map(entry).collect()
}
