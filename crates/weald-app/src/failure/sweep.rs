//! Errors of sweeps.

use crate::SweepError;
use serde_json::json;
use weald_core::maintenance::MaintenanceRefusal;

use super::Failure;
use crate::exit;

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        let message = error.to_string();
        match error {
            SweepError::Store(error) => error.into(),
            SweepError::Task(error) => error.into(),
            SweepError::Tree(error) => error.into(),
            SweepError::Refused(MaintenanceRefusal::Held { holder }) => {
                Self::new("sweep_busy", exit::BUSY, message)
                    .hint(format!(
                        "another sweep can take over at {}; to see what this one is doing: ps {}",
                        holder.expires_at, holder.process.pid
                    ))
                    .details(json!({"pid": holder.process.pid, "until": holder.expires_at}))
            }
            SweepError::Refused(MaintenanceRefusal::Lost) => {
                Self::new("sweep_lost", exit::BUSY, message).hint("weald clean --leftovers --apply")
            }
            SweepError::NoIdentity => Self::new("no_process_table", exit::REFUSED, message),
        }
    }
}
