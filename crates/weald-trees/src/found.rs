//! What a look found, and whether it still holds, as far as that can be seen without another one.

use weald_core::tree::{Tree, TreeKind};
use weald_git::{Door, FileTrace, Reference};

use super::Trees;
use super::inside::Look;
use super::view::peek_head;

/// What a look found, with what shows that somebody staged or committed since.
#[derive(Debug, Clone)]
pub struct Found {
    pub look: Look,
    /// From before the look, so that nothing escapes both.
    pub(super) index: Option<FileTrace>,
}

impl Trees<'_> {
    /// Whether HEAD is still the one that was found, and nobody wrote the index. Files that were only written don't show.
    pub fn is_as_found(&self, tree: &Tree, found: &Found) -> bool {
        self.index_of(tree) == found.index && self.peeked_head(tree) == found.look.head
    }

    pub(super) fn index_of(&self, tree: &Tree) -> Option<FileTrace> {
        let (site, _) = self.opened(tree).ok()?;
        Door::open(&site.git_dir).ok()?.trace("index")
    }

    fn peeked_head(&self, tree: &Tree) -> Option<String> {
        let (_, door) = self.opened(tree).ok()?;
        if tree.kind == TreeKind::Sealed {
            return peek_head(&door);
        }
        let commit = match Reference::parse(&self.registered_head(tree)?)? {
            Reference::Direct(commit) => commit,
            Reference::Symbolic(name) => self.repository().resolve(&name).ok()??,
        };
        Some(commit.into())
    }
}
