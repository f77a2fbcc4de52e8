//! Errors of trees.

use crate::{AdoptError, ScopeError, SetupReport, TreeError};
use serde_json::json;
use weald_core::binding::BindRefusal;
use weald_core::config::find_key;
use weald_core::id::TreeId;
use weald_core::name::TreeName;
use weald_core::objections::Objection;
use weald_core::role::NotYourTree;
use weald_core::setup::SetupOutcome;
use weald_core::tree::{Tree, TreeStatus};
use weald_core::tree_rules::{TreeInput, TreeRefusal, finishing};
use weald_git::VaultError;

use super::Failure;
use super::starts::start;
use crate::exit;

/// What to do about a command that runs in a tree.
fn end_it(name: &TreeName) -> String {
    format!(
        "wait for it, or stop it: weald agent stop {name} for an agent, kill for another process"
    )
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        use TreeError::{
            CommitNotInVault, NoSnapshot, NoTree, NotInTrash, NotInVault, NotTakenIn, OutsideTrash,
        };
        use TreeError::{NoBranchName, OddPath, UnsafePlace};
        let message = error.to_string();
        let refused = |code| Self::new(code, exit::REFUSED, message.clone());
        match error {
            TreeError::Store(error) => error.into(),
            TreeError::Git(error) => error.into(),
            TreeError::Vault(error) => error.into(),
            TreeError::Sandbox(error) => error.into(),
            TreeError::Task(error) => error.into(),
            TreeError::Rule(refusal) => refusal.into(),
            TreeError::Bind(refusal) => refusal.into(),
            TreeError::NotYours(whose) => not_yours(&whose, message),
            TreeError::Adopt(error) => error.into(),
            TreeError::Name(_) => Self::new("invalid_name", exit::USAGE, message),
            TreeError::Template(_) => refused("config_invalid").hint("weald config show"),
            TreeError::Interrupted(signal) => Self::new("interrupted", 128 + signal, message),
            TreeError::NotFound { name } => not_found("tree_not_found", message)
                .hint("weald list")
                .details(json!({"tree": name})),
            TreeError::Missing { name, path } => not_found("tree_missing", message)
                .hint(format!(
                    "to recreate it: weald ensure {name}; if it was moved: weald doctor --fix NEW_PATH"
                ))
                .details(json!({"tree": name, "path": path})),
            TreeError::Replaced { name, path, .. } => refused("tree_replaced")
                .hint(adopt_hint(&path))
                .details(json!({"tree": name, "path": path})),
            error @ TreeError::OfAnother { .. } => of_another(&error, message),
            TreeError::Damaged { name, path, .. } => refused("tree_damaged")
                .hint(format!(
                    "to move it to the trash as it is: weald rm {name} --discard"
                ))
                .details(json!({"tree": name, "path": path})),
            TreeError::Locked { name, lock } => refused("tree_locked")
                .hint(format!(
                    "ask {}, or override the lock with --force",
                    lock.owner
                ))
                .details(json!({"tree": name, "lock": lock})),
            TreeError::InTrash { name, id } => not_found("tree_not_found", message)
                .hint(format!("weald restore {id}"))
                .details(json!({"tree": name, "trash": id})),
            error @ (TreeError::Busy { .. }
            | TreeError::Stirred { .. }
            | TreeError::ChangedMeanwhile { .. }
            | TreeError::InOperation { .. }
            | TreeError::Standing { .. }
            | TreeError::Inhabited { .. }) => in_use(error, message),
            error @ (TreeError::Exists { .. }
            | TreeError::Occupied { .. }
            | TreeError::BranchExists { .. }
            | TreeError::NoBranch { .. }
            | TreeError::BranchOnRemotes { .. }
            | TreeError::BranchIsHere { .. }
            | TreeError::BranchIsTarget { .. }
            | TreeError::BranchInUse { .. }
            | TreeError::BranchClash { .. }
            | TreeError::NoCommit
            | TreeError::NoTarget
            | TreeError::TargetGone { .. }
            | TreeError::UnknownBase { .. }
            | TreeError::UnknownTarget { .. }
            | TreeError::NotFetched { .. }
            | TreeError::DirtyMain { .. }) => start(error, message),
            TreeError::Removal { tree, objections } => removal(&tree, &objections, message),
            TreeError::Unreadable { name, .. } => refused("tree_unreadable")
                .hint("weald doctor")
                .details(json!({"tree": name})),
            TreeError::File { path, source } => Self::file(&path, &source),
            error @ (OddPath { .. } | UnsafePlace { .. } | NoBranchName { .. }) => {
                odd(error, message)
            }
            error @ (NotTakenIn { .. } | OutsideTrash { .. }) => trash(error, message),
            error @ (NotInTrash { .. } | NotInVault { .. } | CommitNotInVault { .. } | NoSnapshot { .. } | NoTree) => {
                unknown(error, message)
            }
            TreeError::SetUp {
                name,
                report,
                trash,
            } => setup(&name, &report, trash, message),
            TreeError::Unsupported { .. } => refused("unsupported"),
        }
    }
}

