//! Errors on both ends of the broker.

use serde_json::Value;
use weald_server::broker::{ClientError, DeskError, Fault, NotAllowed};

use super::Failure;
use crate::exit;

impl From<DeskError> for Failure {
    fn from(error: DeskError) -> Self {
        let message = error.to_string();
        match error {
            DeskError::NotAllowed(refusal) => refusal.into(),
            DeskError::Task(error) => error.into(),
            DeskError::Agent(error) => error.into(),
            DeskError::Record(error) => error.into(),
            DeskError::Session(error) => error.into(),
            DeskError::Message(error) => error.into(),
            DeskError::Tree(error) => error.into(),
            DeskError::Scope(error) => error.into(),
            DeskError::Store(error) => error.into(),
            DeskError::NoNote => Self::new("no_note", exit::NOT_FOUND, message)
                .hint("weald session note \"what is next\""),
            DeskError::TooLong => Self::new("text_too_long", exit::REFUSED, message)
                .hint("put it in a file of the tree and name that"),
            DeskError::Landing => Self::new("landing_busy", exit::BUSY, message)
                .hint("wait for it: weald events --tree NAME"),
            DeskError::Fault(fault) => (*fault).into(),
        }
    }
}

impl From<NotAllowed> for Failure {
    fn from(refusal: NotAllowed) -> Self {
        let message = refusal.to_string();
        match refusal.hint() {
            Some(hint) => Self::new("no_mandate", exit::REFUSED, message).hint(hint),
            None => Self {
                message,
                ..Self::not_allowed_inside()
            },
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self {
            code: fault.code.into(),
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
            code: failure.code.into_owned(),
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
                "whatever started this closed the descriptor in $WEALD_BROKER_FD; at sandbox level full none is needed"
            }
            false => "the run that this is in may be over; outside of it: weald status",
        };
        Self::new("broker_gone", exit::BUSY, error.to_string())
            .hint(hint)
            .details(Value::Object(Default::default()))
    }
}
