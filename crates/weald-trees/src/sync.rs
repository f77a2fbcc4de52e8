//! `weald sync`: the target, and what somebody else put on main's branch, come into the tree.

use serde::{Deserialize, Serialize};
use weald_core::store::Durability;
use weald_core::tree::{Base, Tree, TreeKind};
use weald_core::tree_rules::TreeInput;
use weald_git::is_ancestor;

use super::inside::{BringIn, SyncEnd};
use super::site::Site;
use super::view::TreeView;
use super::{TreeError, Trees};
use weald_control::steps::step;

/// How a sync ended.
#[derive(Debug, Clone, Serialize)]
pub struct Synced {
    pub tree: Tree,
    pub outcome: SyncOutcome,
    /// What conflicts, left in the tree.
    pub conflicts: Vec<String>,
    /// What is going on in the tree because of that: `merge` or `rebase`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Files that git ignores and that were in the way, by their new names.
    pub set_aside: Vec<String>,
}

/// What bringing commits in came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncOutcome {
    #[default]
    UpToDate,
    Merged,
    Conflict,
}

#[derive(Default)]
struct Brought {
    outcome: SyncOutcome,
    conflicts: Vec<String>,
    set_aside: Vec<String>,
}

impl Brought {
    /// This, and then something more.
    fn and(mut self, next: Self) -> Self {
        if next.outcome != SyncOutcome::UpToDate {
            self.outcome = next.outcome;
        }
        self.conflicts.extend(next.conflicts);
        self.set_aside.extend(next.set_aside);
        self
    }
}

impl Trees<'_> {
    /// Brings the target in, unless a command runs there.
    pub fn sync(&self, name: Option<&str>, rebase: bool) -> Result<Synced, TreeError> {
        let view = self.look(name)?;
        self.require_idle(&view.tree)?;
        self.sync_looked(view, rebase)
    }

    /// The same for a command that runs there and asks for it: what else runs there is its own.
    pub fn sync_beside_runs(&self, name: Option<&str>, rebase: bool) -> Result<Synced, TreeError> {
        let view = self.look(name)?;
        self.sync_looked(view, rebase)
    }

    fn sync_looked(&self, view: TreeView, rebase: bool) -> Result<Synced, TreeError> {
        let (tree, look) = (view.tree, view.look.unwrap_or_default());
        let site = self.site(&tree)?;
        if let Some(operation) = look.operation {
            return Err(TreeError::InOperation {
                name: tree.name,
                operation,
            });
        }
        let tree = self.with_target(tree)?;
        let tip = self.target_tip(&tree)?;
        if !tree.diverged && self.has_all(&tree, look.head.as_deref(), tip.as_deref())? {
            return self.synced(tree, &site, Brought::default(), tip);
        }
        self.snapshot_before(&tree, &site, "sync")?;
        step("sync.kept");
        let mut brought = Brought::default();
        if tree.diverged
            && let Some(held) = self.branch_tip(&tree.branch)?
        {
            self.vault().require(&self.main_refs()?, &[&held])?;
            brought = brought.and(self.bring_in(&tree, &site, &held, &tree.branch, false)?);
            if !brought.conflicts.is_empty() {
                return self.synced(tree, &site, brought, None);
            }
        }
        if let Some(tip) = &tip {
            brought = brought.and(self.bring_in(&tree, &site, tip, &tree.target, rebase)?);
        }
        self.synced(tree, &site, brought, tip)
    }

    /// Whether there is nothing to bring in.
    fn has_all(
        &self,
        tree: &Tree,
        head: Option<&str>,
        tip: Option<&str>,
    ) -> Result<bool, TreeError> {
        let (Some(head), Some(tip)) = (head, tip) else {
            return Ok(tip.is_none());
        };
        Ok(is_ancestor(&self.comparing(tree), tip, head)?)
    }

    fn bring_in(
        &self,
        tree: &Tree,
        site: &Site,
        commit: &str,
        called: &str,
        rebase: bool,
    ) -> Result<Brought, TreeError> {
        if tree.kind == TreeKind::Sealed {
            self.require_files(commit)?;
        }
        let job = BringIn {
            commit: commit.to_owned(),
            onto: None,
            rebase,
            message: format!("Merge {called} into {}", tree.branch),
        };
        let reply = self.visit(tree.name.as_str(), site, job)?;
        let (outcome, conflicts) = match reply.end {
            SyncEnd::UpToDate => (SyncOutcome::UpToDate, Vec::new()),
            SyncEnd::Merged => (SyncOutcome::Merged, Vec::new()),
            SyncEnd::Conflict(paths) => (SyncOutcome::Conflict, paths),
            SyncEnd::Refused(why) => {
                return Err(TreeError::Unsupported {
                    what: format!("can't bring {called} into {}: {why}", tree.name),
                });
            }
            SyncEnd::Moved => return Err(self.no_answer(tree)),
        };
        Ok(Brought {
            outcome,
            conflicts,
            set_aside: reply.aside,
        })
    }

    fn synced(
        &self,
        tree: Tree,
        site: &Site,
        brought: Brought,
        tip: Option<String>,
    ) -> Result<Synced, TreeError> {
        step("sync.brought");
        let (mut tree, _) = self.import_and_follow(&tree, site)?;
        step("sync.imported");
        if let Some(commit) = tip.filter(|_| brought.conflicts.is_empty()) {
            let base = Base {
                reference: tree.target.clone(),
                commit,
            };
            // It may have started from a newer one: the remote's.
            let has_it = self.has_all(&tree, Some(&tree.base.commit), Some(&base.commit))?;
            if base != tree.base && (!has_it || base.commit == tree.base.commit) {
                tree = self.decide(&tree, Durability::Process, TreeInput::Synced(base))?;
            }
        }
        let view = self.look_at(tree)?;
        Ok(Synced {
            tree: view.tree,
            outcome: brought.outcome,
            conflicts: brought.conflicts,
            operation: view.look.and_then(|look| look.operation),
            set_aside: brought.set_aside,
        })
    }
}
