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

/// A descriptor that is not open.
const BAD_DESCRIPTOR: i32 = rustix::io::Errno::BADF.raw_os_error();

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let is_closed = match &error {
            ClientError::Unreachable(source) => source.raw_os_error() == Some(BAD_DESCRIPTOR),
            ClientError::NoAnswer(_) => false,
        };
        let hint = match is_closed {
            true => {
                "the program that started this closed the descriptor in $WEALD_BROKER_FD; at sandbox level full none is needed"
            }
            false => "this run may have ended; outside of it: weald status",
        };
        Self::new("broker_gone", exit::BUSY, error.to_string())
            .hint(hint)
            .details(Value::Object(Default::default()))
    }
}
