//! A sealed worktree and main while a command runs there. The target inside is kept as it is in main, so that `git merge main`
//! inside merges what landed a moment ago. The worktree's branch in main follows its commits, so that `git merge wt/fix` there
//! merges the newest.
//!
//! Whoever watches the run does this, not whoever lands: a landing touches nothing in other worktrees. While nothing moves,
//! it costs three looks at files of main. A worktree that keeps a ref from being updated is left alone after a few tries.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use weald_core::tree::{Tree, TreeKind};
use weald_git::{Door, Reference, between_steps};

use super::inside::Look;
use super::view::peek_head;
use super::{TreeError, Trees};

/// How often main is looked at.
const EVERY: Duration = Duration::from_millis(400);

/// How often an update is tried for one state of main, and an import for one commit.
const TRIES: u32 = 5;

/// How many times as long as the last import took the next one waits: a run that commits all the time costs no more than this
/// share of a processor, and a pack in main now and then.
const REST: u32 = 4;

/// Inode, length and time of a file, as long as it is there.
type Mark = Option<(u64, u64, i64, i64)>;

/// What is known of a worktree's commits.
struct Commits {
    /// The newest that was taken in, or given up.
    head: String,
    tries: u32,
    rests_until: Option<Instant>,
}

impl Commits {
    fn of(tree: &Tree) -> Self {
        Self {
            head: tree.tip().to_owned(),
            tries: 0,
            rests_until: None,
        }
    }
}

impl Trees<'_> {
    /// Does `work`, and meanwhile keeps the target inside a tree as it is in main, and main's branch as it is in the tree.
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
        let mut commits = Commits::of(tree);
        while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            self.take_in_commits(tree, &mut commits);
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

    /// Takes in what was committed since the last time; main's branch follows. What goes wrong is left to the end of the run.
    fn take_in_commits(&self, tree: &Tree, commits: &mut Commits) {
        if commits
            .rests_until
            .is_some_and(|until| Instant::now() < until)
        {
            return;
        }
        let door = self.site(tree).ok();
        let door = door.and_then(|site| Door::open(&site.path).ok());
        let Some(head) = door.and_then(|door| peek_head(&door)) else {
            return;
        };
        if head == commits.head {
            return;
        }
        let began = Instant::now();
        let is_done = between_steps(|| self.import_newest(tree)).is_ok();
        commits.tries += 1;
        if is_done || commits.tries >= TRIES {
            (commits.head, commits.tries) = (head, 0);
        }
        commits.rests_until = Some(Instant::now() + began.elapsed() * REST);
    }

    /// Imports by the newest record: others import, too.
    fn import_newest(&self, tree: &Tree) -> Result<(), TreeError> {
        let newest = self.engine.look(|tx| tx.tree_by_id(tree.id))?;
        if let Some(newest) = newest.filter(Tree::is_live) {
            self.import_and_follow(&newest, &self.site(&newest)?)?;
        }
        Ok(())
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
