//! Traces of work in a tree that can be told without looking into it: they are read before it is judged and once more after
//! it was renamed, when nobody finds it by its path any more.
//!
//! Whoever stands in it can still write. What is committed later than this is taken in before the trash is purged.

use std::path::Path;

use weald_core::tree::{Tree, TreeKind};
use weald_git::{Door, FileTrace, Reference};

use crate::{TreeError, Trees};

/// Files of a repository that change when somebody commits, stages or stashes.
const TRACES: [&str; 7] = [
    "HEAD",
    "index",
    "logs/HEAD",
    "packed-refs",
    "refs/heads",
    "refs/stash",
    "reftable/tables.list",
];

/// What a tree's repository looked like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Traces {
    files: Vec<Option<FileTrace>>,
    tip: Option<String>,
}

impl Trees<'_> {
    /// The traces of a tree that is at `path` now.
    pub(super) fn traces(&self, tree: &Tree, path: &Path) -> Result<Traces, TreeError> {
        let (repository, below) = match tree.kind {
            TreeKind::Sealed => (path.to_owned(), ".git/"),
            TreeKind::Linked => {
                let name = tree.registration_name();
                (self.registrations().directory(name), "")
            }
        };
        let Ok(door) = Door::open(&repository) else {
            return Ok(Traces::default());
        };
        let head = match tree.kind {
            TreeKind::Sealed => {
                let text = door.read(&format!("{below}HEAD"), 4096).unwrap_or_default();
                Reference::parse(String::from_utf8_lossy(&text).trim_end())
            }
            TreeKind::Linked => self
                .registered_head(tree)
                .and_then(|text| Reference::parse(&text)),
        };
        let mut files: Vec<_> = TRACES
            .iter()
            .map(|name| door.trace(&format!("{below}{name}")))
            .collect();
        let mut tip = None;
        if let Some(Reference::Symbolic(name)) = &head {
            match tree.kind {
                TreeKind::Sealed => files.push(door.trace(&format!("{below}{name}"))),
                TreeKind::Linked => tip = self.repository().resolve(name)?,
            }
        }
        Ok(Traces {
            files,
            tip: tip.map(String::from),
        })
    }
}
