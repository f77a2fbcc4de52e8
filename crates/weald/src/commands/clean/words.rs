//! What keeps a tree, in words, and the command that helps.

use weald_core::clean::Blocker;

/// What it means for the user.
pub fn meaning(blocker: Blocker) -> &'static str {
    match blocker {
        Blocker::MissingPath => "its directory is gone",
        Blocker::NotGitWorktree => "something else is where it was",
        Blocker::UnsafePath => "outside the directories of this repository's worktrees",
        Blocker::Conflicted => "a conflict, a merge or a rebase is not over",
        Blocker::BaseUnknown => "its first commit or its target is not there",
        Blocker::DiffError => "it could not be inspected",
        Blocker::Dirty => "uncommitted changes",
        Blocker::Shared => "another one has its path or branch",
        Blocker::Referenced => "a session, a landing or a tree refers to it",
        Blocker::TooRecent => "used a moment ago",
        Blocker::AgeUnknown => "nobody can tell when it was used",
        Blocker::BranchNotMerged => "commits that its target lacks",
        Blocker::BranchSafetyUnknown => "nobody can tell whether its target has its commits",
        Blocker::Locked => "somebody locked it",
        Blocker::Active => "something is going on in it, or may be",
        Blocker::Kept => "a person keeps it",
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