impl Failure {
    /// The same refusal for who stands in the tree, and leaves it by removing it.
    pub fn of_exit(mut self) -> Self {
        let tree = self.details["tree"].as_str().unwrap_or_default();
        let elsewhere = format!("weald rm {tree} --discard");
        self.hint = self
            .hint
            .map(|hint| hint.replace(&elsewhere, "weald exit --remove --discard"));
        self
    }
}

/// A teammate's call about a tree of another session.
fn not_yours(whose: &NotYourTree, message: String) -> Failure {
    Failure::new("not_yours", exit::REFUSED, message)
        .hint("nothing was changed; without a name the call uses your own worktree (task_claim)")
        .details(json!({"tree": whose.tree, "holder": whose.holder}))
}

/// Somebody is there, or was.
fn in_use(error: TreeError, message: String) -> Failure {
    match error {
        TreeError::Busy { name, running } => Failure::new("tree_running", exit::BUSY, message)
            .hint(end_it(&name))
            .details(json!({"tree": name, "running": running})),
        TreeError::Stirred { name } => Failure::new("tree_running", exit::BUSY, message)
            .hint(format!("check it, then try again: weald status {name}"))
            .details(json!({"tree": name})),
        TreeError::ChangedMeanwhile { name, blockers } => {
            Failure::new("tree_changed", exit::REFUSED, message)
                .hint("to see what keeps it: weald clean")
                .details(json!({"tree": name, "blockers": blockers}))
        }
        TreeError::InOperation { name, operation } => {
            let finishing = finishing(&operation);
            Failure::new("tree_in_operation", exit::REFUSED, message)
                .hint(format!("finish it: weald run {name} -- git {finishing}"))
                .details(json!({"tree": name}))
        }
        TreeError::Standing { name, discard } => {
            let more = if discard { " --discard" } else { "" };
            Failure::new("standing_inside", exit::REFUSED, message)
                .hint(format!("cd elsewhere first, or: weald exit --remove{more}"))
                .details(json!({"tree": name}))
        }
        TreeError::Inhabited { path, pid } => Failure::new("directory_in_use", exit::BUSY, message)
            .hint(format!(
                "let it end or leave the directory; to see what it is: ps {pid}"
            ))
            .details(json!({"path": path, "pid": pid})),
        _ => Failure::new("tree_running", exit::BUSY, message).hint("wait for it, or end it"),
    }
}

/// Something in the trash that is left as it is.
fn trash(error: TreeError, message: String) -> Failure {
    let refused = |code| Failure::new(code, exit::REFUSED, message.clone());
    match error {
        TreeError::NotTakenIn { name, id, .. } => refused("trash_not_taken_in")
            .hint(format!(
                "to restore it: weald restore {id}; to give up its commits: weald clean --trash --apply --discard"
            ))
            .details(json!({"tree": name, "trash": id})),
        TreeError::OutsideTrash { name, id, path, .. } => refused("trash_outside")
            .hint(format!("nothing was changed; check {}", path.display()))
            .details(json!({"tree": name, "trash": id, "path": path})),
        other => other.into(),
    }
}

fn adopt_hint(path: &std::path::Path) -> String {
    format!(
        "nothing was changed; if you restored or copied it there: weald doctor --adopt {}",
        path.display()
    )
}

/// A worktree of the repository that this one is a copy of.
fn of_another(error: &TreeError, message: String) -> Failure {
    let failure = Failure::new("tree_of_another", exit::REFUSED, message);
    let TreeError::OfAnother {
        name,
        path,
        repository,
    } = error
    else {
        return failure;
    };
    failure
        .hint(format!(
            "nothing was changed; run weald in {}",
            repository.display()
        ))
        .details(json!({"tree": name, "path": path, "repository": repository}))
}

fn not_found(code: &'static str, message: String) -> Failure {
    Failure::new(code, exit::NOT_FOUND, message)
}

