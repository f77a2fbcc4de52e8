//! Whether a driver's program is there, so that nothing is begun that can't run.

use std::path::Path;

use super::{DriverError, Variable};
use weald_control::files::is_program;

/// Errors when no folder of the search path has the program.
pub(super) fn require(
    driver: &str,
    program: &str,
    variable: &Variable<'_>,
) -> Result<(), DriverError> {
    let path = variable("PATH").unwrap_or_default();
    // A folder that is not absolute is one in the worktree.
    let has_it = |folder: &str| {
        let folder = Path::new(folder);
        folder.is_relative() || is_program(&folder.join(program))
    };
    if !path.is_empty() && path.to_string_lossy().split(':').any(has_it) {
        return Ok(());
    }
    Err(DriverError::NotInstalled {
        driver: driver.to_owned(),
        program: program.to_owned(),
    })
}
