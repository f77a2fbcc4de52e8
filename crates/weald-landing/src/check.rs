//! The check after a landing: the same machinery as the gate, on what landed. Nothing of it is remembered.

use std::sync::atomic::AtomicBool;

use weald_core::id::LandingId;

use super::LandError;
use super::gate::{GateRequest, Purpose, Verdict};
use crate::Landings;

impl Landings<'_> {
    /// Runs `command` on `commit`, in a tree of its own. A command of the repository's that nobody approved is refused.
    pub(crate) fn run_check(
        &self,
        landing: LandingId,
        commit: &str,
        command: &str,
    ) -> Result<Verdict, LandError> {
        self.approved_command("landing.check")?;
        let request = GateRequest {
            landing,
            candidate: commit,
            command,
        };
        let tree = self.tree_of(commit)?;
        let key = self.gate_key(&tree, &request)?;
        let never = AtomicBool::new(false);
        self.test(Purpose::Check, &request, (&tree, &key), &never)
    }
}
