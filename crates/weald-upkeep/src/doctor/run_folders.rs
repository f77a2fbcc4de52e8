//! Folders of runs whose process is gone.

use super::{Code, Round, Severity};

impl Round<'_, '_> {
    /// The next run deletes them, too.
    pub(super) fn check_run_folders(&mut self) {
        let trees = self.trees;
        for path in trees.abandoned_run_folders() {
            let what = format!("{} is left over from a run that was killed", path.display());
            self.found(Code::Leftover, Severity::Info, what, "delete it", || {
                trees.clear_run_folder(&path)
            });
        }
    }
}
