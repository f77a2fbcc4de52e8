//! Ports: leases that nobody holds, and trees whose lease is gone.

use weald_core::tree::Tree;

use super::{Code, Round, Severity, TreeError};

impl Round<'_, '_> {
    /// After everything else: a tree may have been finished, taken back or moved by a repair.
    pub(super) fn check_ports(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        for (cell, lease) in trees.free_leases() {
            let what = format!(
                "ports from {}0 on are reserved for worktree {} of {}, which is gone",
                cell,
                lease.tree,
                lease.repository.display()
            );
            self.found(
                Code::PortsStale,
                Severity::Info,
                what,
                "free the ports",
                || trees.clear_lease(cell),
            );
        }
        for tree in trees.records()? {
            if tree.is_live() && !tree.removing && trees.site(&tree).is_ok() {
                self.check_lease(&tree);
            }
        }
        Ok(())
    }

    /// A tree that is there has its ports to itself.
    fn check_lease(&mut self, tree: &Tree) {
        let trees = self.trees;
        let Some(block) = tree.ports.filter(|_| !trees.holds_ports(tree)) else {
            return;
        };
        let what = format!(
            "ports {} of worktree {} are not reserved for it",
            block.to_text(),
            tree.name
        );
        self.found(
            Code::PortsLost,
            Severity::Warn,
            what,
            "reserve them again, or others",
            || trees.hold_ports(tree.clone(), None).map(drop),
        );
    }
}
