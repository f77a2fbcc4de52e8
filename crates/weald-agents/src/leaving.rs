//! What an agent leaves that had nothing to land: an empty tree goes, unless it holds what would be missed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weald_core::agent::Agent;
use weald_core::id::TreeId;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::name::TreeName;
use weald_core::objections::Objection;
use weald_git::Git;

use super::Agents;
use weald_landing::LandError;
use weald_landing::Landings;
use weald_trees::{Dirty, RemoveRequest, TreeError, TreeView};

/// Number, size and time of a file.
type Stamp = (u64, u64, i64, i64);

/// The main checkout at a moment: its commit, and every path that is not as committed, with its file's stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutState {
    head: Vec<u8>,
    changed: Vec<(Vec<u8>, Option<Stamp>)>,
}

impl Agents<'_> {
    /// How the main checkout is now.
    pub fn checkout_state(&self) -> Result<CheckoutState, LandError> {
        let (common, root) = (
            self.trees.place.repository().common_dir(),
            self.trees.place.root(),
        );
        let git = |name: &str| Git::new(common, name).work_tree(&root);
        // One without a commit has no head.
        let head = git("rev-parse").args(["--verify", "-q", "HEAD"]).output()?;
        let status = git("status")
            .args(["--porcelain", "-z", "--no-renames", "-uall"])
            .run()?;
        let lines = status.split(|byte| *byte == 0);
        let stamped = lines.filter(|line| !line.is_empty()).map(|line| {
            let path = Path::new(std::ffi::OsStr::from_bytes(
                line.get(3..).unwrap_or_default(),
            ));
            let found = fs::symlink_metadata(root.join(path)).ok();
            let stamp =
                |file: fs::Metadata| (file.ino(), file.size(), file.mtime(), file.mtime_nsec());
            (line.to_vec(), found.map(stamp))
        });
        Ok(CheckoutState {
            head: head.stdout,
            changed: stamped.collect(),
        })
    }

    /// Whether a landing had nothing to land because no commit was made, or only such that cancel out, and nothing landed
    /// from its tree before.
    pub fn brought_nothing(&self, landing: &Landing) -> Result<bool, LandError> {
        if self.has_landed(&landing.tree, landing.tree_id)? {
            return Ok(false);
        }
        let tip = Landings::new(self.trees).landing_tip(&landing.target)?;
        self.trees
            .vault()
            .require(&self.trees.main_refs()?, &[&tip])?;
        if self.trees.contains(&tip, &landing.head)? {
            return Ok(true);
        }
        match self
            .trees
            .engine
            .look(|tx| tx.tree_by_id(landing.tree_id))?
        {
            Some(tree) => Ok(self.trees.cancels_out(&tree, &landing.head)?),
            None => Ok(false),
        }
    }

    /// Whether a tree has neither commits that its target lacks nor changes, and nothing landed from it.
    pub fn holds_nothing(&self, view: &TreeView) -> Result<bool, LandError> {
        Ok(view.ahead == Some(0)
            && view.dirty == Dirty::Known(false)
            && !self.has_landed(&view.tree.name, view.tree.id)?)
    }

    pub(super) fn has_landed(&self, name: &TreeName, id: TreeId) -> Result<bool, LandError> {
        let all = self.trees.engine.look(|tx| tx.landings_of(name))?;
        Ok(all
            .iter()
            .any(|one| one.tree_id == id && one.status == LandingStatus::Landed))
    }

    /// The landing that failed since work of an agent's tree last landed, if the target does not have that work yet: its
    /// task is not done before it has.
    pub fn failed_landing(&self, agent: &Agent) -> Result<Option<Landing>, LandError> {
        use LandingStatus::{Conflict, Landed, NothingToLand, Red};
        let name = agent.tree.as_ref().map(TreeName::as_str);
        let Some(tree) = name.and_then(|name| self.trees.named(Some(name)).ok()) else {
            return Ok(None);
        };
        let mut all = self.trees.engine.look(|tx| tx.landings_of(&tree.name))?;
        all.retain(|one| {
            let counts = matches!(one.status, Conflict | Landed | NothingToLand | Red);
            counts && one.tree_id == tree.id && !one.interim && one.reverts.is_none()
        });
        let failed = all.pop();
        let Some(landing) = failed.filter(|one| matches!(one.status, Conflict | Red)) else {
            return Ok(None);
        };
        let head = tree.head.as_deref().unwrap_or(&tree.base.commit);
        let is_there =
            self.trees.landed(&tree, head)?.is_some() || self.trees.cancels_out(&tree, head)?;
        Ok((!is_there).then_some(landing))
    }

    /// Moves an unchanged worktree to the trash. Commits up to `head` that cancel out count as no change. A worktree with
    /// anything else (commits on other branches, stashes, uncommitted files) stays, and the answer says what that is.
    pub fn leave_unchanged(&self, name: &TreeName, head: Option<&str>) -> Option<String> {
        let request = RemoveRequest {
            empty_head: head.map(str::to_owned),
            ..RemoveRequest::default()
        };
        let error = self.trees.remove(Some(name.as_str()), &request).err()?;
        if let TreeError::Removal { objections, .. } = &error
            && objections.iter().any(is_about_work)
        {
            return Some(format!("there was nothing to land, but {error}"));
        }
        // The landing may have cleaned up already.
        if !matches!(
            error,
            TreeError::InTrash { .. } | TreeError::NotFound { .. }
        ) {
            self.trees.engine.notice(format!("{name} stays: {error}"));
        }
        None
    }
}

/// Whether it would be lost, not merely disturbed.
fn is_about_work(objection: &Objection) -> bool {
    match objection {
        Objection::Dirty { .. } | Objection::Unlanded { .. } | Objection::Unknown(_) => true,
        Objection::Running(_) | Objection::Locked(_) | Objection::Referenced(_) => false,
    }
}
