//! The check after a landing: the same machinery as the gate, on what landed. Nothing of it is remembered.

use std::sync::atomic::AtomicBool;

use weald_core::id::LandingId;
use weald_core::landing::{Landing, RevertCause};

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

    /// The check after a landing: what is red there is taken back, if nothing came on top of it.
    pub(super) fn check_landed(&self, landing: &Landing) -> Result<(), LandError> {
        let command = &self.trees.config.landing_check;
        let Some(tip) = landing.new_tip.as_deref().filter(|_| !command.is_empty()) else {
            return Ok(());
        };
        let (why, log) = match self.run_check(landing.id, tip, command) {
            Ok(Verdict::Red { why, log }) => (why, log),
            Ok(Verdict::Green(_) | Verdict::Cancelled) => return Ok(()),
            // It has landed, whatever became of the check.
            Err(error) => {
                let what = format!("the check after landing {} did not run", landing.id);
                self.trees.engine.notice(format!("{what}: {error}"));
                return Ok(());
            }
        };
        let told = format!(
            "the check after landing {} of {} is red: {why} ({})",
            landing.id,
            landing.tree,
            log.display()
        );
        if self.landing_tip(&landing.target)? != tip {
            let told = format!(
                "{told}; {} moved since, so nothing was undone",
                landing.target
            );
            self.trees.engine.notice(told.clone());
            return self.tell_owner(landing, &told);
        }
        // Nobody waits for it, so whoever works the queue does it next.
        let revert = self.queue_undoing(landing.id, None, RevertCause::Check)?;
        self.trees
            .engine
            .notice(format!("{told}; landing {} undoes it", revert.id));
        self.tell_owner(landing, &format!("{told}; landing {} undoes it", revert.id))?;
        match &landing.task {
            Some(id) => self.follow_up(
                format!("Repair landing {} of {}", landing.id, landing.tree),
                id,
            ),
            None => Ok(()),
        }
    }
}
