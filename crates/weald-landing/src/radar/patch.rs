//! Everything that a tree holds since its base, committed or not, as one patch.

use weald_git::Git;

use crate::LandError;
use crate::Landings;

/// A tree's work as a patch.
pub struct WorkPatch {
    /// For `git apply`, on the tree's base.
    pub text: Vec<u8>,
    /// The commit it applies to.
    pub base: String,
    /// Files that were too large for it.
    pub left_out: Vec<String>,
}

impl Landings<'_> {
    /// What a tree would add to its base if everything in it were committed. Nothing in it is written.
    pub fn work_patch(&self, name: &str) -> Result<WorkPatch, LandError> {
        let tree = self.trees.named(Some(name))?;
        let folder = self.trees.workshop_directory()?;
        let repository = folder.path().join("patch.git");
        self.lay_out(&repository)?;
        let state = self.observe(&tree, &repository, None)?;
        let base = tree.base.commit.clone();
        let text = Git::new(&repository, "diff")
            .args(["--binary", "--full-index", "--no-ext-diff", "--no-textconv"])
            .args(["--no-color", "--no-renames", "--end-of-options"])
            .args([&base, &state.commit])
            .run()?;
        Ok(WorkPatch {
            text,
            base,
            left_out: state.left_out,
        })
    }
}
