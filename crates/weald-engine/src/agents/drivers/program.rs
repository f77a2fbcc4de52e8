//! Whether a driver's program is there, so that nothing is begun that can't run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{DriverError, Variable};

/// Errors when no folder of the search path has the program.
pub(super) fn require(
    driver: &str,
    program: &str,
    variable: &Variable<'_>,
) -> Result<(), DriverError> {
    let path = variable("PATH").unwrap_or_default();
    let is_there = |folder: &Path| {
        folder
            .join(program)
            .metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if path
        .to_string_lossy()
        .split(':')
        .any(|folder| is_there(Path::new(folder)))
    {
        return Ok(());
    }
    Err(DriverError::NotInstalled {
        driver: driver.to_owned(),
        program: program.to_owned(),
    })
}
