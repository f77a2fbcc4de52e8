//! An agent in the main checkout, because somebody said so: no tree, no run on a tree's record, no landing.
//!
//! The checkout is the one directory it can write, its `.git` included, so that it can commit. weald's own folder in there
//! and trees that lie inside the checkout are not seen.

use std::path::Path;

use weald_core::id::TreeId;
use weald_core::tree::{Base, Tree};

use super::AgentError;
use super::Agents;
use weald_control::confinement::{SandboxRequest, sandbox_policy, without_secrets};
use weald_trees::RunRequest;

/// What the place is called where a tree's name is wanted.
const NAME: &str = "main-checkout";

impl Agents<'_> {
    /// Prepares a run in the main checkout.
    pub(super) fn prepare_main(&self) -> Result<RunRequest, AgentError> {
        let root = self.trees.place.root();
        let common = self.trees.place.repository().common_dir().to_owned();
        if common != root.join(".git") {
            return Err(AgentError::NoCheckout { path: root });
        }
        let mut masked = self.trees.control_plane(&root);
        masked.push(common.join("weald"));
        for tree in self
            .trees
            .records()?
            .iter()
            .filter(|tree| tree.path.starts_with(&root))
        {
            let inside = [tree.path.clone(), self.trees.trash_directory(&tree.path)?];
            masked.extend(inside.into_iter().filter(|path| path.is_dir()));
        }
        masked.dedup();
        let mut policy = sandbox_policy(
            self.trees.config,
            SandboxRequest {
                main: root.clone(),
                home: self.trees.host.home.clone(),
                variables: &self.trees.host.environment,
                write: vec![root.clone()],
                masked,
                state: self.trees.host.state.clone(),
                home_layer: self.trees.home_layer(&self.as_tree(&root)?),
            },
        );
        policy.show.extend(self.trees.shown(&root));
        let mut environment =
            without_secrets(self.trees.config, self.trees.host.environment.clone());
        environment.retain(|(name, _)| !name.to_string_lossy().starts_with("WEALD_TREE"));
        environment.push(("WEALD_MAIN".into(), root.clone().into()));
        Ok(RunRequest {
            tree: self.as_tree(&root)?,
            policy: Some(policy),
            directory: root,
            environment,
            notes: Vec::new(),
        })
    }

    /// The checkout where a prompt speaks of a tree; it is on no record.
    fn as_tree(&self, root: &Path) -> Result<Tree, AgentError> {
        let (target, commit) = self.trees.target.clone().unwrap_or_default();
        let base = Base {
            reference: target.clone(),
            commit,
        };
        let name = NAME.parse().expect("a name");
        Ok(Tree {
            branch: target,
            ..Tree::new(TreeId(0), name, root.to_owned(), base, self.trees.now()?)
        })
    }
}
