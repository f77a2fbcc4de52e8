//! Errors of what a tree would start from, or be made at.

use crate::{Holder, TreeError, quoted};
use serde_json::json;

use super::Failure;
use crate::exit;

/// What a tree would have started from.
pub(super) fn start(error: TreeError, message: String) -> Failure {
    let refused = |code| Failure::new(code, exit::REFUSED, message.clone());
    match error {
        TreeError::Exists { name, path } => refused("tree_exists")
            .hint(format!("weald ensure {name}, or choose another name"))
            .details(json!({"tree": name, "path": path})),
        TreeError::BranchExists {
            branch,
            name,
            task,
            commits,
        } => {
            let which = task.map_or(name.to_string(), |id| format!("--task {id}"));
            refused("branch_exists")
                .hint(format!(
                    "to keep its commits: weald new {which} --on-branch-exists reuse; to start without them: weald new {which} --on-branch-exists recreate"
                ))
                .details(json!({"branch": branch, "commits": commits}))
        }
        TreeError::NoBranch { branch, nearest } => {
            let list = "git branch --all";
            Failure::new("no_branch", exit::NOT_FOUND, message)
                .hint(match &nearest {
                    Some(near) => format!("did you mean {near}? to list them: {list}"),
                    None => format!("to list them: {list}; for a new one: weald new NAME"),
                })
                .details(json!({"branch": branch, "nearest": nearest}))
        }
        TreeError::BranchOnRemotes { branch, upstreams } => refused("ambiguous_name")
            .hint(format!("weald new --branch {}", upstreams[0]))
            .details(json!({"branch": branch, "upstreams": upstreams})),
        TreeError::BranchIsHere { branch, upstream } => refused("branch_exists")
            .hint(format!("weald new --branch {branch}"))
            .details(json!({"branch": branch, "upstream": upstream})),
        TreeError::BranchIsTarget { branch } => refused("target_branch")
            .hint(format!("to start from it: weald new NAME --base {branch}"))
            .details(json!({"branch": branch})),
        TreeError::BranchInUse { branch, by } => {
            let leave = format!("git -C {} switch --detach", quoted(&by.path));
            refused("branch_in_use")
                .hint(holder_hint(&by, &leave))
                .details(json!({"branch": branch, "path": by.path}))
        }
        TreeError::BranchClash { branch, existing } => refused("branch_clash")
            .hint(format!(
                "git branch -m {existing} OTHER, or set tree.branch"
            ))
            .details(json!({"branch": branch, "existing": existing})),
        TreeError::Occupied { by } => {
            let away = format!(
                "move {} out of the way, or choose another name",
                by.path.display()
            );
            refused("path_occupied")
                .hint(holder_hint(&by, &away))
                .details(json!({"path": by.path}))
        }
        TreeError::NoTarget => {
            refused("no_target").hint("git switch -c NAME, or: weald config set target BRANCH")
        }
        TreeError::TargetGone { name, target, base } => refused("no_target")
            .hint(format!("git branch {target} {base}, then try again"))
            .details(json!({"tree": name, "target": target})),
        TreeError::NoCommit => refused("no_commit").hint("git commit --allow-empty -m first"),
        TreeError::UnknownTarget { target } => {
            Failure::new("unknown_target", exit::NOT_FOUND, message)
                .hint("git branch --list")
                .details(json!({"target": target}))
        }
        TreeError::UnknownBase { base } => Failure::new("unknown_base", exit::NOT_FOUND, message)
            .hint("git branch --all, or git fetch first")
            .details(json!({"base": base})),
        TreeError::NotFetched { base, .. } => refused("not_fetched")
            .hint("nothing was created; to start from the local copy: --set tree.fetch=try")
            .details(json!({"base": base})),
        TreeError::DirtyMain { count } => refused("main_dirty")
            .hint("commit or stash them, or --set tree.dirty_main=warn")
            .details(json!({"count": count})),
        _ => refused("tree_error"),
    }
}

/// A worktree that another tool made can be taken over for the task, and one that was can be bound to it; anything else
/// is in the way.
fn holder_hint(by: &Holder, otherwise: &str) -> String {
    match (&by.tree, &by.bound, &by.task) {
        (Some(tree), None, Some(task)) => format!("weald task bind {task} {tree}"),
        (Some(tree), Some(bound), _) => {
            format!("it belongs to task {bound}: weald show {tree}")
        }
        (Some(tree), None, None) => format!("weald ensure {tree}"),
        (None, _, task) if by.path.join(".git").is_file() => {
            let task = task.as_ref().map(|task| format!(" --task {task}"));
            format!(
                "weald adopt {}{}",
                quoted(&by.path),
                task.unwrap_or_default()
            )
        }
        _ => otherwise.to_owned(),
    }
}
