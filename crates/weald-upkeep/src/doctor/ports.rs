//! Ports: leases that nobody holds, and trees whose lease is gone.

use weald_core::tree::Tree;

use super::leftovers::of_ports;
use super::{Code, Finding, Round, TreeError};

impl Round<'_, '_> {
    /// After everything else: a tree may have been finished, taken back or moved by a repair.
    pub(super) fn check_ports(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        for free in of_ports(trees) {
            self.note(free);
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
        let finding = Finding::new(Code::PortsLost, what, "reserve them again, or others");
        self.note(finding.repair(|| trees.hold_ports(tree.clone(), None).map(drop)));
    }
}