/// A set-up that did not succeed: the tree is kept, or waits in the trash.
fn setup(name: &TreeName, report: &SetupReport, trash: Option<TreeId>, message: String) -> Failure {
    let (code, hint) = match (report.outcome, trash) {
        (SetupOutcome::Unapproved, _) => (
            "setup_unapproved",
            "to review and approve them: weald trust".to_owned(),
        ),
        (_, Some(id)) => (
            "setup_failed",
            format!("it went to the trash (setup.on_failure); to restore it: weald restore {id}"),
        ),
        (_, None) => (
            "setup_failed",
            format!("the worktree is kept; to try again: weald setup {name}"),
        ),
    };
    Failure::new(code, exit::REFUSED, message)
        .hint(hint)
        .details(json!({"tree": name, "setup": report, "trash": trash}))
}

/// What was named, or not named, is not there.
fn unknown(error: TreeError, message: String) -> Failure {
    match error {
        TreeError::NotInTrash { id } => not_found("not_in_trash", message)
            .hint("weald restore; for purged worktrees: weald restore --purged")
            .details(json!({"id": id})),
        TreeError::NotInVault { id } => not_found("not_in_vault", message)
            .hint("weald restore --purged")
            .details(json!({"id": id})),
        TreeError::CommitNotInVault { name, commit } => not_found("not_in_vault", message)
            .hint("weald restore --purged")
            .details(json!({"tree": name, "commit": commit})),
        TreeError::NoSnapshot { name, id } => not_found("no_snapshot", message)
            .hint(format!("weald snapshot list {name}"))
            .details(json!({"tree": name, "snapshot": id})),
        _ => Failure::new("no_tree", exit::USAGE, message).hint("weald list"),
    }
}

/// A refusal that says what was kept, and how to go on.
fn removal(tree: &Tree, objections: &[Objection], message: String) -> Failure {
    let name = &tree.name;
    let (code, hint) = match &objections[0] {
        Objection::Running(_) => ("tree_running", end_it(name)),
        Objection::Locked(_) => (
            "tree_locked",
            format!("weald unlock {name}, or weald rm {name} --force --force"),
        ),
        Objection::Referenced(_) => ("tree_referenced", format!("weald rm {name} --force")),
        Objection::Unknown(_) => (
            "tree_unknown",
            format!("to move it to the trash as it is: weald rm {name} --discard"),
        ),
        Objection::Dirty { .. } => (
            "tree_dirty",
            format!("weald keep {name}, or weald rm {name} --discard (can be restored)"),
        ),
        Objection::Unlanded {
            elsewhere: true, ..
        } => (
            "tree_unlanded",
            format!(
                "they are in its stash or on other branches: weald run {name} -- git log --oneline --all --not HEAD; to merge one: weald run {name} -- git merge BRANCH; to keep them: weald keep {name}; to remove it all the same: weald rm {name} --discard (can be restored)"
            ),
        ),
        Objection::Unlanded { .. } => (
            "tree_unlanded",
            format!(
                "weald land {name}, weald keep {name}, or weald rm {name} --discard (can be restored)"
            ),
        ),
    };
    let reasons: Vec<_> = objections.iter().map(reason).collect();
    let kept = format!(
        "{message}\n  kept: {} (branch {})",
        tree.path.display(),
        tree.branch
    );
    let exit = match &objections[0] {
        Objection::Running(_) => exit::BUSY,
        _ => exit::REFUSED,
    };
    Failure::new(code, exit, kept).hint(hint).details(
        json!({"tree": name, "path": tree.path, "branch": tree.branch, "reasons": reasons}),
    )
}

fn reason(objection: &Objection) -> serde_json::Value {
    match objection {
        Objection::Running(what) => json!({"reason": "running", "what": what}),
        Objection::Locked(lock) => json!({"reason": "locked", "lock": lock}),
        Objection::Referenced(by) => json!({"reason": "referenced", "by": by}),
        Objection::Unknown(why) => json!({"reason": "unknown", "why": why}),
        Objection::Dirty {
            staged,
            unstaged,
            untracked,
        } => {
            json!({"reason": "dirty", "staged": staged, "unstaged": unstaged, "untracked": untracked})
        }
        Objection::Unlanded { commits, .. } => json!({"reason": "unlanded", "commits": commits}),
    }
}

