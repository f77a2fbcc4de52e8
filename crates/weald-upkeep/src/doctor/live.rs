//! Checks of a tree that should be there: its directory, its repository, and how git and commands inside find it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeKind};
use weald_core::tree_rules::TreeInput;
use weald_git::{Door, Reference};

use super::{Code, Finding, Round, Severity};
use weald_control::marker::TreeNote;
use weald_trees::Site;
use weald_trees::TreeError;
use weald_trees::locked_text;
use weald_trees::repairs::Borrowing;

/// A lock in a tree is told when it is older.
const LOCK_STALE: Duration = Duration::from_secs(600);

/// What to do about another directory where a worktree was.
pub(super) fn adoption(path: &Path) -> String {
    format!(
        "weald does not touch it; if you restored or copied it there: weald doctor --adopt {}",
        path.display()
    )
}

impl Round<'_, '_> {
    pub(super) fn check_live(&mut self, tree: &Tree) {
        let trees = self.trees;
        for run in tree.runs.iter().filter(|run| !trees.may_live(&run.process)) {
            let what = format!(
                "the end of a run of {} in {} was not recorded",
                run.program, tree.name
            );
            let input = TreeInput::RunEnds {
                process: run.process.clone(),
                timed_out: false,
                code: None,
            };
            let end = || trees.decide(tree, Durability::Process, input).map(drop);
            self.note(Finding::new(Code::RunUnfinished, what, "record its end").repair(end));
        }
        match trees.site(tree) {
            Ok(site) => self.check_present(tree, &site),
            Err(TreeError::Missing { .. }) => self.check_missing(tree),
            Err(TreeError::Damaged { .. }) if tree.kind == TreeKind::Linked => {
                if let Some(why) = trees.other_repository(tree) {
                    let what = format!(
                        "worktree {} belongs to another repository: {why}",
                        tree.name
                    );
                    let would = "check what is there; weald does not touch it";
                    self.note(Finding::new(Code::TreeReplaced, what, would));
                    return;
                }
                let what = format!("the .git file of worktree {} points elsewhere", tree.name);
                let finding = Finding::new(Code::PointerWrong, what, "write it again");
                self.note(finding.repair(|| trees.write_linked_pointer(tree)));
                if self.ledger.fix
                    && let Ok(site) = trees.site(tree)
                {
                    self.check_present(tree, &site);
                }
            }
            Err(error @ TreeError::Damaged { .. }) => self.damaged(tree, error.to_string()),
            Err(error) => {
                let would = adoption(&tree.path);
                self.note(Finding::new(Code::TreeReplaced, error.to_string(), would));
            }
        }
    }

    /// The directory is not where it was: perhaps it was moved.
    fn check_missing(&mut self, tree: &Tree) {
        let trees = self.trees;
        let what = format!("worktree {} is not at {}", tree.name, tree.path.display());
        match self.whereabouts.of(trees, tree) {
            Some(path) => {
                let what = format!("{what}, but at {}", path.display());
                let finding = Finding::new(Code::TreeMoved, what, "record the new place");
                self.note(finding.repair(|| trees.accept_move(tree, &path)));
            }
            None => {
                let would = format!(
                    "to recreate it: weald ensure {0}; to remove its record: weald rm {0}",
                    tree.name
                );
                self.note(Finding::new(Code::TreeMissing, what, would));
            }
        }
    }

    /// What keeps git from working in a sealed tree. Nothing of it is weald's to mend: an agent may have meant it.
    fn check_repository(&mut self, tree: &Tree) {
        let trees = self.trees;
        let Ok((_, door)) = trees.opened(tree) else {
            return;
        };
        if tree.kind == TreeKind::Sealed {
            let head = door.read(".git/HEAD", 4096).ok();
            let text = head.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let is_head = text.as_deref().and_then(Reference::parse).is_some();
            let lacks = match (is_head, door.has_directory(".git/refs")) {
                (true, true) => None,
                (false, _) if text.is_none() => Some("has no HEAD"),
                (false, _) => Some("has a HEAD that points to nothing"),
                (true, false) => Some("has no refs"),
            };
            if let Some(lacks) = lacks {
                self.damaged(
                    tree,
                    format!("the repository in worktree {} {lacks}", tree.name),
                );
            }
            self.check_locks_inside(tree, &door);
        }
        let is_owner = |uid| uid == rustix::process::geteuid().as_raw();
        let foreign = [tree.path.clone(), tree.path.join(".git")];
        let foreign = foreign.iter().find(|path| {
            let found = path.symlink_metadata();
            found.is_ok_and(|found| !is_owner(found.uid()))
        });
        if let Some(path) = foreign {
            let what = format!("{} belongs to another user", path.display());
            let would = format!(
                "chown -R it back: git and weald work with your own files in {}",
                tree.path.display()
            );
            self.note(Finding::new(Code::TreeOwner, what, would));
        }
    }

