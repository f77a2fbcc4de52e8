//! Whether a driver's program is there, so that nothing is begun that can't run.

use std::path::Path;

use super::{DriverError, Variable};
use crate::files::is_program;

/// Errors when no folder of the search path has the program.
pub(super) fn require(
    driver: &str,
    program: &str,
    variable: &Variable<'_>,
) -> Result<(), DriverError> {
    let path = variable("PATH").unwrap_or_default();
    if path
        .to_string_lossy()
        .split(':')
        .any(|folder| is_program(&Path::new(folder).join(program)))
    {
        return Ok(());
    }
    Err(DriverError::NotInstalled {
        driver: driver.to_owned(),
        program: program.to_owned(),
    })
}
