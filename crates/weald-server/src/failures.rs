//! Errors on both ends of the broker.

use serde_json::Value;
use weald_app::{Failure, exit};

use crate::broker::{ClientError, Fault};

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            hint: fault.hint,
            details: fault.details,
            exit: fault.exit,
        }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            message: failure.message,
            hint: failure.hint,
            details: failure.details,
            exit: failure.exit,
        }
    }
}

/// What a call answers that should be put to a launcher which can't listen.
const UNHEARD: i32 = rustix::io::Errno::NOSYS.raw_os_error();

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let is_unheard = match &error {
            ClientError::Unreachable(source) => source.raw_os_error() == Some(UNHEARD),
            ClientError::NoAnswer(_) => false,
        };
        let hint = match is_unheard {
            true => {
                "a container or a sandbox around this run keeps it from weald; on the host: weald status"
            }
            false => "this run may have ended; outside of it: weald status",
        };
        Self::new("broker_gone", exit::BUSY, error.to_string())
            .hint(hint)
            .details(Value::Object(Default::default()))
    }
}
