//! The target inside a sealed worktree while a command runs there: `git merge main` inside merges what landed a moment ago.
//!
//! Whoever watches the run does this, not whoever lands: a landing touches nothing in other worktrees. While nothing moves,
//! it costs three looks at files of main. A worktree that keeps a ref from being updated is left alone after a few tries.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use weald_core::tree::{Tree, TreeKind};
use weald_git::{Door, Reference};

use super::inside::Look;
use super::{TreeError, Trees};

/// How often main is looked at.
const EVERY: Duration = Duration::from_millis(400);

/// How often an update is tried for one state of main.
const TRIES: u32 = 5;

/// Inode, length and time of a file, as long as it is there.
type Mark = Option<(u64, u64, i64, i64)>;

impl Trees<'_> {
    /// Does `work`, and meanwhile keeps the target inside a tree as it is in main.
    pub fn with_fresh_target<T>(&self, tree: &Tree, work: impl FnOnce() -> T) -> T {
        if tree.kind == TreeKind::Linked {
            // It shares main's refs.
            return work();
        }
        thread::scope(|scope| {
            let (end, ended) = mpsc::channel::<()>();
            scope.spawn(move || self.watch_target(tree, &ended));
            let done = work();
            drop(end);
            done
        })
    }

    fn watch_target(&self, tree: &Tree, ended: &Receiver<()>) {
        let (mut settled, mut tries) = (None, 0);
        while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            let marks = self.target_marks(tree);
            if settled.as_ref() == Some(&marks) {
                continue;
            }
            // What went wrong is tried again, and is no trouble of the run.
            let is_done = matches!(self.refresh_inside(tree), Ok(false));
            tries += 1;
            if is_done || tries >= TRIES {
                (settled, tries) = (Some(marks), 0);
            }
        }
    }

    fn refresh_inside(&self, tree: &Tree) -> Result<bool, TreeError> {
        let site = self.site(tree)?;
        let look = Look {
            branch: Door::open(&site.path).ok().and_then(|door| branch(&door)),
            ..Look::default()
        };
        self.refresh_target(tree, &site, &look)
    }

    /// Of every file that changes when the target moves in main.
    fn target_marks(&self, tree: &Tree) -> [Mark; 3] {
        let main = self.common_dir();
        let files = [
            main.join("refs/heads").join(&tree.target),
            main.join("packed-refs"),
            main.join("reftable/tables.list"),
        ];
        files.map(|file| file.symlink_metadata().ok().map(|found| mark(&found)))
    }
}

fn mark(found: &Metadata) -> (u64, u64, i64, i64) {
    (found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}

/// The branch that an inner HEAD is on, as far as the host dares to read it.
fn branch(door: &Door) -> Option<String> {
    let text = door.read(".git/HEAD", 4096).ok()?;
    match Reference::parse(String::from_utf8_lossy(&text).trim_end())? {
        Reference::Symbolic(name) => Some(name.strip_prefix("refs/heads/")?.to_owned()),
        Reference::Direct(_) => None,
    }
}