    fn damaged(&mut self, tree: &Tree, what: String) {
        let would = format!(
            "its files are still there; to move them to the trash: weald rm --discard {}",
            tree.name
        );
        self.note(Finding::new(Code::TreeDamaged, what, would));
    }

    /// Locks of a git that was killed in the tree, while nothing of weald's runs there.
    fn check_locks_inside(&mut self, tree: &Tree, door: &Door) {
        let trees = self.trees;
        if tree.runs.iter().any(|run| trees.may_live(&run.process)) {
            return;
        }
        for lock in [".git/index.lock", ".git/HEAD.lock", ".git/config.lock"] {
            let Some(age) = door.age(lock).filter(|age| *age > LOCK_STALE) else {
                continue;
            };
            let path = tree.path.join(lock);
            let what = format!("{} is {} old", path.display(), super::locks::told_age(age));
            let would = format!(
                "if no git is running in the worktree: rm {}",
                path.display()
            );
            self.note(Finding::new(Code::TreeLock, what, would));
        }
    }

    fn check_present(&mut self, tree: &Tree, site: &Site) {
        let trees = self.trees;
        self.check_repository(tree);
        let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
        let known = trees.registrations().read(name);
        let points_back = known.as_ref().is_some_and(|known| {
            known.path() == Some(&tree.path)
                && TreeNote::of(known).is_some_and(|note| note.tree == tree.id)
        });
        if self.broken_entries.contains(name) {
            // Told with the entries, and still broken: there is nothing to compare.
        } else if !points_back && let Some(identity) = tree.identity {
            let what = format!("worktree {} is not registered in the repository", tree.name);
            let finding = Finding::new(Code::RegistrationLost, what, "register it");
            self.note(finding.repair(|| {
                let registration = trees.reinstate_registration(tree, identity)?;
                let input = TreeInput::Repaired {
                    identity,
                    path: tree.path.clone(),
                    registration,
                };
                trees.decide(tree, Durability::Process, input).map(drop)
            }));
        } else if let Some(shown) = known.as_ref().and_then(|known| known.locked.as_ref())
            && trees.was_lock(tree, shown)
        {
            let what = format!("git still shows the lock that {} had", tree.name);
            let finding = Finding::new(Code::ForeignLock, what, "remove the lock from git's list");
            self.note(finding.repair(|| trees.show_no_lock(&tree.name)));
        } else if known.is_some_and(|known| known.locked != locked_text(tree))
            && tree.kind == TreeKind::Sealed
        {
            let what = format!("the lock that git shows for {} is not weald's", tree.name);
            let would = format!(
                "if it is not wanted: git worktree unlock {}",
                tree.path.display()
            );
            self.note(Finding::new(Code::ForeignLock, what, would).rated(Severity::Info));
        }
        if tree.kind == TreeKind::Sealed {
            self.check_borrowing(tree, site);
        }
        if !trees.is_findable(tree) {
            let what = format!(
                "commands inside worktree {} would not find the repository",
                tree.name
            );
            let finding = Finding::new(Code::MarkerLost, what, "write the marker");
            self.note(finding.repair(|| trees.write_markers(tree)));
        }
    }

    /// A place that is there may serve: only what leads nowhere is written again.
    fn check_borrowing(&mut self, tree: &Tree, site: &Site) {
        let trees = self.trees;
        match trees.borrowing(tree) {
            Borrowing::Here => {}
            Borrowing::Nowhere(old) => {
                let what = format!(
                    "worktree {} borrows objects from a place that is gone",
                    tree.name
                );
                let would = "point it at the vault; the old content is kept";
                let finding = Finding::new(Code::AlternatesBroken, what, would);
                self.note(finding.repair(|| trees.borrow_here(tree, site, old.as_deref())));
            }
            Borrowing::Odd(why) => {
                let what = format!(
                    "worktree {} does not borrow from the vault: {why}",
                    tree.name
                );
                let would = format!(
                    "to see whether anything is missing: git -C {} fsck",
                    tree.path.display()
                );
                self.note(Finding::new(Code::AlternatesBroken, what, would));
            }
        }
    }
}