impl From<AdoptError> for Failure {
    fn from(error: AdoptError) -> Self {
        let message = error.to_string();
        let refused = |code, path| {
            Self::new(code, exit::REFUSED, message.clone()).details(json!({"path": path}))
        };
        match error {
            AdoptError::NoWorktree { path } => {
                refused("not_a_worktree", path).hint("weald list --all")
            }
            AdoptError::Main { path } => {
                refused("main_checkout", path).hint("to create a worktree: weald new NAME")
            }
            AdoptError::Gone { path } => Self {
                exit: exit::NOT_FOUND,
                ..refused("worktree_gone", path)
            }
            .hint("if it was moved: git worktree repair NEW_PATH; if it is gone for good: git worktree prune"),
            AdoptError::Broken { path, .. } => {
                let hint = format!("git worktree repair {}", path.display());
                refused("worktree_broken", path).hint(hint)
            }
            AdoptError::Detached { path } => {
                let hint = format!("git -C {} switch -c BRANCH", path.display());
                refused("detached_head", path).hint(hint)
            }
            AdoptError::Unborn { path, branch } => {
                let hint = format!("git -C {} commit", path.display());
                refused("no_commit", path)
                    .hint(hint)
                    .details(json!({"branch": branch}))
            }
            AdoptError::OnTarget { path, branch } => {
                let hint = format!("git -C {} switch -c BRANCH", path.display());
                refused("target_branch", path)
                    .hint(hint)
                    .details(json!({"branch": branch}))
            }
            AdoptError::Unrelated { branch, target } => {
                Self::new("unrelated_histories", exit::REFUSED, message)
                    .hint("name the branch it lands on: --target BRANCH")
                    .details(json!({"branch": branch, "target": target}))
            }
        }
    }
}

impl From<TreeRefusal> for Failure {
    fn from(refusal: TreeRefusal) -> Self {
        let hint = match (refusal.from, refusal.input.as_ref()) {
            (TreeStatus::Trashed, _) => format!("weald restore {}", refusal.name),
            (_, TreeInput::Restored { .. }) => "weald restore".to_owned(),
            (TreeStatus::Creating, _) => {
                "wait for it; after a crash: weald doctor --fix".to_owned()
            }
            (TreeStatus::Broken, _) => "weald doctor --fix".to_owned(),
            _ => format!("weald show {}", refusal.name),
        };
        Self::new("illegal_move", exit::REFUSED, refusal.to_string())
            .hint(hint)
            .details(json!({"tree": refusal.name, "from": refusal.from}))
    }
}

impl From<BindRefusal> for Failure {
    fn from(refusal: BindRefusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            BindRefusal::Tree(refusal) => refusal.into(),
            BindRefusal::Task(refusal) => refusal.into(),
            BindRefusal::TaskBound { task, tree } => {
                Self::new("task_bound", exit::REFUSED, message)
                    .hint(format!("weald task unbind {task}"))
                    .details(json!({"task": task, "tree": tree}))
            }
            BindRefusal::TreeBound { tree, task } => {
                Self::new("tree_bound", exit::REFUSED, message)
                    .hint(format!("weald task unbind {task}"))
                    .details(json!({"task": task, "tree": tree}))
            }
            BindRefusal::NotBound { task } => Self::new("not_bound", exit::REFUSED, message)
                .hint(format!("weald task bind {task} TREE"))
                .details(json!({"task": task})),
        }
    }
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let message = error.to_string();
        match error {
            VaultError::Git(error) => error.into(),
            VaultError::File { path, source } => Self::file(&path, &source),
            VaultError::Held { holder, .. } => Self::new("vault_busy", exit::BUSY, message)
                .hint("end the process that holds it or let it finish, then run this again")
                .details(json!({"holder": holder})),
            VaultError::Incomplete { .. } => Self::new("objects_missing", exit::REFUSED, message)
                .hint("git fsck --connectivity-only"),
            VaultError::Partial { .. } => Self::new("partial_clone", exit::REFUSED, message)
                .hint("run this again when the remote can be reached"),
        }
    }
}

impl From<ScopeError> for Failure {
    fn from(error: ScopeError) -> Self {
        let message = error.to_string();
        match error {
            ScopeError::Tree(error) => error.into(),
            ScopeError::Outside { path, tree, .. } => {
                Self::new("outside_tree", exit::REFUSED, message)
                    .hint(format!("weald path {tree}"))
                    .details(json!({"path": path, "tree": tree}))
            }
        }
    }
}

/// What a template of the configuration makes can't be used.
fn odd(error: TreeError, message: String) -> Failure {
    let refused = |code| Failure::new(code, exit::REFUSED, message);
    match error {
        TreeError::UnsafePlace { key, path, .. } => refused("unsafe_place")
            .hint(set_default(key))
            .details(json!({"key": key, "path": path})),
        TreeError::NoBranchName { branch, .. } => refused("bad_branch")
            .hint(set_default("tree.branch"))
            .details(json!({"key": "tree.branch", "branch": branch})),
        _ => refused("odd_path").hint(set_default("tree.path")),
    }
}

/// A command that makes weald's own place or name count.
fn set_default(key: &str) -> String {
    let default = find_key(key).map_or("VALUE", |key| key.default);
    format!("weald config set {key} '{default}'")
}
