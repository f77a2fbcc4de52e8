//! Landing on the branch of a sealed worktree.
//!
//! Such a branch lives in the worktree's own repository, and main's ref only follows it. So the worktree's own git
//! fast-forwards to the new tip, inside its sandbox and only from the commit that the candidate was made on; main's ref
//! follows by the import after that. A crash leaves the worktree before or after it, and the next look says which.

use weald_core::error_code::ErrorCode;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::message::{Draft, MessageType, Urgency};
use weald_core::name::WEALD;
use weald_core::tree::{Tree, TreeKind};

use super::super::LandError;
use super::Move;
use crate::Landings;
use crate::refusal::Refusal;
use weald_trees::inside::{BringIn, SyncEnd};

impl Landings<'_> {
    /// The sealed worktree whose branch `target` is.
    pub(crate) fn sealed_on(&self, target: &str) -> Result<Option<Tree>, LandError> {
        let is_main = |(branch, _): &(String, _)| branch == target;
        if self.trees.target.as_ref().is_some_and(is_main) {
            return Ok(None);
        }
        let is_its =
            |tree: &Tree| tree.is_live() && tree.kind == TreeKind::Sealed && tree.branch == target;
        Ok(self.trees.records()?.into_iter().find(is_its))
    }

    /// Brings main's ref up to what the worktree of `target` holds, if there is one.
    pub(crate) fn follow_target(&self, target: &str) -> Result<(), LandError> {
        let Some(tree) = self.sealed_on(target)? else {
            return Ok(());
        };
        let site = self.trees.site(&tree)?;
        let (tree, look) = self.trees.import_and_follow(&tree, &site)?;
        let parent = tree.name;
        if let Some(operation) = look.operation {
            return Err(Refusal::ParentInOperation(parent, operation).into());
        }
        match tree.diverged {
            false => Ok(()),
            true => Err(Refusal::ParentDiverged(parent, target.to_owned()).into()),
        }
    }

    /// Moves the worktree's files, index and branch by its own git, and main's ref after them.
    pub(super) fn move_into(&self, wanted: &Move, tree: &Tree) -> Result<(), LandError> {
        let (name, site) = (&tree.name, self.trees.site(tree)?);
        self.trees.require_files(&wanted.new)?;
        self.trees.snapshot_before(tree, &site, "landing")?;
        let job = BringIn {
            commit: wanted.new.clone(),
            onto: Some(wanted.old.clone()),
            rebase: false,
            message: String::new(),
        };
        let reply = self.trees.visit(name.as_str(), &site, job)?;
        match reply.end {
            SyncEnd::Merged | SyncEnd::UpToDate => {}
            SyncEnd::Moved => return Err(LandError::Outrun(wanted.target.clone())),
            SyncEnd::Refused(why) => return Err(overwritten(tree, &why)),
            SyncEnd::Conflict(_) => return Err(overwritten(tree, "")),
        }
        for path in reply.aside {
            self.trees.engine.notice(format!(
                "{name}: an ignored file was in the way and is kept as {path}"
            ));
        }
        // What the worktree says counts for nothing: its head is looked at.
        let (tree, _) = self.trees.import_and_follow(tree, &site)?;
        let holds = match &tree.head {
            Some(head) => *head == wanted.new || self.trees.contains(head, &wanted.new)?,
            None => false,
        };
        match holds && !tree.diverged {
            true => Ok(()),
            false => Err(LandError::Outrun(wanted.target.clone())),
        }
    }

    /// Tells the agent in the target's worktree what came in, or hands it the merge that only it can do.
    pub(crate) fn tell_parent(&self, landing: &Landing) -> Result<(), LandError> {
        let Some(parent) = self.sealed_on(&landing.target)? else {
            return Ok(());
        };
        let task = match &parent.task {
            Some(id) => self.trees.engine.look(|tx| tx.task(id))?,
            None => None,
        };
        let Some(to) = task.as_ref().and_then(|task| task.owner.clone()) else {
            return Ok(());
        };
        let (tree, commit) = (&landing.tree, landing.head.get(..12).unwrap_or_default());
        let code = landing.reason.as_ref().map(|reason| &reason.code);
        // The agent there can do something about these.
        let is_its = matches!(
            code,
            Some(ErrorCode::TargetDirty | ErrorCode::TargetInOperation)
        );
        let text = match landing.status {
            LandingStatus::Landed => {
                format!(
                    "{tree} landed in your worktree: its branch and files moved. git log -1 --stat"
                )
            }
            LandingStatus::Conflict => format!(
                "{tree} conflicts with your branch in {}. Merge it here: git merge {commit}",
                landing.conflicts.join(", ")
            ),
            LandingStatus::Refused if is_its => format!(
                "{tree} could not land in your worktree because of changes here. Commit them, then: git merge {commit}"
            ),
            _ => return Ok(()),
        };
        let Ok(from) = WEALD.parse() else {
            return Ok(());
        };
        let draft = Draft {
            from,
            to,
            kind: MessageType::Message,
            priority: Urgency::Steer,
            text,
            task: parent.task,
        };
        if let Err(error) = self.trees.engine.send(draft) {
            let name = &parent.name;
            self.trees
                .engine
                .notice(format!("could not notify the agent in {name}: {error}"));
        }
        Ok(())
    }

    /// Whether a scratch worktree lands on its parent, which has to land itself before anything reaches a shared branch.
    pub(crate) fn lands_on_parent(&self, tree: &Tree) -> Result<bool, LandError> {
        let Some(parent) = &tree.scratch_for else {
            return Ok(false);
        };
        let parent = self.trees.record(parent)?.filter(Tree::is_live);
        Ok(match parent {
            Some(parent) => {
                parent.branch == tree.target
                    && parent.target != parent.branch
                    && (parent.kind == TreeKind::Sealed
                        || self.trees.fits_branch(&parent.branch)?)
            }
            None => false,
        })
    }
}

/// Changes in the worktree that its git does not overwrite; that names them one a line, behind a tab.
fn overwritten(tree: &Tree, said: &str) -> LandError {
    let files: Vec<_> = said
        .lines()
        .filter_map(|line| line.strip_prefix('\t'))
        .map(str::to_owned)
        .collect();
    let first = said.lines().next().filter(|_| files.is_empty());
    Refusal::ParentDirty(tree.name.clone(), first.map(str::to_owned), files).into()
}
