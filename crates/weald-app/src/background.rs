//! What nobody waits for: weald starts itself again for it, behind everybody else.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{nice, setsid};

use crate::Call;
use crate::Trees;

impl Call<'_> {
    /// Fills the pool in the background, if it wants that. Nobody hears of it.
    pub fn refill_pool(&self, trees: &Trees<'_>, root: &Path) {
        if trees.pool_wants_filling() {
            // What is not done costs time or room, nothing else.
            let _ = self.start_behind(root, &["pool", "fill", "--background"]);
        }
    }

    /// The same for the upkeep of the vault.
    pub fn keep_vault_up(&self, trees: &Trees<'_>, root: &Path) {
        if trees.vault().wants_upkeep() {
            let _ = self.start_behind(root, &["vault", "maintain", "--background"]);
        }
    }

    /// Starts weald again with these words; it has to [`App::step_back`]. Answers whether it was started.
    pub fn start_behind(&self, root: &Path, words: &[impl AsRef<OsStr>]) -> bool {
        let Ok(helper) = self.helper() else {
            return false;
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "weald itself, to go on in the background"
        )]
        let mut command = std::process::Command::new(helper);
        let _ = weald_sandbox::keep_descriptors();
        command
            .args(words)
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .is_ok()
    }

    /// Out of the terminal's session, behind everybody else, and heard by nobody.
    pub fn step_back(&self) {
        self.news.go_behind();
        // Where that is refused it is a little louder.
        let _ = setsid();
        let _ = nice(19);
    }
}
