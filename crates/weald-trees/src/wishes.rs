//! What trees that are made now are to have besides what the configuration says.

use weald_core::claude::{ConeError, WorktreeSettings, cone};

use super::Trees;

/// What somebody else's settings want in a new tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Folders of main that git ignores, as links to them.
    pub links: Vec<String>,
    /// Which folders are checked out, as patterns of a sparse checkout; `None`: as in main.
    pub(crate) sparse: Option<String>,
}

impl Wishes {
    /// What Claude Code's settings want.
    pub fn of(settings: &WorktreeSettings) -> Result<Self, ConeError> {
        let sparse = match settings.sparse.is_empty() {
            true => None,
            false => Some(cone(&settings.sparse)?),
        };
        Ok(Self {
            links: settings.links.clone(),
            sparse,
        })
    }
}

impl Trees<'_> {
    /// The same, for trees with these wishes.
    pub fn wishing(self, wishes: Wishes) -> Self {
        Self { wishes, ..self }
    }
}
