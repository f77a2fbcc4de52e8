//! What runs and visits must not see, and what they have to see as it is.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use weald_sandbox::Policy;

use super::Trees;
use weald_control::confinement::{SandboxRequest, sandbox_policy};

impl Trees<'_> {
    /// What no sandbox of this repository shows: weald's state, and the pool, whose locks are the host's. Folders are made
    /// first: a mask lies only on what is there, and the next run may be the first that has one.
    pub fn control_plane(&self, directory: &Path) -> Vec<PathBuf> {
        let mut hidden = self.place.hidden();
        for folder in &hidden {
            // Where none can be made, nobody else has one either.
            let _ = std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder);
        }
        hidden.extend(directory.parent().map(|root| root.join(".pool")));
        // A spare is made in the pool itself.
        hidden.retain(|folder| !directory.starts_with(folder));
        hidden
    }

    /// What runs must not see, by its name and by where it really is.
    pub fn hidden_from_runs(&self) -> Vec<PathBuf> {
        let main = self.place.root();
        let named = self.unseen(&main).hidden.into_iter();
        let both = named.flat_map(|path| [path.canonicalize().ok(), Some(path)]);
        both.flatten().collect()
    }

    /// What no visit sees: whatever a run does not.
    pub fn unseen(&self, directory: &Path) -> Policy {
        let request = SandboxRequest {
            main: self.place.root(),
            home: self.host.home.clone(),
            variables: &self.host.environment,
            write: vec![directory.to_owned()],
            masked: self.control_plane(directory),
            state: self.host.state.clone(),
            home_layer: None,
        };
        sandbox_policy(self.config, request)
    }

    /// What a run has to see as it is: though it may lie below a directory that is private inside, or in the home, which is
    /// seen through a layer.
    pub fn shown(&self, tree: &Path) -> Vec<PathBuf> {
        let common = self.common_dir().to_owned();
        let mut shown = vec![self.place.root(), common];
        let is_layered = |path: &Path| {
            let home = self.host.home.as_deref();
            home.is_some_and(|home| path.starts_with(home) && path != home)
        };
        shown.retain(|path| {
            (is_private_inside(path) || is_layered(path))
                && path.is_dir()
                && !path.starts_with(tree)
        });
        shown
    }
}

/// Whether something lies below a directory that a run at level full has for itself.
pub(crate) fn is_private_inside(path: &Path) -> bool {
    let private = ["/tmp", "/var/tmp", "/run"];
    private.iter().any(|top| path.starts_with(top))
}
