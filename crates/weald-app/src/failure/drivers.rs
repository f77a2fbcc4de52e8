//! Errors of drivers.

use crate::agents::drivers::DriverError;
use serde_json::json;
use weald_core::error_code::ErrorCode;

use super::Failure;
use crate::exit;

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        let message = error.to_string();
        match error {
            DriverError::Unknown { name, known } => {
                Self::new("driver_not_found", exit::NOT_FOUND, message)
                    .hint("weald config show agent.drivers")
                    .details(json!({"driver": name, "known": known}))
            }
            DriverError::NoCommand => Self::new("no_command", exit::USAGE, message)
                .hint("weald config set agent.command 'PROGRAM {prompt}'"),
            DriverError::BadCommandLine { key, line, .. } => {
                Self::new("config_invalid", exit::REFUSED, message)
                    .hint(format!("weald config show {key}"))
                    .details(json!({"key": key, "value": line}))
            }
            DriverError::NotInstalled { driver, program } => Self::new(
                "driver_not_installed",
                exit::NOT_FOUND,
                message,
            )
            .hint(match driver.as_str() {
                // It was written behind `--`, or is agent.command.
                "command" => format!("install `{program}`, or give another command"),
                _ => format!(
                    "install `{program}`, or choose another driver: weald config show agent.drivers lists them"
                ),
            })
            .details(json!({"driver": driver, "program": program})),
            DriverError::LoggedOut { command, .. } => {
                Self::new(ErrorCode::LoggedOut, exit::REFUSED, message)
                    .hint(format!("log in again: {command}"))
            }
            DriverError::Hidden { program } => {
                let name = program.file_name().unwrap_or_default().display();
                Self::new("driver_not_visible", exit::NOT_FOUND, message)
                    .hint(format!(
                        "cp {} ~/{name}, then name ~/{name} instead",
                        program.display()
                    ))
                    .details(json!({"program": program}))
            }
            DriverError::NoInterpreter {
                program,
                interpreter,
            } => Self::new("not_executable", exit::NOT_FOUND, message)
                .hint(format!(
                    "install {interpreter}, or change the first line of {}",
                    program.display()
                ))
                .details(json!({"program": program, "interpreter": interpreter})),
            DriverError::NotTrusted { program, .. } => {
                let name = program.file_name().unwrap_or_default().display();
                Self::new("driver_not_trusted", exit::REFUSED, message)
                    .hint(format!(
                        "install {name} outside of every worktree, or run it without its login: --driver command -- {name} …"
                    ))
                    .details(json!({"program": program}))
            }
            DriverError::NotInteractive { driver } => {
                Self::new("not_interactive", exit::USAGE, message)
                    .details(json!({"driver": driver}))
            }
            DriverError::BadPrompt { driver, .. } => {
                Self::new("prompt_invalid", exit::REFUSED, message)
                    .hint("use {prompt_file} in the command, or weald config set agent.prompt file")
                    .details(json!({"driver": driver}))
            }
            DriverError::BadConversation { driver, .. } => {
                Self::new("conversation_invalid", exit::REFUSED, message)
                    .details(json!({"driver": driver}))
            }
            DriverError::Seeding { driver, path, .. } => {
                Self::new("driver_state", exit::REFUSED, message)
                    .hint(format!("check {}, then move it out of the way", path.display()))
                    .details(json!({"driver": driver, "path": path}))
            }
        }
    }
}
