//! What keeps a tree, in words, and the command that helps.

use weald_core::clean::Blocker;

/// What it means for the user.
pub fn meaning(blocker: Blocker) -> &'static str {
    match blocker {
        Blocker::MissingPath => "its directory is gone",
        Blocker::NotGitWorktree => "something else is where it was",
        Blocker::UnsafePath => "outside the directories of this repository's worktrees",
        Blocker::Conflicted => "a conflict, a merge or a rebase is in progress",
        Blocker::BaseUnknown => "its first commit or its target is missing",
        Blocker::DiffError => "it could not be inspected",
        Blocker::Dirty => "uncommitted changes",
        Blocker::Shared => "another worktree has its path or branch",
        Blocker::Referenced => "a session, a landing or a worktree refers to it",
        Blocker::TooRecent => "used a moment ago",
        Blocker::AgeUnknown => "it is unknown when it was last used",
        Blocker::BranchNotMerged => "commits that its target lacks",
        Blocker::BranchSafetyUnknown => "it is unknown whether its target has its commits",
        Blocker::Locked => "it is locked",
        Blocker::Active => "something is running in it, or may be",
        Blocker::Kept => "it is marked as kept",
        Blocker::Cwd => "you are in it",
        Blocker::NotDone => "its work has not landed, or its task is still open",
    }
}

/// What helps, for those that come up every day; `name` is a tree.
pub fn help(blocker: Blocker, name: &str) -> Option<String> {
    Some(match blocker {
        Blocker::MissingPath => format!("weald ensure {name}, or weald rm {name}"),
        Blocker::NotGitWorktree | Blocker::DiffError | Blocker::AgeUnknown => {
            "weald doctor".to_owned()
        }
        Blocker::Dirty => format!("commit them, or weald rm {name} --discard"),
        Blocker::TooRecent => "--min-age 0".to_owned(),
        Blocker::BranchNotMerged => format!("weald land {name}"),
        Blocker::Locked => format!("weald unlock {name}"),
        Blocker::Kept => format!("weald rm {name}"),
        Blocker::NotDone => format!("weald land {name}, or weald rm {name}"),
        _ => return None,
    })
}
