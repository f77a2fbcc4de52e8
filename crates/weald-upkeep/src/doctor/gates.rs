//! Trees of gates whose process is gone.

use super::{Code, Round, Severity};

impl Round<'_, '_> {
    /// The next gate deletes them, too.
    pub(super) fn check_gates(&mut self) {
        let trees = self.trees;
        for path in trees.abandoned_gate_trees() {
            let what = format!(
                "{} is left over from a gate that was killed",
                path.display()
            );
            self.found(Code::Leftover, Severity::Info, what, "delete it", || {
                trees.clear_gate_tree(&path)
            });
        }
    }
}
