//! What a refusal says to do, for somebody who has tools and no command line.
//!
//! Commands hint at commands. Where a tool does the same, its name stands instead; what no tool does stays as it is, for the
//! person that the agent works for.

use crate::broker::Fault;

/// Commands, and the tools that do the same. Longer ones come before those that they begin with.
const TOOLS: [(&str, &str); 38] = [
    ("weald task add", "task_create"),
    ("weald task list", "task_list"),
    ("weald task ready", "task_list with status ready"),
    ("weald task show", "task_get"),
    ("weald task edit", "task_update"),
    ("weald task claim", "task_claim"),
    ("weald task release", "task_update with action release:"),
    ("weald task reopen", "task_update with action reopen:"),
    ("weald task done", "task_complete"),
    ("weald task fail", "task_update with action fail:"),
    ("weald task bind", "task_bind_worktree"),
    ("weald new", "worktree_create"),
    ("weald ensure", "worktree_create"),
    ("weald list --all", "worktree_list"),
    ("weald list", "worktree_list"),
    ("weald show", "worktree_status"),
    ("weald status", "worktree_status"),
    ("weald diff", "worktree_diff"),
    ("weald keep", "worktree_keep"),
    ("weald trash restore", "worktree_restore"),
    ("weald events", "worktree_events"),
    ("weald land", "land"),
    ("weald queue status --all", "land_status with all"),
    ("weald queue status", "land_status"),
    ("weald queue", "land_status"),
    ("weald conflicts", "conflicts"),
    ("weald agent list --all", "check_agents with all"),
    ("weald agent list", "check_agents"),
    ("weald agent pulse", "agent_pulse"),
    ("weald agent stop", "agent_stop"),
    ("weald agent steer", "agent_steer"),
    ("weald agent wait", "wait_agents"),
    ("weald msg inbox", "message_inbox"),
    ("weald msg ask", "ask"),
    ("weald msg send", "message_send"),
    ("weald msg reply", "reply"),
    ("--session", "a server started with --session"),
    ("go on with --force", "go on with force"),
];

/// The same of removals.
const REMOVE: [(&str, &str); 2] = [("weald rm", "worktree_remove"), ("--discard", "with force")];

/// The same refusal in words for tools. Nobody is told to use the token of somebody else's claim.
pub fn for_tools(mut fault: Fault) -> Fault {
    if fault.code == "token_required" {
        let holder = fault.details["holder"].as_str().unwrap_or("somebody else");
        let hint = format!(
            "only {holder} can do that; ask with message_send, or take another task with task_claim"
        );
        fault.hint = Some(hint);
    }
    // What only the person may do stays a command.
    if fault.code != "no_mandate" {
        fault.hint = fault.hint.map(|hint| in_tools(&hint));
    }
    fault
}

fn in_tools(hint: &str) -> String {
    // What needs --force is a person's, and stays a command.
    let is_tools = |part: &str| part.contains("weald rm") && !part.contains("--force");
    let removes = hint.split(';').any(is_tools);
    let remove = REMOVE.iter().filter(|_| removes);
    let words = TOOLS.iter().chain(remove);
    words.fold(hint.to_owned(), |text, (from, to)| {
        replaced(&text, from, to)
    })
}

/// Every place where these words stand as words.
fn replaced(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        let goes_on = rest.starts_with(|next: char| next.is_alphanumeric() || "-_=".contains(next));
        told.push_str(if goes_on { from } else { to });
        told.push_str(rest);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_tools_where_there_are_some() {
        for (hint, told) in [
            ("weald keep a", "worktree_keep a"),
            (
                "weald land a; weald rm a --discard",
                "land a; worktree_remove a with force",
            ),
            (
                "if bob is gone: weald task release 1",
                "if bob is gone: task_update with action release: 1",
            ),
            ("weald list --all", "worktree_list"),
            ("weald rm a --force", "weald rm a --force"),
            (
                "weald keep a, or weald rm a; or go on with --force",
                "worktree_keep a, or worktree_remove a; or go on with force",
            ),
            (
                "if you are bob: --session bob",
                "if you are bob: a server started with --session bob",
            ),
            ("weald queue status --all", "land_status with all"),
            ("weald newer", "weald newer"),
            ("weald doctor --fix", "weald doctor --fix"),
            ("look at `weald events`", "look at `worktree_events`"),
        ] {
            assert_eq!(in_tools(hint), told);
        }
    }

    #[test]
    fn nobody_is_sent_after_the_token_of_another_claim() {
        let fault = Fault::new("token_required", 1, "held").hint("add --token with yours");
        assert!(!for_tools(fault).hint.unwrap().contains("--token"));
    }
}
