//! Any command.

use super::{Brief, Driver, DriverError, Input, Observed, Start};

/// A command of the user's.
pub struct Command;

impl Driver for Command {
    fn name(&self) -> &str {
        "command"
    }

    fn start(&self, brief: &Brief<'_>) -> Result<Start, DriverError> {
        if brief.arguments.is_empty() {
            return Err(DriverError::NoCommand(self.name().to_owned()));
        }
        Ok(Start {
            command: brief.arguments.to_vec(),
            environment: Vec::new(),
            input: Input::Nothing,
            notes: Vec::new(),
        })
    }

    fn read(&self, _line: &[u8]) -> Vec<Observed> {
        vec![Observed::Raw]
    }

    fn say(&self, _text: &str) -> Option<Vec<u8>> {
        None
    }
}
