//! Every refusal of a landing on one page: its code, its message, its hint, its paths.
//!
//! Code decides by the variant. The words become a [`Reason`] where they are stored or printed.

use std::fmt;
use std::path::PathBuf;

use weald_core::approval::Lacking;
use weald_core::error_code::ErrorCode;
use weald_core::id::{LandingId, TaskId, Token};
use weald_core::kept_change::quoted;
use weald_core::landing::{LandingStatus, Reason};
use weald_core::name::TreeName;
use weald_core::preconditions::Missing;
use weald_core::task_rules::newer;
use weald_core::tree_rules::finishing;

/// A submodule commit that a candidate names.
#[derive(Debug, Clone)]
pub struct Gitlink {
    pub path: String,
    pub commit: String,
}

impl fmt::Display for Gitlink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is at {}", self.path, self.commit)
    }
}

/// How the names of weald's own folders beside a checkout begin, behind a dot.
pub(crate) const STAGE_PREFIX: &str = "weald-landing-";

/// How many paths a refusal names.
const NAMED: usize = 50;

/// `Variant(field: Type, …) => code, message(…), hint(…), paths(…);` with the last two where there are any.
macro_rules! refusals {
    ($(
        $(#[$note:meta])*
        $variant:ident $(($($field:ident: $type:ty),*))? => $code:expr,
            message($($message:tt)+)
            $(, hint($($hint:tt)+) $(, paths($paths:expr))?)?;
    )*) => {
        /// Something has to be done first.
        #[derive(Debug, Clone)]
        pub enum Refusal {
            $($(#[$note])* $variant $(($($type),*))?,)*
        }

        impl Refusal {
            pub fn reason(&self) -> Reason {
                match self {
                    $(Self::$variant $(($($field),*))? => Reason {
                        code: ErrorCode::from($code),
                        message: format!($($message)+),
                        hint: refusals!(@hint $($($hint)+)?),
                        paths: refusals!(@paths $($($paths)?)?),
                    },)*
                }
            }

            /// Every variant, with little and with much in it.
            #[cfg(test)]
            fn samples() -> Vec<Self> {
                let samples = |much| [$(Self::$variant $(($(<$type>::sample(much)),*))?),*];
                [false, true].into_iter().flat_map(samples).collect()
            }
        }
    };
    (@hint) => { None };
    (@hint $($hint:tt)+) => { Some(format!($($hint)+)) };
    (@paths) => { Vec::new() };
    (@paths $paths:expr) => { $paths };
}

refusals! {
    // What lands, and whether it is ready.

    TreeGone(tree: TreeName) => "tree_not_found",
        message("worktree {tree} is gone");

    MessageUnused(strategy: &'static str) => "message_unused",
        message("{strategy} lands commits with their own messages, so there is no commit for this one; nothing was done"),
        hint("weald land NAME --strategy squash -m MESSAGE, or leave out -m");

    TreeInOperation(tree: TreeName, operation: String) => "tree_in_operation",
        message("a {operation} is in progress in {tree}"),
        hint("finish it: weald run {tree} -- git {}", finishing(operation));

    OperationHidesHead(tree: TreeName, operation: String) => "tree_in_operation",
        message("a {operation} is in progress in {tree}, so its head is not what would land"),
        hint("finish it: weald run {tree} -- git {}", finishing(operation));

    TreeDirty(tree: TreeName, changes: u64) => "tree_dirty",
        message("{changes} {} not committed in {tree}; nothing landed, your files are unchanged",
            if *changes == 1 { "change is" } else { "changes are" }),
        hint("weald land {tree} --commit -m MESSAGE");

    OnlyUntracked(tree: TreeName, files: u64, left_out: Vec<String>) => "tree_dirty",
        message("nothing to land: {tree}'s {}", match files {
            1 => "only change is 1 untracked file".to_owned(),
            _ => format!("only changes are {files} untracked files"),
        }),
        hint("{}", match left_out.is_empty() {
            true => format!("weald land {tree} --commit=all -m MESSAGE"),
            false => by_hand(tree),
        }),
        paths(left_out.clone());

    TreeDiverged(tree: TreeName, branch: String) => "tree_diverged",
        message("{branch} was moved outside weald; both sides are kept"),
        hint("weald sync {tree}");

    NoCommit(tree: TreeName) => "no_commit",
        message("{tree} has no commit");

    RaceUndecided(tree: TreeName, task: TaskId, entry: String, report: Option<String>) => "race_undecided",
        message("{tree} is entry {entry} of the race for task {task}, which is still open; nothing landed"),
        hint("weald race pick {task} {entry}{}", report.as_deref().map_or(String::new(), with_report));

    NotReady(tree: TreeName, task: TaskId, missing: Vec<Missing>, by_agent: bool) => "not_ready_to_land",
        message("{}", missing.iter().map(Missing::to_string).collect::<Vec<_>>().join("; ")),
        // Only people are told that it can be forced.
        hint("{}{}", match missing.iter().any(|one| matches!(one, Missing::Verdict { .. })) {
            true => format!("weald phase {task}"),
            false => format!("weald resume {task}, or weald land {tree} --report TEXT"),
        }, match by_agent {
            true => String::new(),
            false => format!("; to land it anyway: weald land {tree} --force"),
        });

    StaleToken(task: TaskId, token: Token, newest: Token) => "stale_token",
        message("token {token} is not valid for task {task}: {}", newer(*token, *newest)),
        hint("to see who holds it now: weald task show {task}");

    // Committing first.

    HookTooSlow(tree: TreeName, hook: String, limit: String) => "not_committed",
        message("{} in {tree} did not end within {limit} and was stopped; nothing was committed", program(hook)),
        hint("{}", commit_hint(tree, hook));

    HookFailed(tree: TreeName, hook: String, said: String) => "not_committed",
        message("{} in {tree} failed; nothing was committed{}", program(hook), below(said)),
        hint("{}", commit_hint(tree, hook));

    NotCommitted(tree: TreeName, said: String) => "not_committed",
        message("the changes in {tree} could not be committed{}", below(said)),
        hint("{}", commit_hint(tree, ""));

    // The target and its remote.

    NothingToVerify => "no_target",
        message("there is no branch to verify"),
        hint("weald verify --target BRANCH");

    UnknownBranch(branch: String) => "no_target",
        message("there is no branch {branch}"),
        hint("git branch --list");

    UnknownCommit(name: String) => "unknown_commit",
        message("there is no commit {name}"),
        hint("git log --oneline");

    NoTarget(target: String) => "no_target",
        message("there is no branch {target}"),
        hint("git branch {target} COMMIT");

    TargetGone(tree: TreeName, target: String, base: String, said: String) => "no_target",
        message("{said}"),
        hint("git branch {target} {base}, then weald land {tree}");

    TargetSymbolic(target: String, other: String) => "target_symbolic",
        message("{target} is a symbolic ref to {other}; nothing was changed"),
        hint("land on the branch that it refers to: weald config set target BRANCH");

    NoUpstream(target: String) => "not_fetched",
        message("{target} could not be fetched, and landing.fetch is `require`: it tracks no remote branch"),
        hint("git branch --set-upstream-to=origin/{target} {target}");

    NotFetched(upstream: String, error: String) => "not_fetched",
        message("{upstream} could not be fetched, and landing.fetch is `require`: {error}"),
        hint("try again, or skip the fetch: weald land NAME --set landing.fetch=never");

    TargetDiverged(target: String, ours: String, upstream: String, theirs: String) => "target_diverged",
        message("{target} ({ours}) and {upstream} ({theirs}) have diverged; nothing was changed"),
        hint("to merge them: git switch {target} && git pull --no-rebase");

    TargetKeepsMoving(tree: TreeName, target: String) => "target_keeps_moving",
        message("{target} kept moving while {tree} was being prepared"),
        hint("weald land {tree}");

    // The candidate.

    BadIdentity(identity: String) => "config_invalid",
        message("landing.identity is `{identity}`, not `Name <mail>`"),
        hint("weald config set landing.identity 'Name <mail>'");

    NotFastForward(tree: TreeName, target: String) => "not_fast_forward",
        message("{tree} is not on top of {target}, so it can't be fast-forwarded"),
        hint("weald sync {tree} --rebase");

    RootCommit => "unrelated",
        message("a commit without a parent can't be rebased"),
        hint("land it with --strategy merge");

    RebaseDiffers => "rebase_differs",
        message("merge commits in the worktree contain changes of their own, which a rebase would drop"),
        hint("land it with --strategy squash or merge");

    FastForwardUnsigned(tree: TreeName) => "not_signed",
        message("a fast-forward lands the commits of {tree} as they are, and landing.sign = require needs them signed; nothing landed, your files are unchanged"),
        hint("weald land {tree} --strategy rebase");

    NotSigned(tree: TreeName, reverts: Option<LandingId>, error: String) => "not_signed",
        message("{} could not be signed, and landing.sign = require; nothing landed, your files are unchanged: {error}",
            reverts.map_or(tree.to_string(), |of| format!("the commit that undoes landing {of}"))),
        hint("make sure `git commit -S` works with your key, then: {}",
            reverts.map_or(format!("weald land {tree}"), |of| format!("weald revert {of}")));

    LargeFileMissing(tree: TreeName, files: Vec<String>, places: String) => "lfs_missing",
        message("{}{}: neither main nor {tree} has the Git LFS object; nothing landed, your files are unchanged",
            files[0], match files.len() {
                1 => String::new(),
                all => format!(" (and {} more)", all - 1),
            }),
        hint("weald run {tree} -- sh -c 'rm -rf {places}&& git add --renormalize .'; or if the file there is only a pointer: weald run {tree} -- git lfs pull"),
        paths(files.clone());

    SubmoduleUnnamed(link: Gitlink) => "submodule_missing",
        message("{link}, which others could not check out: no .gitmodules entry says which repository has that commit"),
        hint("in the worktree: git rm --cached {0}, or git submodule add URL {0}", link.path),
        paths(vec![link.path.clone()]);

    SubmoduleNotCloned(link: Gitlink, module: PathBuf) => "submodule_missing",
        message("{link}, which others could not check out: main has no repository of that submodule"),
        hint("git clone --no-checkout --separate-git-dir={} URL \"$(mktemp -d)\"", module.display()),
        paths(vec![link.path.clone()]);

    SubmoduleNotHere(link: Gitlink, module: PathBuf) => "submodule_missing",
        message("{link}, which others could not check out: neither main nor the worktree has it"),
        hint("git --git-dir={} fetch origin {}", module.display(), link.commit),
        paths(vec![link.path.clone()]);

    SubmoduleNowhere(link: Gitlink, module: PathBuf, error: String) => "submodule_missing",
        message("{link}, which others could not check out: neither main nor the worktree nor its remote has it ({error})"),
        hint("push it from where it was made, then: git --git-dir={} fetch origin {}", module.display(), link.commit),
        paths(vec![link.path.clone()]);

    // Who must agree, and the gate.

    AgentSession(why: String) => "agent_session",
        message("only a person may do this, and this is an agent's session: {why}"),
        hint("run it in a terminal outside the agent's session");

    HeadMoved(tree: TreeName, head: String, expected: String) => "head_moved",
        message("{tree} is at {head}, not at {expected}; nothing was approved"),
        hint("weald diff {tree}");

    NeedsApproval(tree: TreeName, lacking: Lacking, files: Vec<String>, can_be_listed: bool) => "needs_approval",
        message("{tree} needs a person's approval ({}), and {lacking}; nothing landed", match &files[..] {
            [] => "policy.gate is `human`".to_owned(),
            [file, ..] if !can_be_listed => format!("it changes {file}, and what is behind that can't be listed"),
            [file] => format!("it changes {file}, which is protected"),
            [file, more @ ..] => format!("it changes {file} and {} more that are protected", more.len()),
        }),
        hint("weald approve {tree}"),
        paths(files.iter().take(NAMED).cloned().collect());

    NotTrusted(key: String, command: String) => "not_trusted",
        message("{key} of weald.toml is not approved: `{command}`"),
        hint("weald trust");

    SetupNotTrusted => "not_trusted",
        message("the set-up commands that its tests need are not approved"),
        hint("weald trust");

    NoGateTree(why: String) => "gate_tree",
        message("could not create a worktree with the merged result for its tests: {why}"),
        hint("weald doctor");

    // The queue.

    NoProcessTable => "no_process_table",
        message("/proc does not identify this process");

    LandingOpen(landing: LandingId) => "landing_open",
        message("landing {landing} is already in the queue"),
        hint("weald queue");

    LandedAlready(landing: LandingId, tree: TreeName) => "landed_already",
        message("landing {landing} has landed; there is nothing to retry"),
        hint("to land what {tree} has committed since: weald land {tree}");

    NothingToRecover(landing: LandingId, status: LandingStatus) => "nothing_to_recover",
        message("landing {landing} is {}; there is nothing to recover", status.as_str()),
        hint("weald queue status --all");

    LandingBusy(target: String, pid: u32) => "landing_busy",
        message("process {pid} is still moving {target}; nothing was changed"),
        hint("wait for it, or end it: kill {pid}");

    LandingPerhapsBusy(landing: LandingId, target: String, pid: u32, host: String) => "landing_busy",
        message("it is unknown here whether process {pid} on {host} is still moving {target}"),
        hint("if it is gone: weald doctor --recover {landing}");

    LandingUnfinished(landing: LandingId, target: String, why: String, wait: Option<String>) => "landing_unfinished",
        message("landing {landing} was interrupted while {target} moved, and can't be repaired: {why}"),
        hint("{}", wait.as_deref().unwrap_or("weald doctor --fix"));

    SandboxUnavailable(error: String) => "sandbox_unavailable",
        message("{error}"),
        hint("weald doctor");

    Failed(error: String) => "failed",
        message("{error}"),
        hint("weald doctor");

    // Taking back.

    NotLanded(landing: LandingId, status: LandingStatus) => "not_landed",
        message("landing {landing} is {}, so there is nothing to undo", status.as_str()),
        hint("weald queue status --all");

    /// `by` begins with the landing that undid it; each one more undid the one before.
    RevertedAlready(landing: LandingId, by: Vec<LandingId>) => "reverted_already",
        message("landing {landing} was undone by {}",
            by.iter().map(|id| format!("landing {id}")).collect::<Vec<_>>().join(", and that by ")),
        hint("weald revert {} {}", by[by.len() - 1], match by.len() % 2 {
            1 => "brings it back",
            _ => "undoes it again",
        });

    RevertQueued(landing: LandingId, by: LandingId) => "reverted_already",
        message("landing {by} is about to undo landing {landing}");

    NotRecorded(landing: LandingId) => "not_recorded",
        message("landing {landing} does not say what it changed");

    // What the target's checkout, or its worktree, has in the way.

    ProcessUnknown => "process_unknown",
        message("/proc does not identify this process");

    TargetDirty(checkout: PathBuf, target: String, files: Vec<String>) => "target_dirty",
        message("the landing would overwrite changes in {} ({target}); nothing was changed", checkout.display()),
        hint("commit, stash or move those files, then land again (or: weald config set landing.autostash true)"),
        paths(files.clone());

    ParentDirty(parent: TreeName, said: Option<String>, files: Vec<String>) => "target_dirty",
        message("the landing would overwrite changes in {parent}; nothing was changed{}",
            said.as_ref().map_or(String::new(), |said| format!(": {said}"))),
        hint("commit there: weald run {parent} -- git commit -am MESSAGE; then land again"),
        paths(files.clone());

    Unstashable(checkout: PathBuf, loss: Loss, files: Vec<String>) => "target_dirty",
        message("the checkout can't be stashed without loss: {loss}; nothing was changed"),
        hint("git -C {} {}, then land again", quoted(checkout), loss.way_out()),
        paths(files.clone());

    StashMisses(files: Vec<String>) => "target_dirty",
        message("{} is in the way and can't be stashed (git ignores it, or it is in a nested repository); nothing was changed", files[0]),
        hint("move those files out of the way, then land again"),
        paths(files.clone());

    NotStashed(checkout: PathBuf, said: String) => "target_dirty",
        message("the local changes can't be stashed; nothing was changed: {said}"),
        hint("git -C {} status, then land again", quoted(checkout));

    /// Something else was refused, and what was stashed before is still in its entry: the target is as it was, the
    /// checkout is not.
    NotPutBack(refusal: Box<Refusal>, kept: String) => refusal.reason().code,
        message("{}", kept_in(&refusal.to_string(), kept)),
        hint("{}", refusal.reason().hint.unwrap_or_default()),
        paths(refusal.reason().paths);

    TargetInOperation(operation: &'static str, place: PathBuf) => "target_in_operation",
        message("{operation} is in progress in {}; nothing was changed", place.display()),
        hint("finish or abort it (git -C {} status), then land again", place.display());

    TargetUnmerged(checkout: PathBuf, files: Vec<String>) => "target_in_operation",
        message("{} has unmerged paths; nothing was changed", checkout.display()),
        hint("resolve them (git -C {} status), then land again", checkout.display()),
        paths(files.clone());

    ParentInOperation(parent: TreeName, operation: String) => "target_in_operation",
        message("a {operation} is in progress in {parent}; nothing was changed"),
        hint("finish it: weald run {parent} -- git {}", finishing(operation));

    ParentDiverged(parent: TreeName, target: String) => "target_diverged",
        message("{target} was moved outside of {parent}; nothing was changed"),
        hint("to merge both: weald sync {parent}");

    CheckedOutTwice(target: String, checkouts: Vec<String>) => "target_checked_out_twice",
        message("{target} is checked out more than once; nothing was changed"),
        hint("detach all but one of them: git -C DIR switch --detach ({target} itself stays)"),
        paths(checkouts.clone());

    CheckoutUnknown(target: String) => "target_checkout_gone",
        message("{target} is checked out, but it is unknown where"),
        hint("run the command in that checkout");

    CheckoutGone(target: String, checkout: PathBuf) => "target_checkout_gone",
        message("{target} is checked out at {}, which is gone", checkout.display()),
        hint("if it is gone for good: git worktree prune; if it was moved: git worktree repair");

    CheckoutReplaced(target: String, checkout: PathBuf) => "target_checkout_gone",
        message("{target} is checked out at {}, but a separate repository is there", checkout.display()),
        hint("check it, then fix the entry with git worktree repair or git worktree prune");

    TargetUnreadable(said: String) => "target_unreadable",
        message("{said}"),
        hint("to see what is wrong, run git status in the checkout");

    HistoryUnreadable(command: String, said: String) => "target_unreadable",
        message("git {command} failed: {said}"),
        hint("to see what is wrong with the repository: git fsck");

    // Moving the target.

    PathReserved(files: Vec<String>) => "path_reserved",
        message(".{STAGE_PREFIX}… is reserved for weald's own folders; nothing was changed"),
        hint("rename it in the worktree, then land again"),
        paths(files.clone());

    PathInWorktree(files: Vec<String>) => "path_in_worktree",
        message("{} is inside this repository's worktree folder or a .git; nothing was changed", files[0]),
        hint("remove it from the commits in the worktree, then land again"),
        paths(files.clone());

    StageInTheWay(place: String) => "stage_in_the_way",
        message("{place} is in the way of the landing's files and was not made by weald; nothing was changed"),
        hint("check it, move it out of the way, then land again: mv {place} ELSEWHERE"),
        paths(vec![place.clone()]);

    FilesNotWritten(by_filter: bool, said: String) => if *by_filter { "filter_failed" } else { "checkout_failed" },
        message("git can't write the files of the landing; nothing was changed: {said}"),
        hint("fix the filter that git's configuration names, then land again");

    IndexLocked(lock: String) => "target_busy",
        message("another git process is using the target's checkout ({lock}); nothing was changed"),
        hint("land again when it has ended; if no git is running there: rm {lock}"),
        paths(vec![lock.clone()]);

    IndexLockDeleted => "target_busy",
        message("another process deleted index.lock while the target moved; nothing was changed"),
        hint("land again when no other git is running there");

    RefLocked(target: String, said: String) => "target_busy",
        message("another process holds {target}; nothing was changed: {said}"),
        hint("land again when that git has ended; to find stale locks: weald doctor");

    HookRefused(said: String) => "hook_refused",
        message("{said}"),
        hint("check the repository's reference-transaction hook");

    // Leaving a conflict in the target's checkout.

    TargetSealed(tree: TreeName, target: String, holder: TreeName) => "target_sealed",
        message("{target} is the branch of {holder}, so the conflict is not left there"),
        hint("weald sync {tree}");

    TargetNotCheckedOut(tree: TreeName, target: String) => "target_not_checked_out",
        message("{target} is not checked out anywhere, so the conflict can't be left there"),
        hint("weald sync {tree}");

    ConflictNotLeft(tree: TreeName, checkout: PathBuf, said: String) => "conflict_not_left",
        message("git did not merge in {}: {said}", checkout.display()),
        hint("weald sync {tree}");
}

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Self {
        refusal.reason()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason().message)
    }
}

/// What a stash would lose of a checkout.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Loss {
    /// And the bit that hides it.
    #[error("{} is changed, but git is set to ignore that", .0.display())]
    Hidden(PathBuf, &'static str),
    #[error("{0} replaces a tracked file or folder")]
    Replaced(String),
    #[error("{} was removed from the index but still exists", .0.display())]
    Removed(PathBuf),
    #[error("a stash does not keep {}", .0.display())]
    Odd(PathBuf),
    #[error("{} can't be kept as it is: {}", .0.display(), .1)]
    NotKept(PathBuf, String),
    #[error("git can't list its changes: {0}")]
    Unlisted(String),
}

impl Loss {
    /// The git command that helps.
    fn way_out(&self) -> String {
        match self {
            Self::Hidden(file, bit) => format!("update-index --no-{bit} -- {}", quoted(file)),
            Self::Removed(file) => format!("add -- {}", quoted(file)),
            _ => "status".to_owned(),
        }
    }
}

/// What a hook or git said: several lines stand below the words about them.
fn below(said: &str) -> String {
    match (said.is_empty(), said.contains('\n')) {
        (true, _) => String::new(),
        (false, false) => format!(": {said}"),
        (false, true) => format!(":\n{said}"),
    }
}

/// What a text that came out of a tree says of the program that took too long.
pub(super) fn program(hook: &str) -> String {
    match is_hook_name(hook) {
        true => format!("the {hook} hook"),
        false => "`git commit`".to_owned(),
    }
}

/// Whether a text that came out of a tree can be the name of a hook.
fn is_hook_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
    (1..40).contains(&text.len()) && text.chars().all(is_plain)
}

/// How a person lands what weald does not commit by itself.
pub(super) fn by_hand(name: &TreeName) -> String {
    format!(
        "weald run {name} -- sh -c 'git add -A && git commit -m MESSAGE', then weald approve {name} and weald land {name}"
    )
}

/// What shows why a hook, or `git commit` itself, failed.
fn commit_hint(tree: &TreeName, hook: &str) -> String {
    match is_hook_name(hook) {
        // These want the file with the message.
        true if hook.ends_with("commit-msg") => {
            format!("weald run {tree} -- sh -c 'git add -A && git commit -m MESSAGE'")
        }
        true => format!("weald run {tree} -- git hook run {hook}"),
        false => format!("weald run {tree} -- git status"),
    }
}

/// The same report for another command: as it is where that can be typed, or where to put it.
fn with_report(report: &str) -> String {
    let needs_care = |c: char| c.is_control() || "\"\\$`!".contains(c);
    match report.len() > 200 || report.contains(needs_care) {
        true => " --report TEXT".to_owned(),
        false => format!(" --report \"{report}\""),
    }
}

fn kept_in(message: &str, kept: &str) -> String {
    let was = "nothing was changed";
    let is = format!("the target did not move, and your changes are kept in {kept}");
    match message.contains(was) {
        true => message.replace(was, &is),
        false => format!("{message}; {is}"),
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
use tests::Sample as _;
